package phases

import (
	"testing"
	"time"

	"drainit/budget"
)

// The starts of lifecycle steps.

// long is a plan with room for phases, three waves and companions.
func long() budget.Input {
	in := roomy()
	in.Grace, in.StepTimeout = set(90*sec), set(10*sec)
	return in
}

// stepped is a machine with phases, and steps in waves.
func stepped(in budget.Input, phases []Phase, waves ...int) Config {
	return withSteps(config(in, phases...), in, 0, waves...)
}

// The waves start one after the other, the steps of one together; then the
// companions and the workload.
func TestWaves(t *testing.T) {
	r := newRig(t, withSteps(config(long()), long(), 2, 1, 2, 2, 7))
	r.at(sec, stepEnds(0, true))
	r.at(2*sec, stepLeaves(2, true))
	r.at(3*sec, stepEnds(1, true))
	r.at(4*sec, stepEnds(3, true))
	r.at(5*sec, started)
	r.want("0s start step 1 (no end)", "1s step 1 started (1s)", "1s start step 2 (no end)", "1s start step 3 (no end)",
		"2s step 3 started (1s)", "3s step 2 started (2s)", "3s start step 4 (no end)",
		"4s step 4 started (1s)", "4s start companion 1", "4s start companion 2", "4s start workload",
		"5s ready", "5s enter running")
}

// A start is bounded by the start timeout, and by what the step declares where
// that is less.
func TestStartTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, own time.Duration
		want         string
	}{
		"neither": {0, 0, "no end"}, "the timeout": {5 * sec, 0, "5s"}, "its own": {0, 3 * sec, "3s"},
		"its own is less": {5 * sec, 3 * sec, "3s"}, "the timeout is less": {2 * sec, 3 * sec, "2s"},
	} {
		conf := stepped(long(), nil, 1)
		conf.StartTimeout, conf.Steps[0].Max = c.timeout, c.own
		if r := newRig(t, conf); r.lines[0] != "0s start step 1 ("+c.want+")" {
			t.Errorf("%s: %s", name, r.lines[0])
		}
	}
}

// One that overruns is told, and killed a second later; one that comes to its end
// within that second has started after all.
func TestStartOverruns(t *testing.T) {
	conf := stepped(long(), named("a"), 1)
	conf.StartTimeout = 5 * sec
	r := newRig(t, conf)
	r.pass(time.Minute)
	r.want("0s start step 1 (5s)", "5s TERM to step 1", "6s KILL to step 1", "6s step 1 did not start: killed (6s)",
		"6s withdraw", "6s enter end", "6s exit 125")
	r = newRig(t, conf)
	r.at(5500*ms, stepEnds(0, false))
	r.want("0s start step 1 (5s)", "5s TERM to step 1", "5.5s step 1 did not start: overran (5.5s)",
		"5.5s withdraw", "5.5s enter end", "5.5s exit 125")
	r = newRig(t, conf)
	r.at(5500*ms, stepEnds(0, true))
	r.want("0s start step 1 (5s)", "5s TERM to step 1", "5.5s step 1 started (5.5s)", "5.5s start workload")
}

// A late word of a start that was given up is nobody's.
func TestLateStart(t *testing.T) {
	conf := stepped(long(), nil, 1, 1)
	conf.Steps[0].Max = sec
	r := newRig(t, conf)
	r.at(2500*ms, stepEnds(0, true), stepGone(0), Event{Kind: StepRefused, Hook: 0, Last: true})
	r.want("0s start step 1 (1s)", "0s start step 2 (no end)", "1s TERM to step 1", "2s KILL to step 1",
		"2s step 1 did not start: killed (2s)", "2s withdraw")
}

// Of three steps the second fails: the first is stopped, the third never
// started, no phase runs, and a stop that fails too changes no status.
func TestStartFailsMidway(t *testing.T) {
	refused := Event{Kind: StepRefused, Hook: 1, Last: true}
	for _, failure := range []Event{stepEnds(1, false), refused} {
		for _, ok := range []bool{true, false} {
			r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1, 2, 3))
			r.at(sec, stepEnds(0, true))
			r.at(2*sec, failure)
			r.at(3*sec, stepEnds(0, ok))
			result := map[bool]Result{true: Succeeded, false: Failed}[ok]
			r.want("0s start step 1 (no end)", "1s step 1 started (1s)", "1s start step 2 (no end)",
				"2s step 2 did not start: failed (1s)", "2s withdraw",
				"2s enter lifecycle (10s)", "2s stop step 1 (9s)",
				"3s step 1 stopped: "+result.String()+" (1s)", "3s enter end", "3s exit 125")
		}
	}
}

// What starts beside one that fails may finish within the step timeout, then it is
// told; what comes to a good end is stopped.
func TestSiblingsOfAFailure(t *testing.T) {
	conf := stepped(long(), nil, 1, 1, 1, 1)
	r := newRig(t, conf)
	r.at(sec, stepEnds(1, false))
	r.at(3*sec, stepEnds(0, true))
	r.at(11500*ms, stepEnds(2, true))
	r.at(13*sec, stepEnds(2, true))
	r.at(14*sec, stepEnds(0, true))
	r.want("0s start step 1 (no end)", "0s start step 2 (no end)", "0s start step 3 (no end)", "0s start step 4 (no end)",
		"1s step 2 did not start: failed (1s)", "1s withdraw", "3s step 1 started (3s)",
		"11s TERM to step 3", "11s TERM to step 4", "11.5s step 3 started (11.5s)",
		"12s KILL to step 4", "12s step 4 did not start: killed (12s)",
		"12s enter lifecycle (10s)", "12s stop step 1 (9s)", "12s stop step 3 (9s)",
		"13s step 3 stopped: ok (1s)", "14s step 1 stopped: ok (2s)", "14s enter end", "14s exit 125")
}

// Nothing that started is there to be stopped: the end comes at once.
func TestFirstStartFails(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1, 2))
	r.at(sec, stepEnds(0, false))
	r.want("0s start step 1 (no end)", "1s step 1 did not start: failed (1s)", "1s withdraw", "1s enter end", "1s exit 125")
}

// A workload that can't be executed: companions and steps are stopped, no phase
// runs.
func TestWorkloadNotExecuted(t *testing.T) {
	r := newRig(t, withSteps(config(long(), named("a")...), long(), 1, 1, 2))
	r.do(stepEnds(0, true))
	r.do(stepLeaves(1, true))
	r.at(sec, failedStart(126))
	r.at(2*sec, companionEnds(0))
	r.at(3*sec, stepLeaves(1, true))
	r.at(4*sec, stepGone(1))
	r.at(5*sec, stepEnds(0, true))
	r.want("0s start step 1 (no end)", "0s step 1 started (0s)", "0s start step 2 (no end)", "0s step 2 started (0s)",
		"0s start companion 1", "0s start workload", "1s withdraw", "1s enter companions (10s)", "1s TERM to companion 1",
		"2s enter lifecycle (20s)", "2s stop step 2 (9s)", "3s TERM to what step 2 left", "4s step 2 stopped: ok (2s)",
		"4s stop step 1 (9s)", "5s step 1 stopped: ok (1s)", "5s enter end", "5s exit 126")
}

// The start begins once.
func TestBeginTwice(t *testing.T) {
	for _, c := range []Config{config(roomy()), stepped(long(), nil, 1)} {
		r := newRig(t, c)
		if out := r.do(Event{Kind: Begin}); out != nil {
			t.Errorf("%v", out)
		}
		r.do(stepEndsIf(c)...)
		r.do(started)
		if out := r.do(Event{Kind: Begin}); out != nil || r.m.Stage() != Running {
			t.Errorf("%v in %v", out, r.m.Stage())
		}
	}
}

// stepEndsIf ends the starts of all steps well.
func stepEndsIf(c Config) []Event {
	var all []Event
	for i := range c.Steps {
		all = append(all, stepEnds(i, true))
	}
	return all
}
