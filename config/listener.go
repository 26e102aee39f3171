package config

import (
	"net"
	"strconv"
	"strings"
)

// probe reads the listener's settings.
func (r *reader) probe(c *Config, f *flags) {
	s := r.own("probe-addr", f.ProbeAddr)
	c.ProbeAddrSet = s.given
	switch {
	case s.given:
		c.ProbeAddr = r.address(s)
	case !r.nested:
		c.ProbeAddr = ":8079"
	}
	r.paths(c, f)
	c.UnreadyStatus = 503
	if s := r.text("unready-status", f.UnreadyStatus); s.given {
		n, err := strconv.ParseUint(s.value, 10, 16)
		if err != nil || n < 400 || n > 599 {
			r.refuse(s, "not a status that says no", "400 to 599, such as 503, or 404 for HAProxy's disable-on-404")
		}
		c.UnreadyStatus = int(n)
	}
}

// address holds the form host:port; a host is looked up when it is bound.
func (r *reader) address(s setting) string {
	if s.value == none {
		return ""
	}
	_, port, err := net.SplitHostPort(s.value)
	if err != nil {
		r.refuse(s, "not an address", "host:port, :port, or none")
		return ""
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		r.refuse(s, "the port is not a number from 1 to 65535", "for example :8079")
	}
	return s.value
}

// paths reads the three paths: absolute, plain, all different. Where a set one
// meets a default, it is the set one that is refused.
func (r *reader) paths(c *Config, f *flags) {
	all := []*setting{{}, {}, {}}
	for i, p := range []struct {
		flag, fallback string
		value, to      *string
	}{
		{"ready-path", "/readyz", f.ReadyPath, &c.ReadyPath},
		{"live-path", "/livez", f.LivePath, &c.LivePath},
		{"metrics-path", "/metrics", f.MetricsPath, &c.MetricsPath},
	} {
		s := r.text(p.flag, p.value)
		if !s.given {
			s.value = p.fallback
		}
		if !plainPath(s.value) {
			r.refuse(s, "not a path", "it begins with / and has no blanks, ?, # or %, for example /healthz")
		}
		*all[i], *p.to = s, s.value
	}
	for i, s := range all {
		for _, other := range all[:i] {
			if s.value != other.value {
				continue
			}
			if !s.given {
				s, other = other, s
			}
			r.refuse(*s, "the same as "+other.name, "each of the three paths is its own")
		}
	}
}

// plainPath: printable ASCII behind a slash, without what ends a path.
func plainPath(p string) bool {
	if !strings.HasPrefix(p, "/") {
		return false
	}
	for _, b := range []byte(p) {
		if b <= ' ' || b > '~' || b == '?' || b == '#' || b == '%' {
			return false
		}
	}
	return true
}
