package supervise

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"drainit/budget"
)

// check holds a run against the contract.
func (s *scenario) check(t *testing.T, r result) (seen census) {
	f, p := s.fake, s.job.Plan
	w := f.main()
	stopped := s.stopAt != never && r.took >= s.stopAt && len(f.find("signal received")) > 0
	if stopped && p.GraceSet {
		seen.Deadlines++
		hard := p.Grace - p.Prestop - p.Headroom
		if late := r.took - s.stopAt - max(hard, 0); late > 0 {
			t.Errorf("%v later than the hard deadline", late)
		}
	}
	if stopped && p.GateSet && r.took > s.stopAt+s.bound() {
		t.Errorf("took %v after the stop signal, more than the plan's %v", r.took-s.stopAt, s.bound())
	}
	if w != nil {
		s.checkWorkload(t, w, r, &seen)
	} else {
		seen.Never++
		if stopped && r.took > s.stopAt+budget.GateWish+flushMax {
			t.Errorf("waited %v for a start", r.took-s.stopAt)
		}
	}
	s.checkRest(t, w)
	s.checkOrder(t)
	seen.Joined += len(f.find("stop joined"))
	seen.Hurried += len(f.find("stage cut short"))
	return seen
}

// checkRest: what the workload left is told before it is killed, unless it came
// up only when the workload itself had been told already.
func (s *scenario) checkRest(t *testing.T, w *fakeProc) {
	for _, q := range s.fake.all {
		unasked := q.hook < 0 && q.proc == nil && !q.killedAt.IsZero() && q.toldAt.IsZero()
		if unasked && !slices.ContainsFunc(w.got, func(sig syscall.Signal) bool { return stops[sig] }) {
			t.Error("a descendant was killed and not told")
		}
	}
}

// bound is the longest that the plan allows from the stop signal on: a start
// that is under way, and then the stages.
func (s *scenario) bound() time.Duration {
	p := s.job.Plan
	return budget.GateWish + p.Announce + p.Phases + p.Unwind + p.Gate + p.Cancel + flushMax
}

func (s *scenario) checkWorkload(t *testing.T, w *fakeProc, r result, seen *census) {
	p := s.job.Plan
	if w.onKill == never && w.alive {
		seen.Unkillable++
	}
	impatient := s.hurried || w.killedAt.Sub(s.fake.began) >= lastResort
	if !w.killedAt.IsZero() {
		seen.Killed++
		window := p.Gate
		if p.GraceSet {
			hard := s.fake.began.Add(s.stopAt + max(p.Grace-p.Prestop-p.Headroom, 0))
			window = min(window, max(hard.Sub(w.toldAt), 0)/2)
		}
		switch {
		case w.toldAt.IsZero():
			t.Error("killed without having been told")
		case impatient:
		case !p.GraceSet && !p.GateSet:
			t.Error("killed under an assumed grace period")
		case w.killedAt.Sub(w.toldAt) < window:
			t.Errorf("killed %v after it was told, %v were its due", w.killedAt.Sub(w.toldAt), window)
		}
	} else if !p.GraceSet && !p.GateSet && !w.toldAt.IsZero() {
		seen.Spared++
	}
	if got := s.fake.find("workload exited"); len(got) > 0 && r.status != w.exit().Status {
		t.Errorf("status %d, the workload's is %d", r.status, w.exit().Status)
	}
}

// checkOrder: readiness first, every phase at most once and before the workload
// is told, the end at the end.
func (s *scenario) checkOrder(t *testing.T) {
	f := s.fake
	told, draining := false, 0
	starts := map[string]int{}
	for _, e := range f.events {
		var at, what string
		_, _ = fmt.Sscanf(e, "%s %s", &at, &what)
		text := e[len(at)+1:]
		switch {
		case text == "readiness 2":
			draining++
		case what == "start" && text != "start 0":
			starts[text]++
			if told || draining == 0 || starts[text] > 1 {
				t.Errorf("%q: told %v, draining %d", e, told, draining)
			}
		case text == "terminated to workload" || text == "killed to workload":
			told = true
			if draining == 0 {
				t.Errorf("%q before readiness was withdrawn", e)
			}
		}
	}
	if draining != 1 {
		t.Errorf("readiness was withdrawn %d times", draining)
	}
	if m := f.messages(); len(f.find("workload started")) > 0 && m[len(m)-1] != "shutdown complete" {
		t.Errorf("the last record is %q", m[len(m)-1])
	}
}
