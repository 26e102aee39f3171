//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// measureIdle looks at all inits at the same moments: two seconds after the
// start, after the short and after the long time in which nothing happens.
func measureIdle(h *harness) {
	subjects := inits(h.subjects)
	runs := h.startAll(subjects, "idle")
	defer sweep()
	nap(2 * time.Second)
	first := h.footprints(runs)
	nap(h.plan.idle)
	short := h.footprints(runs)
	long := map[string]footprint{}
	if h.plan.idleLong > h.plan.idle {
		nap(h.plan.idleLong - h.plan.idle)
		long = h.footprints(runs)
	}
	t := table{
		title: "Idle",
		note: "Memory in kB (1024 bytes), from smaps_rollup, after the last pause. Switches are the voluntary context switches " +
			"of all threads. PSS is shared with the other subject of the same file.",
		head: []string{"kB", "RSS", "PSS", "anonymous", "threads",
			fmt.Sprintf("switches in %v", h.plan.idle), "in " + longest(h.plan)},
	}
	for _, s := range subjects {
		f, found := short[s.name]
		if !found {
			continue
		}
		switches := []string{number(f.switches-first[s.name].switches, 0), "-"}
		if l, found := long[s.name]; found {
			f = l
			switches[1] = number(l.switches-first[s.name].switches, 0)
		}
		t.add(s.name, number(f.rss, 0), number(f.pss, 0), number(f.anonymous, 0), fmt.Sprint(f.threads),
			switches[0], switches[1])
		if s.name == h.judged {
			h.score("Idle RSS", megabytes(f.rss))
			h.score("Idle anonymous", megabytes(f.anonymous))
			if h.plan.idleLong >= 130*time.Second {
				h.score("Idle switches", f.switches-first[s.name].switches)
			}
		}
	}
	h.tables = append(h.tables, t)
}

func (h *harness) footprints(runs map[string]*run) map[string]footprint {
	out := map[string]footprint{}
	for _, r := range runs {
		f, err := readFootprint(r.pid)
		if err != nil {
			h.fault(r.subject, "idle", err)
			continue
		}
		out[r.subject.name] = f
	}
	return out
}

func longest(p plan) string {
	if p.idleLong > p.idle {
		return p.idleLong.String()
	}
	return "(not measured)"
}

// megabytes turns the kB of proc(5), 1024 bytes, into MB of 1,000,000.
func megabytes(kb float64) float64 { return kb * 1024 / 1e6 }

// measureProbes looks at the memory of the inits with a listener before and
// after many probes and scrapes, each on a connection of its own, as a kubelet
// and a Prometheus without keep-alive make them.
func measureProbes(h *harness) {
	t := table{
		title: fmt.Sprintf("Memory after %d probes and %d scrapes", h.plan.probes, h.plan.scrapes),
		note:  "In kB (1024 bytes): 2 s after the start, right after the last answer, and 2 s later.",
		head:  []string{"kB", "RSS before", "after", "2s later", "anonymous before", "after", "2s later", "answered"},
	}
	for _, s := range h.subjects {
		if !s.probed() {
			continue
		}
		if err := h.probeOne(s, &t); err != nil {
			h.fault(s, "probes", err)
		}
		sweep()
	}
	if len(t.rows) > 0 {
		h.tables = append(h.tables, t)
	}
}

func (h *harness) probeOne(s subject, t *table) error {
	r, err := h.start(s, here, "wait")
	if err != nil {
		return err
	}
	defer r.board.close()
	if err := r.ready(); err != nil {
		return err
	}
	var f [3]footprint
	look := func(i int) {
		if err == nil {
			f[i], err = readFootprint(r.pid)
		}
	}
	nap(2 * time.Second)
	look(0)
	answered := 0
	for range h.plan.probes {
		answered += count(get(r.addr, "/readyz"))
	}
	for range h.plan.scrapes {
		answered += count(get(r.addr, "/metrics"))
	}
	look(1)
	nap(2 * time.Second)
	look(2)
	if err != nil {
		return err
	}
	t.add(s.name, number(f[0].rss, 0), number(f[1].rss, 0), number(f[2].rss, 0),
		number(f[0].anonymous, 0), number(f[1].anonymous, 0), number(f[2].anonymous, 0),
		fmt.Sprintf("%d of %d", answered, h.plan.probes+h.plan.scrapes))
	if s.name == h.judged && answered == h.plan.probes+h.plan.scrapes {
		h.score("RSS after probes", megabytes(max(f[1].rss, f[2].rss)))
	}
	return nil
}

// get asks on a new connection and tells whether the answer was 200.
func get(addr, path string) bool {
	const limit = 2 * time.Second
	conn, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, addr)
	answer, err := io.ReadAll(conn)
	return err == nil && strings.HasPrefix(string(answer), "HTTP/1.1 200 ")
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
