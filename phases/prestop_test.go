package phases

import (
	"testing"
	"time"
)

// A stop signal while a drain runs that a client asked for, or behind it.

// deadline is when the hard one is, from the start.
func (r *rig) deadline() time.Duration {
	at, ok := r.m.Hard()
	if !ok {
		return -1
	}
	return at.Sub(r.start)
}

// The signal joins the drain; INT then gives the phase a second to unwind.
func TestStopJoinsDrain(t *testing.T) {
	r := running(t, config(roomy(), named("a", "b", "c")...))
	r.do(asks(1))
	r.at(6*sec, phaseEnds(0, true))
	r.at(7*sec, sigTERM)
	r.at(8*sec, sigINT)
	r.at(8500*ms, phaseEnds(1, true))
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter phases (10s)", "5s start phase 1 (10s)", "6s phase 1 ok (1s)",
		"6s start phase 2 (9s)", "7s say joined TERM", "8s say hurried INT in phases", "8s TERM to phase 2",
		"8s phase 3 skipped (0s)", "8.5s phase 2 interrupted (2.5s)", "8.5s answer incomplete", "8.5s enter gate (20s)", "8.5s tell TERM")
}

// A signal within 5 s of a drain's end belongs to a preStop hook that ran it: the
// grace period counts from the drain's start, without the prestop figure.
func TestDrainWasPrestop(t *testing.T) {
	for name, c := range map[string]struct {
		ends, stop, want time.Duration
	}{
		"it runs":            {30 * sec, 8 * sec, 19 * sec},
		"a second behind it": {8 * sec, 9 * sec, 19 * sec},
		"5 s behind it":      {8 * sec, 13 * sec, 19 * sec},
		"no more":            {8 * sec, 13*sec + 1, 13*sec + 1 + 12*sec},
		"a second is left":   {15 * sec, 18500 * ms, 19500 * ms},
		"too late for it":    {15 * sec, 19500 * ms, 20500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			in := roomy()
			in.Grace, in.Prestop, in.Announce, in.DrainBudget, in.DrainTimeout = set(20*sec), set(7*sec), set(0), set(15*sec), set(5*sec)
			r := running(t, config(in, named("a")...))
			r.do(asks(1))
			if c.ends < c.stop {
				r.at(c.ends, phaseEnds(0, true))
			}
			r.at(c.stop, sigTERM)
			if got := r.deadline(); got != c.want {
				t.Errorf("the deadline is %v, want %v", got, c.want)
			}
			r.pass(time.Minute)
			r.endsBy(c.want)
		})
	}
}

// A drain that was given the whole grace period or more is somebody's who had
// another time in mind.
func TestDrainOfAnotherTime(t *testing.T) {
	for within, want := range map[time.Duration]time.Duration{60*sec - 1: 59 * sec, 60 * sec: 60*sec + 59*sec, time.Hour: 60*sec + 59*sec} {
		r := running(t, config(roomy(), named("a")...))
		r.do(asksFor(1, set(within), set(0)))
		r.at(58*sec, Event{Kind: Tick})
		if want > 59*sec {
			r.at(60*sec, sigTERM)
		} else {
			r.do(sigTERM)
		}
		if got := r.deadline(); got != want {
			t.Errorf("budget %v: the deadline is %v, want %v", within, got, want)
		}
		r.pass(2 * time.Minute)
		r.endsBy(want)
		if n := r.count(Tell); n != 1 {
			t.Errorf("told %d times", n)
		}
	}
}

// One that was called off is nobody's preStop hook.
func TestCalledOffWasNoPrestop(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asks(1))
	r.at(sec, client(ClientLeft, 1))
	r.at(2*sec, sigTERM)
	if got := r.deadline(); got != 2*sec+59*sec {
		t.Errorf("the deadline is %v", got)
	}
}

// The drain ended with the workload: that end counts, too.
func TestDrainEndsWithTheWorkload(t *testing.T) {
	for stop, want := range map[time.Duration]time.Duration{7 * sec: 59 * sec, 40 * sec: 99 * sec} {
		in := roomy()
		in.DrainTimeout = set(time.Hour)
		r := running(t, config(in, named("a")...))
		r.do(asks(1))
		r.at(sec, exitSome)
		r.at(3*sec, phaseEnds(0, true))
		r.at(stop, sigTERM)
		if got := r.deadline(); got != want {
			t.Errorf("the deadline of a stop after %v is %v, want %v", stop, got, want)
		}
	}
}

// The client that a preStop hook is, is killed after the signal: nothing changes.
func TestPrestopClientLeaves(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asks(1))
	r.at(sec, sigTERM)
	r.at(2*sec, client(ClientLeft, 1))
	r.at(6*sec, phaseEnds(0, true))
	r.want("0s withdraw", "0s enter announce (5s)", "1s say joined TERM", "5s enter phases (10s)", "5s start phase 1 (10s)",
		"6s phase 1 ok (1s)", "6s enter gate (20s)", "6s tell TERM")
	if got := r.deadline(); got != 59*sec {
		t.Errorf("the deadline is %v", got)
	}
}

// Who comes after the signal shares what runs, and has no say in it.
func TestDrainBehindTheSignal(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.at(sec, asksFor(1, set(sec), set(0)))
	r.at(2*sec, client(AskAnnounce, 2))
	r.at(6*sec, phaseEnds(0, true))
	r.want("0s withdraw", "0s enter announce (5s)", "1s share with 1", "2s reply done to 2", "5s enter phases (10s)",
		"5s start phase 1 (10s)", "6s phase 1 ok (1s)", "6s answer done", "6s enter gate (20s)", "6s tell TERM")
	r = newRig(t, stepped(long(), named("a"), 1))
	r.do(sigTERM)
	r.at(sec, asksFor(1, set(sec), set(0)))
	r.at(2*sec, stepEnds(0, true))
	r.at(3*sec, phaseEnds(0, true))
	r.want("0s start step 1 (no end)", "0s withdraw", "1s share with 1", "2s step 1 started (2s)", "2s enter phases (10s)",
		"2s start phase 1 (10s)", "3s phase 1 ok (1s)", "3s answer done", "3s enter lifecycle (10s)", "3s stop step 1 (9s)")
}

// The phases of a drain are cut to what the signal's deadline leaves.
func TestStopCutsDrain(t *testing.T) {
	in := roomy()
	in.Grace, in.DrainTimeout = set(30*sec), set(10*sec)
	r := running(t, config(in, named("a")...))
	r.do(asksFor(1, set(29*sec), set(0)))
	r.at(8*sec, sigTERM) // until 29 s, 11 of them from the gate on
	r.pass(12 * sec)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter phases (29s)", "0s start phase 1 (29s)", "8s say joined TERM",
		"17s TERM to phase 1", "18s KILL to phase 1", "18s phase 1 killed (18s)", "18s answer incomplete",
		"18s enter gate (10s)", "18s tell TERM")
	r.pass(time.Minute)
	r.endsBy(29 * sec)
}

// Under an assumed grace period the warning counts from the drain's start.
func TestAssumedPrestop(t *testing.T) {
	r := running(t, config(assumed()))
	r.do(asks(1))
	r.at(2*sec, sigTERM)
	r.pass(20 * sec)
	r.want("0s withdraw", "0s enter announce (0s)", "0s answer done", "0s enter drained (no end)",
		"2s enter gate (no end)", "2s tell TERM", "9s say assumed grace passed")
	if _, ok := r.m.Hard(); ok {
		t.Error("there is a deadline")
	}
}

// The workload ends by itself in a drain, or behind it: the shutdown goes on.
func TestExitInDrain(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.do(asks(1))
	r.at(2*sec, exitSome)
	r.at(3*sec, client(ClientLeft, 1), allGone)
	r.at(4*sec, asks(2))
	r.at(5*sec, phaseEnds(0, true))
	r.want("0s withdraw", "0s enter announce (5s)", "2s tell rest TERM", "2s enter phases (10s)", "2s start phase 1 (10s)",
		"4s share with 2", "5s phase 1 ok (3s)", "5s answer done", "5s enter end", "5s exit 3, the workload's own")
	r = running(t, config(roomy()))
	r.do(asks(1))
	r.at(6*sec, exitSome)
	r.at(7*sec, allGone)
	r.want("0s withdraw", "0s enter announce (5s)", "5s answer done", "5s enter drained (no end)",
		"6s tell rest TERM", "6s enter gate (20s)", "7s enter end", "7s exit 3, the workload's own")
}

// The stop signal that a workload gets is the one that came, not what the drain
// began with.
func TestSignalBehindDrain(t *testing.T) {
	r := running(t, config(roomy()))
	r.do(asks(1))
	r.at(10*sec, sigINT)
	if e := r.all[len(r.all)-1]; e.Kind != Tell || e.Signal != intr {
		t.Errorf("%s", describe(e))
	}
}

// Under an assumed grace period there is no deadline that would cut what a client
// has asked for; the stop signal leaves it what the plan has.
func TestLongDrainUnderAssumed(t *testing.T) {
	r := running(t, config(assumed(), named("a")...))
	ask := client(AskDrain, 1)
	ask.Budget = set(time.Hour)
	r.do(ask)
	r.at(10*sec, sigTERM)
	r.pass(time.Minute)
	if r.m.Stage() != Gate || r.count(Tell) != 1 {
		t.Errorf("stage %v a minute after the signal, told %d times", r.m.Stage(), r.count(Tell))
	}
}
