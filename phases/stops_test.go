package phases

import (
	"testing"
	"time"
)

// The stops of lifecycle steps.

// upAndRunning starts all steps, the workload, and forgets how.
func upAndRunning(t *testing.T, c Config) *rig {
	t.Helper()
	r := newRig(t, c)
	for i := range c.Steps {
		r.do(stepEnds(i, true))
	}
	r.do(started)
	if r.m.Stage() != Running {
		t.Fatalf("stage %v", r.m.Stage())
	}
	r.lines, r.all = nil, nil
	return r
}

// atLifecycle is one in which the stops have just begun, at 0.
func atLifecycle(t *testing.T, c Config) *rig {
	t.Helper()
	c.Plan.Announce = 0
	r := upAndRunning(t, c)
	r.do(sigTERM)
	r.do(exitLast)
	if r.m.Stage() != Lifecycle {
		t.Fatalf("stage %v", r.m.Stage())
	}
	r.lines = nil
	return r
}

// The waves are stopped in reverse, the steps of one together, and each is waited
// for until nothing is left of it.
func TestStopsInReverse(t *testing.T) {
	r := upAndRunning(t, stepped(long(), nil, 1, 2, 2))
	r.do(sigTERM)
	r.at(6*sec, exitLast)
	r.at(7*sec, stepLeaves(2, true))
	r.at(8*sec, stepEnds(1, true))
	r.at(9*sec, stepGone(2))
	r.at(10*sec, stepEnds(0, false))
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter gate (20s)", "5s tell TERM",
		"6s enter lifecycle (20s)", "6s stop step 2 (9s)", "6s stop step 3 (9s)", "7s TERM to what step 3 left",
		"8s step 2 stopped: ok (2s)", "9s step 3 stopped: ok (3s)", "9s stop step 1 (9s)",
		"10s step 1 stopped: failed (1s)", "10s enter end", "10s exit 3, the workload's own")
}

// A stop that hangs is told, and what its start left halfway from there to the
// wave's end, at which both are killed; its sibling and the waves before it are stopped.
func TestStopHangs(t *testing.T) {
	in := long()
	in.StepTimeout = set(50 * ms)
	r := atLifecycle(t, stepped(in, nil, 1, 2, 2))
	r.do(stepEnds(2, true))
	r.pass(60 * ms)
	r.do(stepEnds(0, true))
	r.want("0s step 3 stopped: ok (0s)", "25ms TERM to step 2", "37.5ms TERM to what step 2 left", "50ms KILL to step 2", "50ms KILL to what step 2 left",
		"50ms step 2 stopped: killed (50ms)", "50ms stop step 1 (25ms)", "60ms step 1 stopped: ok (10ms)",
		"60ms enter end", "60ms exit 3, the workload's own")
}

// One that ends when it is told has overrun; what its start left is told then, and
// killed when the wave is over.
func TestStopOverruns(t *testing.T) {
	r := atLifecycle(t, stepped(long(), nil, 1))
	r.at(9500*ms, stepLeaves(0, true))
	r.pass(time.Minute)
	r.want("9s TERM to step 1", "9.5s TERM to what step 1 left", "10s KILL to what step 1 left",
		"10s step 1 stopped: killed (10s)", "10s enter end", "10s exit 3, the workload's own")
	r = atLifecycle(t, stepped(long(), nil, 1))
	r.at(9400*ms, stepEnds(0, true))
	r.want("9s TERM to step 1", "9.4s step 1 stopped: overran (9.4s)", "9.4s enter end", "9.4s exit 3, the workload's own")
}

// One that can't be started still leaves what its start left to be told.
func TestStopRefused(t *testing.T) {
	r := atLifecycle(t, stepped(long(), nil, 1, 1))
	r.at(sec, Event{Kind: StepRefused, Hook: 0})
	r.at(2*sec, Event{Kind: StepRefused, Hook: 1, Last: true})
	r.at(3*sec, stepGone(0))
	r.want("1s TERM to what step 1 left", "2s step 2 stopped: failed (2s)", "3s step 1 stopped: failed (3s)",
		"3s enter end", "3s exit 3, the workload's own")
}

// Stopped once, nothing is stopped again: not by a late word, nor by another
// signal.
func TestStoppedOnce(t *testing.T) {
	in := long()
	in.StepTimeout = set(2 * sec)
	r := atLifecycle(t, stepped(in, nil, 1, 2))
	r.at(2500*ms, stepEnds(1, true), stepGone(1), sigTERM, sigTERM)
	r.at(3*sec, sigTERM)
	r.pass(time.Minute)
	if stops, ends := r.count(StopStep), r.count(StepStopped); stops != 2 || ends != 2 {
		t.Errorf("%d stops, %d ends", stops, ends)
	}
}

// INT ends the window of the wave that runs: TERM, a second, KILL. The next has
// its own.
func TestInterruptStops(t *testing.T) {
	r := atLifecycle(t, stepped(long(), nil, 1, 2, 2, 2))
	r.at(sec, stepLeaves(3, true))
	r.at(2*sec, sigINT)
	r.at(2400*ms, stepEnds(2, true))
	r.at(4*sec, stepEnds(0, true))
	r.want("1s TERM to what step 4 left", "2s say hurried INT in lifecycle", "2s TERM to step 2", "2s TERM to step 3",
		"2.4s step 3 stopped: interrupted (2.4s)", "2.5s TERM to what step 2 left",
		"3s KILL to step 2", "3s KILL to what step 2 left", "3s KILL to what step 4 left",
		"3s step 2 stopped: killed (3s)", "3s step 4 stopped: killed (3s)", "3s stop step 1 (9s)",
		"4s step 1 stopped: ok (1s)", "4s enter end", "4s exit 3, the workload's own")
}

// A wave's window is less than two seconds: half of it is left for the end.
func TestShortWave(t *testing.T) {
	in := long()
	in.StepTimeout = set(sec)
	r := atLifecycle(t, stepped(in, nil, 1))
	r.pass(time.Minute)
	r.want("500ms TERM to step 1", "750ms TERM to what step 1 left", "1s KILL to step 1", "1s KILL to what step 1 left", "1s step 1 stopped: killed (1s)",
		"1s enter end", "1s exit 3, the workload's own")
}

// A step timeout of 0: called, told and killed at once.
func TestNoTimeForStops(t *testing.T) {
	in := long()
	in.StepTimeout = set(0)
	c := stepped(in, nil, 1, 2)
	c.Plan.Announce = 0
	r := upAndRunning(t, c)
	r.do(sigTERM)
	r.at(sec, exitLast)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (20s)", "0s tell TERM", "1s enter lifecycle (0s)",
		"1s stop step 2 (0s)", "1s TERM to step 2", "1s TERM to what step 2 left", "1s KILL to step 2", "1s KILL to what step 2 left", "1s step 2 stopped: killed (0s)",
		"1s stop step 1 (0s)", "1s TERM to step 1", "1s TERM to what step 1 left", "1s KILL to step 1", "1s KILL to what step 1 left", "1s step 1 stopped: killed (0s)",
		"1s enter end", "1s exit 3, the workload's own")
}

// Four waves of 10 s in a grace period of 30: the workload has half of what was
// left at the gate, the rest is shared in proportion, and the end comes in time.
func TestFourStepsShareTheRest(t *testing.T) {
	in := long()
	in.Grace, in.Announce = set(30*sec), set(0)
	r := upAndRunning(t, stepped(in, nil, 1, 2, 3, 4))
	r.do(sigTERM)
	r.pass(time.Minute)
	if got := r.lines[2]; got != "0s enter gate (14.5s)" {
		t.Errorf("%s", got)
	}
	var windows []time.Duration
	for _, e := range r.all {
		if e.Kind == StopStep {
			windows = append(windows, e.Window.Round(10*ms))
		}
	}
	if len(windows) != 4 || windows[0] < 2400*ms || windows[0]-windows[3] > 100*ms {
		t.Errorf("windows %v", windows)
	}
	if over := r.now.Sub(r.start); r.m.Stage() != End || over > time.Minute {
		t.Errorf("in %v after %v", r.m.Stage(), over)
	}
	r.endsBy(29 * sec)
}

// endsBy holds the exit against a time.
func (r *rig) endsBy(limit time.Duration) {
	r.t.Helper()
	if r.ended.IsZero() || r.ended.Sub(r.start) > limit {
		r.t.Errorf("it ended after %v, %v was the limit", r.ended.Sub(r.start), limit)
	}
}

// A stop signal that comes during the stops, which the workload's own end began,
// brings a deadline.
func TestStopJoinsTheStops(t *testing.T) {
	in := long()
	in.Grace = set(5 * sec)
	r := upAndRunning(t, stepped(in, nil, 1, 2))
	r.do(exitLast)
	r.at(sec, sigTERM) // until 5 s
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter lifecycle (20s)", "0s stop step 2 (9s)", "1s say joined TERM",
		"1.975s TERM to step 2", "2.4625s TERM to what step 2 left", "2.95s KILL to step 2", "2.95s KILL to what step 2 left", "2.95s step 2 stopped: killed (2.95s)",
		"2.95s stop step 1 (975ms)", "3.925s TERM to step 1", "4.4125s TERM to what step 1 left", "4.9s KILL to step 1", "4.9s KILL to what step 1 left",
		"4.9s step 1 stopped: killed (1.95s)", "4.9s enter end", "4.9s exit 3, the workload's own")
}
