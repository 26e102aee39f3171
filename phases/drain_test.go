package phases

import (
	"testing"
	"time"

	"drainit/budget"
)

// The phases, and the plan, in a shutdown.

// starts returns what each started phase was allowed.
func (r *rig) starts() []time.Duration {
	var all []time.Duration
	for _, e := range r.all {
		if e.Kind == StartPhase {
			all = append(all, e.Window)
		}
	}
	return all
}

// results returns how each phase ended.
func (r *rig) results() []Result {
	all := make([]Result, len(r.m.cfg.Phases))
	for _, e := range r.all {
		if e.Kind == PhaseDone {
			all[e.Hook] = e.Result
		}
	}
	return all
}

// What a phase is told that it may take: what is left of the budget, or less where it
// declares that.
func TestAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		budget time.Duration
		list   []Phase
		used   []time.Duration // by each before it ends
		want   []time.Duration // each is told
		skip   []bool
	}{
		"a maximum of its own, then the rest": {5 * sec, []Phase{{"a", 2 * sec}, {"b", 0}}, []time.Duration{2*sec - 1, 0},
			[]time.Duration{2 * sec, 3*sec + 1}, []bool{false, false}},
		"a maximum beyond the budget": {sec, []Phase{{"a", 5 * sec}}, []time.Duration{0}, []time.Duration{sec}, []bool{false}},
		"99 ms are left":              {sec, named("a", "b"), []time.Duration{901 * ms, 0}, []time.Duration{sec}, []bool{false, true}},
		"100 ms are left":             {sec, named("a", "b"), []time.Duration{900 * ms, 0}, []time.Duration{sec, 100 * ms}, []bool{false, false}},
		"no budget":                   {0, named("a", "b"), nil, nil, []bool{true, true}},
		"a maximum of 50 ms":          {sec, []Phase{{"a", 50 * ms}}, []time.Duration{0}, []time.Duration{50 * ms}, []bool{false}},
		"a maximum, too late":         {99 * ms, []Phase{{"a", 50 * ms}}, nil, nil, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			in := roomy()
			in.DrainBudget = set(c.budget)
			r := running(t, config(in, c.list...))
			r.do(sigTERM)
			r.pass(5 * sec)
			for i, used := range c.used {
				r.pass(used)
				r.do(phaseEnds(i, true))
			}
			got := r.starts()
			if len(got) != len(c.want) {
				t.Fatalf("told %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("told %v, want %v", got, c.want)
				}
			}
			for i, result := range r.results() {
				if (result == Skipped) != c.skip[i] {
					t.Errorf("phase %d: %v", i, result)
				}
			}
			if r.m.Stage() != Gate {
				t.Errorf("stage %v", r.m.Stage())
			}
		})
	}
}

// A phase that overruns is told at that instant and killed a second
// later; the second comes out of the budget but for the last phase.
func TestOverrun(t *testing.T) {
	in := roomy()
	in.Announce, in.DrainBudget = set(2*sec), set(3*sec)
	r := running(t, config(in, Phase{"a", sec}, Phase{"b", 0}))
	r.do(sigTERM)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter announce (2s)", "2s enter phases (3s)", "2s start phase 1 (1s)",
		"3s TERM to phase 1", "4s KILL to phase 1", "4s phase 1 killed (2s)", "4s start phase 2 (1s)",
		"5s TERM to phase 2", "6s KILL to phase 2", "6s phase 2 killed (2s)", "6s enter gate (20s)", "6s tell TERM",
		"26s say overran gate (20s)", "26s enter cancel (1s)", "26s kill rest",
		"27s say overran cancel (1s)", "27s enter end", "27s exit 137")
}

// An overrun that eats the budget leaves nothing to the others.
func TestOverrunEatsBudget(t *testing.T) {
	in := roomy()
	in.DrainBudget = set(2 * sec)
	r := running(t, config(in, named("a", "b")...))
	r.do(sigTERM)
	r.at(7500*ms, phaseEnds(0, true))
	if got := r.results(); got[0] != Overran || got[1] != Skipped || r.m.Stage() != Gate {
		t.Errorf("%v in %v", got, r.m.Stage())
	}
}

// Without a phase only the announce delay is taken.
func TestNoPhase(t *testing.T) {
	r := running(t, config(roomy()))
	r.do(sigTERM)
	r.pass(5 * sec)
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter gate (20s)", "5s tell TERM")
}

// What ended by the time of a deadline has not overrun, in whatever order it is
// found.
func TestEndsAtTheDeadline(t *testing.T) {
	for _, events := range [][]Event{
		{exitSome, phaseEnds(0, true), {Kind: Tick}},
		{phaseEnds(0, true), exitSome, {Kind: Tick}},
	} {
		r := running(t, config(roomy(), named("a")...))
		r.do(sigTERM)
		r.pass(6 * sec)
		r.now = r.start.Add(15 * sec) // the deadline of the phase
		r.do(events...)
		if got := r.results()[0]; got != Succeeded || r.count(TermPhase) != 0 {
			t.Errorf("%v", got)
		}
	}
}

// A late word of a phase that was given up is nobody's.
func TestLateWord(t *testing.T) {
	r := running(t, config(roomy(), Phase{"a", sec}, Phase{"b", 0}))
	r.do(sigTERM)
	r.at(7500*ms, phaseRefused(0), phaseEnds(0, true))
	if r.m.Stage() != Phases || r.count(PhaseDone) != 1 {
		t.Errorf("stage %v, %d phases done", r.m.Stage(), r.count(PhaseDone))
	}
}

// An assumed grace period kills nobody, and says when it is over.
func TestAssumedKillsNobody(t *testing.T) {
	r := running(t, config(assumed()))
	r.do(sigTERM)
	r.at(20*sec, exitLast)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (no end)", "0s tell TERM",
		"9s say assumed grace passed", "20s enter end", "20s exit 3, the workload's own")
}

// Without a grace period nothing is said either.
func TestUnlimited(t *testing.T) {
	r := running(t, config(budget.Input{Unlimited: true, Headroom: set(sec)}))
	r.do(sigTERM)
	r.at(time.Hour, exitLast)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (no end)", "0s tell TERM",
		"1h0m0s enter end", "1h0m0s exit 3, the workload's own")
}

// A drain timeout that was set holds under an assumed grace period, too.
func TestTimeoutUnderAssumed(t *testing.T) {
	in := assumed()
	in.DrainTimeout = set(15 * sec)
	r := running(t, config(in))
	r.do(sigTERM)
	r.at(15*sec+10*ms, Event{Kind: Exited, Status: 137, Last: true})
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (15s)", "0s tell TERM",
		"9s say assumed grace passed", "15s say overran gate (15s)", "15s enter cancel (1s)", "15s kill rest",
		"15.01s enter end", "15.01s exit 137")
}

// What does not fit still leaves the workload its half, and
// the exit comes before the hard deadline.
func TestHalfIsLeft(t *testing.T) {
	in := roomy()
	in.Grace, in.Prestop = set(10*sec), set(5*sec) // 4 s are left
	r := running(t, config(in, named("a")...))
	r.do(sigTERM)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter phases (0s)", "0s phase 1 skipped (0s)",
		"0s enter gate (3s)", "0s tell TERM", "3s say overran gate (3s)", "3s enter cancel (900ms)", "3s kill rest",
		"3.9s say overran cancel (900ms)", "3.9s enter end", "3.9s exit 137")
}

// A drain timeout of 0: told, and killed at once.
func TestTimeoutZero(t *testing.T) {
	in := assumed()
	in.DrainTimeout = set(0)
	r := running(t, config(in))
	r.do(sigTERM)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (0s)", "0s tell TERM",
		"0s say overran gate (0s)", "0s enter cancel (1s)", "0s kill rest")
}

// Who was away for longer than everything still does it in order.
func TestLateWakeUp(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.now = r.start.Add(time.Hour)
	r.do(Event{Kind: Tick})
	r.want("0s withdraw", "0s enter announce (5s)",
		"1h0m0s enter phases (0s)", "1h0m0s phase 1 skipped (0s)", "1h0m0s enter gate (0s)", "1h0m0s tell TERM",
		"1h0m0s say overran gate (0s)", "1h0m0s enter cancel (0s)", "1h0m0s kill rest",
		"1h0m0s say overran cancel (0s)", "1h0m0s enter end", "1h0m0s exit 137")
}
