//go:build linux

package main

import (
	"fmt"
	"strconv"
	"time"
)

// measureStartup times both ends of a life: from just before the fork of the
// init to the workload's first instruction, and from the workload's last act to
// the init being gone. What the machine takes for the same without an init is
// measured in the same round and subtracted.
//
// The workload lives for a while in between, since an init may still be busy
// with its own start when the workload already runs; that must not be counted
// as part of the exit.
func measureStartup(h *harness) {
	start := map[string][]float64{}
	exit := map[string][]float64{}
	for i := range h.plan.rounds {
		for _, s := range shuffled(h.subjects, i) {
			if h.givenUp(s) {
				continue
			}
			begin, end, err := h.life(s)
			if err != nil {
				h.fault(s, "start-up", err)
			}
			start[s.name] = put(start[s.name], i, begin)
			exit[s.name] = put(exit[s.name], i, end)
		}
	}
	sweep()
	h.overheads("Start-up", "just before the fork of the init to the workload's first instruction", start)
	h.overheads("Exit", "the workload's last act to the init being gone", exit)
}

func (h *harness) life(s subject) (start, exit float64, err error) {
	r, err := h.start(s, here, "live", strconv.FormatInt(h.plan.live.Milliseconds(), 10))
	if err != nil {
		return missing, missing, err
	}
	defer r.board.close()
	end, err := r.wait(h.plan.live + hangLimit)
	if err == nil && r.board.get(wordLast) == 0 {
		err = fmt.Errorf("ended, and the workload had not run")
	}
	if err != nil {
		sweep()
		return missing, missing, err
	}
	nap(time.Millisecond) // what the kernel still frees is nobody else's time
	return float64(r.board.get(wordBorn) - r.began), float64(end - r.board.get(wordLast)), nil
}

func put(xs []float64, i int, x float64) []float64 {
	for len(xs) <= i {
		xs = append(xs, missing)
	}
	xs[i] = x
	return xs
}

func (h *harness) overheads(name, what string, total map[string][]float64) {
	over := map[string][]float64{}
	for _, s := range inits(h.subjects) {
		over[s.name] = minus(total[s.name], total[direct])
	}
	note := fmt.Sprintf("From %s, over what it takes without an init in the same round (median there: %s us).",
		what, number(median(total[direct])/1e3, 0))
	h.tables = append(h.tables, spread(name+" overhead", note, inits(h.subjects), over))
	h.score(name+" overhead", median(over[h.judged])/median(over[reference]))
}
