package config

import (
	"path/filepath"
	"strings"
)

// DefaultReport is where Kubernetes has a container's last words
// (terminationMessagePath).
const DefaultReport = "/dev/termination-log"

// configDir reads where the hooks' directories are, and whether somebody said so.
func (r *reader) configDir(value *string) (dir string, set bool) {
	s := r.own("config-dir", value)
	switch {
	case s.given:
		dir = r.place(s, "a directory")
		return dir, dir != ""
	case r.nested:
		return "", false
	}
	return "/etc/drainit", false
}

// report reads where the shutdown report goes, and whether somebody said so. The
// default is the file that Kubernetes reads a container's last words from.
func (r *reader) report(value *string) (file string, set bool) {
	s := r.own("report", value)
	switch {
	case s.given && strings.HasSuffix(s.value, "/"):
		r.refuse(s, "a directory", "a file, or none")
	case s.given:
		return r.place(s, "a file"), true
	case !r.nested:
		return DefaultReport, false
	}
	return "", s.given
}

// place reads a path, or none. A relative one counts from where the init was
// started, since its own directory is another one later.
func (r *reader) place(s setting, what string) string {
	switch s.value {
	case none:
		return ""
	case "":
		r.refuse(s, "empty", what+", or none")
		return ""
	}
	path, err := filepath.Abs(s.value)
	if err != nil {
		r.refuse(s, err.Error(), "an absolute path")
	}
	return path
}

// maxAddress is how long a socket's address may be: what sun_path holds, less
// the NUL behind a path (unix(7)). Abstract names keep to it as well, so that
// the limit is one.
const maxAddress = 107

// control reads the address of a control socket; empty for none. Where the
// default is, the socket's owner knows.
func (r *reader) control(s setting) string {
	if !s.given || s.value == none {
		return ""
	}
	const hint = "@ and a name, or an absolute path"
	address := s.value
	switch {
	case strings.HasPrefix(address, "@"):
		if address == "@" {
			r.refuse(s, "no name behind the @", hint)
		}
	case !strings.HasPrefix(address, "/"):
		r.refuse(s, "neither a name behind an @ nor an absolute path", hint)
	case strings.HasSuffix(address, "/"), filepath.Clean(address) == "/":
		r.refuse(s, "a directory", "a file in it, for example /run/drainit.sock")
	default:
		address = filepath.Clean(address)
	}
	if len(address) > maxAddress {
		r.refuse(s, "longer than the 107 bytes that a socket's address may have", "a shorter path, or @ and a name")
	}
	return address
}
