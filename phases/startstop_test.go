package phases

import (
	"testing"
	"time"

	"drainit/budget"
)

// A stop signal while the steps start.

// One starts with 2 s to go, another waits: the running one finishes, the other
// is never started, nor the workload; no phase; the started one is stopped.
func TestStopWhileStarting(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1, 2))
	r.at(sec, sigTERM)
	r.at(3*sec, stepEnds(0, true))
	r.at(4*sec, stepEnds(0, true))
	r.want("0s start step 1 (no end)", "1s withdraw", "3s step 1 started (3s)",
		"3s enter lifecycle (10s)", "3s stop step 1 (9s)", "4s step 1 stopped: ok (1s)", "4s enter end", "4s exit 143")
}

// All have started: the phases run, without an announce delay, though the
// workload never comes.
func TestStopInTheLastWave(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a", "b")...), long(), 1, 1, 1))
	r.at(sec, stepEnds(0, true))
	r.at(2*sec, sigTERM)
	r.at(3*sec, stepEnds(1, true))
	r.at(4*sec, phaseEnds(0, true))
	r.at(5*sec, phaseEnds(1, false))
	r.at(6*sec, stepEnds(0, true), stepEnds(1, true))
	r.want("0s start step 1 (no end)", "0s start step 2 (no end)", "1s step 1 started (1s)", "2s withdraw",
		"3s step 2 started (3s)", "3s enter phases (10s)", "3s start phase 1 (10s)", "4s phase 1 ok (1s)",
		"4s start phase 2 (9s)", "5s phase 2 failed (1s)", "5s enter lifecycle (10s)", "5s stop step 1 (9s)",
		"5s stop step 2 (9s)", "6s step 1 stopped: ok (1s)", "6s step 2 stopped: ok (1s)", "6s enter end", "6s exit 143")
}

// One of the last wave fails after the signal: no phase, and the signal's status.
func TestStopThenFailure(t *testing.T) {
	r := newRig(t, stepped(long(), named("a"), 1, 1))
	r.at(sec, sigTERM)
	r.at(2*sec, stepEnds(0, false))
	r.at(3*sec, stepEnds(1, true))
	r.at(4*sec, stepEnds(1, true))
	r.want("0s start step 1 (no end)", "0s start step 2 (no end)", "1s withdraw", "2s step 1 did not start: failed (2s)",
		"3s step 2 started (3s)", "3s enter lifecycle (10s)", "3s stop step 2 (9s)",
		"4s step 2 stopped: ok (1s)", "4s enter end", "4s exit 143")
}

// A failure that came before the signal stays what ended the container; its
// siblings get no longer than the deadline leaves.
func TestFailureThenStop(t *testing.T) {
	in := long()
	in.Grace = set(8 * sec) // 7 s: half a second in the end for the stops, the rest of it in proportion
	r := newRig(t, stepped(in, named("a"), 1, 1, 1))
	r.at(sec, stepEnds(0, false))
	r.at(2*sec, stepEnds(1, true), sigTERM)
	r.pass(time.Minute)
	r.want("0s start step 1 (no end)", "0s start step 2 (no end)", "0s start step 3 (no end)",
		"1s step 1 did not start: failed (1s)", "1s withdraw", "2s step 2 started (2s)", "2s say joined TERM",
		"2s TERM to step 3", "3s KILL to step 3", "3s step 3 did not start: killed (3s)",
		"3s enter lifecycle (5.9s)", "3s stop step 2 (4.9s)", "7.9s TERM to step 2", "8.4s TERM to what step 2 left", "8.9s KILL to step 2",
		"8.9s KILL to what step 2 left", "8.9s step 2 stopped: killed (5.9s)", "8.9s enter end", "8.9s exit 125")
}

// The starts have until the deadline less what must come after: their own
// unwinding, the stops of the waves, and behind the last wave the phases.
func TestStartsUntilTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		set    bool
		waves  []int
		phases []Phase
		done   int // steps that have started before
		want   time.Duration
	}{
		"the last wave":             {true, []int{1}, named("a"), 0, 89*sec - 11*sec - sec - 10*sec},
		"no phases":                 {true, []int{1}, nil, 0, 89*sec - sec - 10*sec},
		"not the last":              {true, []int{1, 2}, named("a"), 0, 89*sec - sec - 10*sec},
		"the last of three":         {true, []int{1, 2, 3}, named("a"), 2, 89*sec - 11*sec - sec - 30*sec},
		"an assumed grace period":   {false, []int{1}, named("a"), 0, 89*sec - 11*sec - sec - 10*sec},
		"the second of two, no end": {false, []int{1, 2}, nil, 1, 89*sec - sec - 20*sec},
	} {
		t.Run(name, func(t *testing.T) {
			in := long()
			in.Grace.Set, in.DrainTimeout = c.set, set(5*sec)
			r := newRig(t, stepped(in, c.phases, c.waves...))
			for i := range c.done {
				r.do(stepEnds(i, true))
			}
			r.do(sigTERM)
			r.pass(c.want - 1)
			if n := r.count(TermStep); n != 0 {
				t.Fatalf("told %d times:\n%q", n, r.lines)
			}
			if r.pass(1); r.count(TermStep) != 1 {
				t.Fatalf("told %d times:\n%q", r.count(TermStep), r.lines)
			}
		})
	}
}

// Where one has failed no phase will run, and none is kept time for.
func TestFailureLeavesNoPhase(t *testing.T) {
	in := long()
	in.Grace = set(30 * sec)
	r := newRig(t, stepped(in, named("a"), 1, 1))
	r.do(stepEnds(0, false))
	r.do(sigTERM)
	r.pass(10*sec - 1)
	if n := r.count(TermStep); n != 0 {
		t.Fatalf("told after %v", r.now.Sub(r.start))
	}
	if r.pass(1); r.count(TermStep) != 1 {
		t.Errorf("not told")
	}
}

// What the starts have left, the phases and the stops get whole.
func TestStartsLeaveTheRest(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1))
	r.do(sigTERM)
	r.at(67500*ms, stepEnds(0, true)) // told after 67 s
	r.pass(time.Minute)
	r.want("0s start step 1 (no end)", "0s withdraw", "1m7s TERM to step 1", "1m7.5s step 1 started (1m7.5s)",
		"1m7.5s enter phases (10s)", "1m7.5s start phase 1 (10s)", "1m17.5s TERM to phase 1", "1m18.5s KILL to phase 1",
		"1m18.5s phase 1 killed (11s)", "1m18.5s enter lifecycle (10s)", "1m18.5s stop step 1 (9s)",
		"1m27.5s TERM to step 1", "1m28s TERM to what step 1 left", "1m28.5s KILL to step 1", "1m28.5s KILL to what step 1 left",
		"1m28.5s step 1 stopped: killed (10s)", "1m28.5s enter end", "1m28.5s exit 143")
}

// Without a grace period they have 10 s.
func TestStartsWithoutADeadline(t *testing.T) {
	in := budget.Input{Unlimited: true, Headroom: set(sec), StepTimeout: set(10 * sec)}
	r := newRig(t, stepped(in, nil, 1))
	r.at(sec, sigTERM)
	r.pass(time.Minute)
	r.want("0s start step 1 (no end)", "1s withdraw", "11s TERM to step 1", "12s KILL to step 1",
		"12s step 1 did not start: killed (12s)", "12s enter end", "12s exit 143")
}

// INT does not wait for the starts, be it the first signal or a later one.
func TestInterruptStarts(t *testing.T) {
	r := newRig(t, stepped(long(), named("a"), 1, 1, 2))
	r.at(sec, sigINT)
	r.at(1500*ms, stepEnds(1, true))
	r.at(3*sec, stepEnds(1, true))
	r.want("0s start step 1 (no end)", "0s start step 2 (no end)", "1s withdraw", "1s TERM to step 1", "1s TERM to step 2",
		"1.5s step 2 started (1.5s)", "2s KILL to step 1", "2s step 1 did not start: killed (2s)",
		"2s enter lifecycle (10s)", "2s stop step 2 (9s)", "3s step 2 stopped: ok (1s)", "3s enter end", "3s exit 130")
	r = newRig(t, stepped(long(), named("a"), 1))
	r.at(sec, sigTERM)
	r.at(2*sec, sigINT)
	r.at(2500*ms, stepEnds(0, true))
	r.at(3*sec, stepEnds(0, true))
	r.want("0s start step 1 (no end)", "1s withdraw", "2s say hurried INT in starting", "2s TERM to step 1",
		"2s phase 1 skipped (0s)", "2.5s step 1 started (2.5s)", "2.5s enter lifecycle (10s)", "2.5s stop step 1 (9s)",
		"3s step 1 stopped: ok (500ms)", "3s enter end", "3s exit 143")
	r = newRig(t, stepped(long(), named("a"), 1, 1))
	r.at(sec, stepEnds(0, false))
	r.at(2*sec, sigINT)
	r.at(2500*ms, stepEnds(1, false))
	r.want("0s start step 1 (no end)", "0s start step 2 (no end)", "1s step 1 did not start: failed (1s)", "1s withdraw",
		"2s say joined INT", "2s TERM to step 2", "2.5s step 2 did not start: interrupted (2.5s)", "2.5s enter end", "2.5s exit 125")
}

// The second of a start that was told before the signal is held to the deadline
// that comes with it.
func TestStopWhileUnwinding(t *testing.T) {
	in := long()
	in.Grace, in.Headroom = set(500*ms), set(0)
	conf := stepped(in, nil, 1)
	conf.StartTimeout = sec
	r := newRig(t, conf)
	r.at(1200*ms, sigTERM) // until 1.7 s
	r.pass(time.Minute)
	r.want("0s start step 1 (1s)", "1s TERM to step 1", "1.2s withdraw", "1.45s KILL to step 1",
		"1.45s step 1 did not start: killed (1.45s)", "1.45s enter end", "1.45s exit 143")
}

// Before anything was started, nothing is; no phase runs either.
func TestStopBeforeTheStart(t *testing.T) {
	for _, c := range []Config{config(roomy(), named("a")...), stepped(long(), named("a"), 1)} {
		r := bare(t, c)
		r.do(sigTERM)
		r.at(sec, Event{Kind: Begin})
		r.want("0s withdraw", "1s enter end", "1s exit 143")
	}
}

// The workload's start is under way: it has become the last.
func TestStopBehindTheSteps(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1))
	r.do(stepEnds(0, true))
	r.at(sec, sigTERM)
	r.at(12*sec, companionEnds(0))
	r.at(13*sec, stepEnds(0, true))
	r.want("0s start step 1 (no end)", "0s step 1 started (0s)", "0s start companion 1", "0s start workload", "1s withdraw",
		"11s say overran starting (10s)", "11s enter companions (10s)", "11s TERM to companion 1",
		"12s enter lifecycle (10s)", "12s stop step 1 (9s)", "13s step 1 stopped: ok (1s)", "13s enter end", "13s exit 143")
}

// One that was given up and comes late is killed, again and again, and its end
// changes nothing.
func TestWorkloadComesLate(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1))
	r.do(stepEnds(0, true))
	r.do(sigTERM)
	r.at(11*sec, started)
	r.at(11500*ms, exitSome)
	r.at(12*sec, allGone)
	r.at(13*sec, companionEnds(0))
	r.at(14*sec, stepEnds(0, true))
	r.want("0s start step 1 (no end)", "0s step 1 started (0s)", "0s start companion 1", "0s start workload", "0s withdraw",
		"10s say overran starting (10s)", "10s enter companions (10s)", "10s TERM to companion 1", "11s kill rest",
		"13s enter lifecycle (10s)", "13s stop step 1 (9s)", "14s step 1 stopped: ok (1s)", "14s enter end", "14s exit 143")
	if n := r.count(KillRest); n < 19 || n > 21 {
		t.Errorf("KILL was sent %d times in a second", n)
	}
}
