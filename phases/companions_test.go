package phases

import (
	"slices"
	"testing"
	"time"

	"drainit/budget"
)

// accompanied runs a workload with companions.
func accompanied(t *testing.T, in budget.Input, companions int, phases ...Phase) *rig {
	t.Helper()
	r := running(t, withSteps(config(in, phases...), in, companions))
	r.all = nil
	return r
}

// rests returns the pauses before companion i was started again.
func (r *rig) rests(i int) []time.Duration {
	var all []time.Duration
	for _, e := range r.all {
		if e.Kind == CompanionRests && e.Hook == i {
			all = append(all, e.Window)
		}
	}
	return all
}

// One that ends is started again after a pause that doubles to 30 s, made longer
// by up to a fifth; a run of 30 s begins anew.
func TestCompanionRests(t *testing.T) {
	r := accompanied(t, long(), 2)
	want := []time.Duration{sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec}
	for i := range want {
		r.pass(20 * sec)
		r.do(companionEnds(1))
		r.pass(r.rests(1)[i])
	}
	r.pass(30 * sec)
	r.do(Event{Kind: CompanionRefused, Hook: 1})
	want = append(want, sec)
	got := r.rests(1)
	if len(got) != len(want) || r.count(StartCompanion) != len(want)-1 {
		t.Fatalf("%v, %d starts", got, r.count(StartCompanion))
	}
	for i := range got {
		if got[i] < want[i] || got[i] >= want[i]*6/5 {
			t.Errorf("pause %d: %v, want %v to a fifth more", i, got[i], want[i])
		}
	}
	if r.rests(0) != nil {
		t.Errorf("the other: %v", r.rests(0))
	}
}

// The run that resets the pause is one of 30 s, no less.
func TestCompanionRunsLong(t *testing.T) {
	for ran, want := range map[time.Duration]time.Duration{30*sec - 1: 2 * sec, 30 * sec: sec} {
		r := accompanied(t, long(), 1)
		r.do(companionEnds(0))
		r.pass(r.rests(0)[0])
		r.pass(ran)
		r.do(companionEnds(0))
		if got := r.rests(0)[1]; got < want || got >= want*6/5 {
			t.Errorf("after %v: %v", ran, got)
		}
	}
}

// Two replicas that one fault has ended together do not come back together.
func TestCompanionJitter(t *testing.T) {
	var pauses []time.Duration
	for seed := range uint64(8) {
		c := withSteps(config(long()), long(), 2)
		c.Seed = seed
		r := running(t, c)
		r.do(companionEnds(0), companionEnds(1))
		pauses = append(pauses, r.rests(0)[0], r.rests(1)[0])
	}
	slices.Sort(pauses)
	if n := len(slices.Compact(pauses)); n < 15 {
		t.Errorf("%d different pauses of 16: %v", n, pauses)
	}
}

// They are told together, behind the workload, and what does not end is killed.
func TestCompanionsAreTold(t *testing.T) {
	r := accompanied(t, long(), 3)
	r.do(sigTERM)
	r.at(6*sec, exitLast)
	r.at(8*sec, companionEnds(1))
	r.pass(time.Minute)
	r.do(companionEnds(0), companionEnds(2))
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter gate (20s)", "5s tell TERM",
		"6s enter companions (10s)", "6s TERM to companion 1", "6s TERM to companion 2", "6s TERM to companion 3",
		"16s say overran companions (10s)", "16s KILL to companion 1", "16s KILL to companion 3",
		"16s enter end", "16s exit 3, the workload's own")
}

// The stage is over when the last has ended.
func TestCompanionsEnd(t *testing.T) {
	r := accompanied(t, long(), 2)
	r.do(exitLast)
	r.at(sec, companionEnds(1))
	r.at(2*sec, Event{Kind: CompanionRefused, Hook: 0})
	r.want("0s withdraw", "0s enter companions (10s)", "0s TERM to companion 1", "0s TERM to companion 2",
		"2s enter end", "2s exit 3, the workload's own")
}

// One that rests is not started any more, and not waited for.
func TestCompanionRestsAtTheEnd(t *testing.T) {
	r := accompanied(t, long(), 2)
	r.do(companionEnds(0))
	r.at(500*ms, exitLast)
	r.pass(5 * sec)
	r.do(companionEnds(1))
	r.want("0s companion 1 rests after 0s", "500ms withdraw", "500ms enter companions (10s)", "500ms TERM to companion 2",
		"5.5s enter end", "5.5s exit 3, the workload's own")
	r = accompanied(t, long(), 1)
	r.do(companionEnds(0), exitLast)
	r.want("0s companion 1 rests after 0s", "0s withdraw", "0s enter end", "0s exit 3, the workload's own")
}

// Until the workload is gone they are needed, and started again.
func TestCompanionsInTheShutdown(t *testing.T) {
	r := accompanied(t, long(), 1, named("a")...)
	starts := func(what string) {
		t.Helper()
		n := r.count(StartCompanion)
		r.do(companionEnds(0))
		r.pass(1200 * ms)
		if r.m.companions[0].backoff = 0; r.count(StartCompanion) != n+1 {
			t.Errorf("%s: not started again", what)
		}
	}
	starts("running")
	r.do(sigTERM)
	starts("announce")
	r.pass(5 * sec)
	starts("phases")
	r.do(phaseEnds(0, true))
	starts("gate")
	r.pass(time.Minute)
	if r.m.Stage() != End || r.count(TermCompanion) != 1 {
		t.Errorf("in %v, told %d times", r.m.Stage(), r.count(TermCompanion))
	}
}

// INT ends their window: they have had TERM, and a second is left.
func TestInterruptCompanions(t *testing.T) {
	r := accompanied(t, long(), 1)
	r.do(exitLast)
	r.at(sec, sigTERM)
	r.at(2*sec, sigINT)
	r.at(2600*ms, sigINT)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter companions (10s)", "0s TERM to companion 1", "1s say joined TERM",
		"2s say hurried INT in companions", "2.6s say hurried INT in companions",
		"3s say overran companions (3s)", "3s KILL to companion 1", "3s enter end", "3s exit 3, the workload's own")
}

// A step timeout of 0: told, and killed at once.
func TestNoTimeForCompanions(t *testing.T) {
	in := long()
	in.StepTimeout = set(0)
	r := accompanied(t, in, 1)
	r.do(exitLast)
	r.want("0s withdraw", "0s enter companions (0s)", "0s TERM to companion 1", "0s say overran companions (0s)",
		"0s KILL to companion 1", "0s enter end", "0s exit 3, the workload's own")
}

// Under an assumed grace period the workload has until what they need before the
// assumed deadline, and 10 s at the least; without one, as long as it takes.
func TestAssumedBehindCompanions(t *testing.T) {
	for name, c := range map[string]struct {
		in   budget.Input
		want string
	}{
		"room":      {budget.Input{Grace: budget.Value{D: 30 * sec}, Headroom: set(sec), StepTimeout: set(5 * sec)}, "23s"},
		"no room":   {budget.Input{Grace: budget.Value{D: 10 * sec}, Headroom: set(sec), StepTimeout: set(5 * sec)}, "10s"},
		"unlimited": {budget.Input{Unlimited: true, Headroom: set(sec), StepTimeout: set(5 * sec)}, "no end"},
	} {
		r := accompanied(t, c.in, 1)
		r.do(sigTERM)
		if got := r.lines[2]; got != "0s enter gate ("+c.want+")" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A stop signal that comes while they end brings a deadline, and leaves the steps
// their share.
func TestStopJoinsCompanions(t *testing.T) {
	in := long()
	in.Grace = set(5100 * ms) // 4.1 s, 0.1 of them for the end
	r := upAndRunning(t, withSteps(config(in), in, 1, 1))
	r.do(exitLast)
	r.at(2*sec, sigTERM)
	r.pass(3 * sec)
	r.want("0s withdraw", "0s enter companions (10s)", "0s TERM to companion 1", "2s say joined TERM",
		"4s say overran companions (4s)", "4s KILL to companion 1", "4s enter lifecycle (2s)", "4s stop step 1 (1s)",
		"5s TERM to step 1")
	r.pass(time.Minute)
	r.endsBy(6100 * ms)
}
