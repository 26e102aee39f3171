package supervise

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
		if s.asked { // a drain may have been a preStop hook's
			hard = max(p.Grace-p.Headroom, sec)
		}
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
		if stopped && r.took > s.stopAt+s.bound() {
			t.Errorf("waited %v for a start", r.took-s.stopAt)
		}
	}
	s.checkRest(t, w)
	s.checkOrder(t)
	s.checkSteps(t, r, &seen)
	seen.Joined += len(f.find("stop joined"))
	seen.Hurried += len(f.find("stage cut short"))
	return seen
}

// checkRest: what the workload left is told before it is killed, unless it came
// up only when the workload itself had been told already.
func (s *scenario) checkRest(t *testing.T, w *fakeProc) {
	for _, q := range s.fake.all {
		if s.givenUp() {
			return // it came when nobody waited any more
		}
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
	start := max(budget.GateWish, p.Grace) // of a step; then its unwinding
	return start + budget.Unwind + p.Announce + p.Phases + p.Unwind + p.Gate + p.Cancel +
		p.Companions + p.Wave*time.Duration(p.WaveCount) + flushMax
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
			if !s.givenUp() {
				t.Error("killed without having been told")
			}
		case impatient || s.asked || s.givenUp():
		case p.GateEndless():
			t.Error("killed under an assumed grace period")
		case !p.GraceSet && !p.GateSet:
			if due := w.killedAt.Sub(w.toldAt); due < budget.GateWish {
				t.Errorf("killed %v after it was told, under an assumed grace period", due)
			}
		case w.killedAt.Sub(w.toldAt) < window:
			t.Errorf("killed %v after it was told, %v were its due", w.killedAt.Sub(w.toldAt), window)
		}
	} else if !p.GraceSet && !p.GateSet && !w.toldAt.IsZero() {
		seen.Spared++
	}
	if got := s.fake.find("workload exited"); len(got) > 0 && !s.givenUp() && r.status != w.exit().Status {
		t.Errorf("status %d, the workload's is %d", r.status, w.exit().Status)
	}
}

// givenUp: the workload's start hung, and when it came nobody waited any more.
func (s *scenario) givenUp() bool {
	for _, r := range s.fake.find("stage overran") {
		if r.attrs["stage"] == "starting" {
			return true
		}
	}
	return false
}

// checkSteps: what had started is stopped, once, in reverse, and nothing else is;
// a start that failed ends the run.
func (s *scenario) checkSteps(t *testing.T, r result, seen *census) {
	f := s.fake
	good := map[string]int{} // the wave of each that has started
	lastStop := 1 << 30
	for _, rec := range f.records {
		name := rec.attrs["step"]
		switch rec.msg {
		case "step started":
			good[name] = s.wave(name)
		case "step failed":
			seen.Failed++
			if f.main() != nil {
				t.Errorf("the workload was started though %s failed", name)
			}
			var e *StepError
			if r.status != 125 || !errors.As(r.err, &e) || e.Step != name {
				t.Errorf("%s failed: status %d, error %v", name, r.status, r.err)
			}
		case "step stopping":
			seen.Stops++
			wave, started := good[name]
			if !started || wave > lastStop {
				t.Errorf("%s is stopped: started %v, wave %d behind %d", name, started, wave, lastStop)
			}
			lastStop = wave
			delete(good, name)
		}
	}
	for name := range good {
		if len(f.find("shutdown complete")) > 0 {
			t.Errorf("%s was never stopped", name)
		}
	}
	for _, e := range f.events {
		if strings.Contains(e, " left") && !strings.Contains(e, " 0 left") {
			seen.Left++
		}
	}
	seen.Restarts += len(f.find("companion ended"))
	seen.Drains += len(f.find("drained"))
	s.checkClients(t)
}

// checkClients: everybody who asked and waited has exactly one answer.
func (s *scenario) checkClients(t *testing.T) {
	answers := map[string]int{}
	for _, e := range s.fake.events {
		if at := strings.Index(e, " answer "); at >= 0 {
			answers[e[strings.LastIndex(e, " ")+1:]]++
		}
	}
	for id, n := range answers {
		if n > 1 {
			t.Errorf("client %s has %d answers", id, n)
		}
	}
}

func (s *scenario) wave(step string) int {
	for _, h := range s.job.Hooks.Steps.Hooks {
		if h.Name == step {
			return h.Order
		}
	}
	return -1
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
		case what == "start" && s.phase(text):
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
	if draining != 1 && !s.asked {
		t.Errorf("readiness was withdrawn %d times", draining)
	}
	if m := f.messages(); len(f.find("workload started")) > 0 && m[len(m)-1] != "shutdown complete" {
		t.Errorf("the last record is %q", m[len(m)-1])
	}
}

// phase tells that the text asks for a phase's start.
func (s *scenario) phase(text string) bool {
	var n int
	_, _ = fmt.Sscanf(text, "start %d", &n)
	return n > 0 && n <= len(s.fake.phases)
}
