//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// settle is what an init is given after the workload's start before it is
// measured at rest.
const settle = 500 * time.Millisecond

// measureLatency times a signal on its way: from just before kill(2) on the
// init to the first instruction of the workload's handler. All subjects stand
// ready at the same time and take turns, signal by signal.
func measureLatency(h *harness) {
	runs := h.startAll(h.subjects, "signal latency")
	defer sweep()
	nap(settle)
	took := map[string][]float64{}
	lost := map[string]int{}
	for i := range h.plan.signals {
		for _, s := range shuffled(h.subjects, i) {
			r := runs[s.name]
			if r == nil {
				continue
			}
			// An uneven gap keeps in step with no timer.
			nap(time.Millisecond + time.Duration(rand.IntN(3000))*time.Microsecond)
			ns, arrived := r.signal(time.Second)
			if !arrived {
				lost[s.name]++
			}
			took[s.name] = put(took[s.name], i, ns)
		}
	}
	for _, s := range h.subjects {
		if lost[s.name] > 0 {
			h.fault(s, "signal latency", fmt.Errorf("%d signals did not arrive within 1s", lost[s.name]))
		}
	}
	h.tables = append(h.tables, spread("Signal latency",
		"From kill(init, USR1) to the first instruction of the workload's handler; nothing is subtracted.",
		h.subjects, took))
	h.score("Signal latency", median(took[h.judged])/median(took[reference]))
}

// signal sends one and returns what it took to arrive, in nanoseconds.
func (r *run) signal(limit time.Duration) (float64, bool) {
	seen := r.board.get(wordSignals)
	sent := now()
	if err := unix.Kill(r.pid, unix.SIGUSR1); err != nil {
		return missing, false
	}
	if !r.board.await(wordSignals, seen+1, limit) {
		return missing, false
	}
	return float64(r.board.get(wordStamp) - sent), true
}

// startAll starts every subject with a workload that waits. Those that do not
// come up are named and left out.
func (h *harness) startAll(subjects []subject, purpose string) map[string]*run {
	runs := map[string]*run{}
	for _, s := range subjects {
		r, err := h.start(s, here, "wait")
		if err == nil {
			err = r.ready()
		}
		if err != nil {
			h.fault(s, purpose, err)
			continue
		}
		runs[s.name] = r
	}
	return runs
}
