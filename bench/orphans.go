//go:build linux

package main

import (
	"fmt"
	"strconv"
	"time"
)

// The orphans are made in this many chunks, which the subjects take turns at.
const chunks = 4

// measureOrphans makes the inits, each PID 1 of a namespace of its own, reap
// what is not theirs.
func measureOrphans(h *harness) {
	for _, burst := range []int{1, 100} {
		h.orphanStorm(burst)
		sweep()
	}
}

// A storm is one init's share of it.
type storm struct {
	perOrphan []float64 // CPU time of the init, ns, per chunk
	atOnce    int       // zombies when the last orphan of a chunk was made, the most
	later     int       // zombies a second after the last chunk
	retries   int64     // forks that failed in the workload and were tried again
}

func (h *harness) orphanStorm(burst int) {
	size := h.plan.orphans / chunks
	subjects := inits(h.subjects)
	runs := map[string]*run{}
	storms := map[string]*storm{}
	for _, s := range subjects {
		r, err := h.start(s, fresh, "orphans", strconv.Itoa(size), strconv.Itoa(burst))
		if err == nil {
			err = r.ready()
		}
		if err != nil {
			h.fault(s, "orphans", err)
			continue
		}
		defer r.board.close()
		runs[s.name], storms[s.name] = r, &storm{}
	}
	nap(settle)
	for i := range chunks {
		for _, s := range shuffled(subjects, i) {
			r := runs[s.name]
			if r == nil {
				continue
			}
			if err := r.orphanChunk(storms[s.name], i, size); err != nil {
				h.fault(s, "orphans", err)
				delete(runs, s.name)
			}
		}
	}
	h.orphanTable(burst, subjects, storms)
}

func (r *run) orphanChunk(st *storm, i, size int) error {
	before, err := cpuTime(r.pid)
	if err != nil {
		return err
	}
	r.board.set(wordGo, int64(i+1))
	limit := hangLimit + time.Duration(size)*20*time.Millisecond
	if !r.board.await(wordDone, int64(i+1), limit) {
		return fmt.Errorf("%w: %d of %d orphans made in %v", errHung, r.board.get(wordForks), (i+1)*size, limit)
	}
	st.atOnce = max(st.atOnce, zombies(r.pid))
	if i == chunks-1 {
		nap(time.Second)
		st.later = zombies(r.pid)
	} else {
		nap(settle)
	}
	after, err := cpuTime(r.pid)
	if err != nil {
		return err
	}
	st.perOrphan = append(st.perOrphan, (after-before)/float64(size))
	st.retries = r.board.get(wordFailures)
	return nil
}

func (h *harness) orphanTable(burst int, subjects []subject, storms map[string]*storm) {
	how := "one at a time"
	if burst > 1 {
		how = fmt.Sprintf("in bursts of %d", burst)
	}
	t := table{
		title: fmt.Sprintf("%d orphans, %s", h.plan.orphans, how),
		note:  "The init is PID 1. CPU is its user and system time in us for each orphan, over the chunks.",
		head: []string{"CPU us", "min", "median", "max", "ratio of medians", "median of ratios",
			"zombies at the last fork", "1s later", "forks repeated"},
	}
	var zero storm
	if st := storms[reference]; st != nil {
		zero = *st
	}
	for _, s := range subjects {
		st := storms[s.name]
		if st == nil {
			continue
		}
		cpu := st.perOrphan
		ratio := median(cpu) / median(zero.perOrphan)
		t.add(s.name, number(quantile(cpu, 0)/1e3, 1), number(median(cpu)/1e3, 1), number(quantile(cpu, 1)/1e3, 1),
			number(ratio, 2), number(median(ratios(cpu, zero.perOrphan)), 2),
			fmt.Sprint(st.atOnce), fmt.Sprint(st.later), fmt.Sprint(st.retries))
		if s.name == h.judged && len(cpu) == chunks {
			h.score("CPU per orphan, "+how, ratio)
			h.score("Zombies, "+how, float64(st.later))
		}
	}
	h.tables = append(h.tables, t)
}
