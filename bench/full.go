//go:build linux

package main

import (
	"fmt"
	"strconv"
	"time"
)

// What an init is asked while the process table is full.
const (
	fullSignals = 30
	fullProbes  = 6
)

// A fullTally is what came of all runs of one subject.
type fullTally struct {
	runs      int
	deaths    int
	mute      int       // alive, but the last signal did not arrive or no probe was answered
	delivered int       // signals
	answered  int       // probes
	failures  []float64 // forks that failed in the workload, per run
	void      int       // runs in which no fork failed: they prove nothing
}

// measureFull fills the process table below each init: once it has come to
// rest, and from the workload's first moment on. A runtime that needs a thread
// just then and does not get it ends the process, and with it the container.
func measureFull(h *harness) {
	limit := newLimit(h.plan.cgroup, h.plan.tasks)
	h.cleanup = append(h.cleanup, limit.remove)
	h.fullRuns(limit, h.plan.fullDelay, deathsAtRest)
	h.fullRuns(limit, 0, deathsAtOnce)
	sweep()
	limit.remove()
}

func (h *harness) fullRuns(l *limit, delay time.Duration, goal string) {
	subjects := inits(h.subjects)
	tallies := map[string]*fullTally{}
	for _, s := range subjects {
		tallies[s.name] = &fullTally{}
	}
	for i := range h.plan.fullRuns {
		for _, s := range shuffled(subjects, i) {
			if h.givenUp(s) {
				continue
			}
			if err := h.fullRun(s, l, delay, tallies[s.name]); err != nil {
				h.fault(s, "full process table", err)
			}
			sweep()
			if err := l.empty(); err != nil {
				h.fault(s, "full process table", err)
			}
		}
	}
	h.tables = append(h.tables, fullTable(l, delay, subjects, tallies))
	if n := tallies[h.judged]; n != nil && n.runs > 0 && n.void == 0 {
		h.score(goal, float64(n.deaths+n.mute))
	}
}

func fullTable(l *limit, delay time.Duration, subjects []subject, tallies map[string]*fullTally) table {
	when := "from the workload's start on"
	if delay > 0 {
		when = fmt.Sprintf("%v after the workload's start", delay)
	}
	t := table{
		title: "A full process table, " + when,
		note: fmt.Sprintf("Limit: %s. The workload forks until fork(2) fails, and goes on trying; "+
			"then %d signals and, with a listener, %d probes.", l.kind, fullSignals, fullProbes),
		head: []string{"", "runs", "deaths", "alive but mute", "signals", "probes answered",
			"failed forks, least", "most", "void runs"},
	}
	for _, s := range subjects {
		n := tallies[s.name]
		probes := "-"
		if s.probed() {
			probes = fmt.Sprintf("%d of %d", n.answered, n.runs*fullProbes)
		}
		t.add(s.name, fmt.Sprint(n.runs), fmt.Sprint(n.deaths), fmt.Sprint(n.mute),
			fmt.Sprintf("%d of %d", n.delivered, n.runs*fullSignals), probes,
			number(quantile(n.failures, 0), 0), number(quantile(n.failures, 1), 0), fmt.Sprint(n.void))
	}
	return t
}

func (h *harness) fullRun(s subject, l *limit, delay time.Duration, n *fullTally) error {
	p := place{namespaces: fresh.namespaces, stage: append(append([]string{}, fresh.stage...), l.stage...)}
	r, err := h.start(s, p, "fill", strconv.FormatInt(delay.Milliseconds(), 10))
	if err != nil {
		return err
	}
	defer r.kill()
	n.runs++
	if !r.board.await(wordReady, 1, hangLimit) && !r.dead() {
		n.mute++
		return fmt.Errorf("%w: the process table did not fill", errHung)
	}
	sent := int64(0)
	answered := 0
	for i := range fullSignals {
		if _, arrived := r.signal(50 * time.Millisecond); arrived {
			sent++
		}
		nap(2 * time.Millisecond)
		if s.probed() && i%(fullSignals/fullProbes) == 0 {
			answered += count(get(r.addr, "/readyz"))
		}
	}
	n.delivered += int(r.board.get(wordSignals))
	n.answered += answered
	failures := r.board.get(wordFailures)
	n.failures = append(n.failures, float64(failures))
	if r.dead() {
		n.deaths++
		return fmt.Errorf("died with a full process table: %s", h.lastWords(s))
	}
	if failures == 0 {
		n.void++
	}
	if _, arrived := r.signal(time.Second); !arrived || s.probed() && answered == 0 {
		n.mute++
		return fmt.Errorf("alive but mute: %d of %d signals arrived in time, %d probes were answered", sent, fullSignals, answered)
	}
	return nil
}
