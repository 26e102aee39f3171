package phases

import (
	"testing"
	"time"
)

// The workload's own end, and what a stop signal changes in the shutdown that
// it began.

func TestSelfExit(t *testing.T) {
	r := running(t, config(roomy(), named("a")...))
	r.at(sec, exitLast)
	r.at(2*sec, phaseEnds(0, true))
	r.want("1s withdraw", "1s enter phases (10s)", "1s start phase 1 (10s)", "2s phase 1 ok (1s)",
		"2s enter end", "2s exit 3, the workload's own")
}

// Its descendants are told at once, and have the drain timeout from then on,
// beside the phases.
func TestSelfExitLeavesSome(t *testing.T) {
	for name, c := range map[string]struct {
		set  bool
		want string
	}{"drain timeout set": {true, "20s"}, "not set": {false, "10s"}} {
		t.Run(name, func(t *testing.T) {
			in := roomy()
			in.DrainTimeout.Set = c.set
			in.Grace.Set = c.set
			r := running(t, config(in, named("a")...))
			r.do(exitSome)
			r.at(4*sec, phaseEnds(0, true))
			r.pass(time.Minute)
			end, _ := time.ParseDuration(c.want)
			r.want("0s withdraw", "0s tell rest TERM", "0s enter phases (10s)", "0s start phase 1 (10s)",
				"4s phase 1 ok (4s)", "4s enter gate ("+(end-4*sec).String()+")",
				c.want+" say overran gate ("+(end-4*sec).String()+")", c.want+" enter cancel (1s)", c.want+" kill rest",
				(end+sec).String()+" say overran cancel (1s)", (end+sec).String()+" enter end",
				(end+sec).String()+" exit 3, the workload's own")
		})
	}
}

// What is left when its time is over is killed while the phases go on.
func TestRestOutlastsItsTime(t *testing.T) {
	in := roomy()
	in.DrainTimeout = set(2 * sec)
	r := running(t, config(in, named("a")...))
	r.do(exitSome)
	r.at(2100*ms, allGone)
	r.at(5*sec, phaseEnds(0, true))
	r.want("0s withdraw", "0s tell rest TERM", "0s enter phases (10s)", "0s start phase 1 (10s)",
		"2s kill rest", "5s phase 1 ok (5s)", "5s enter end", "5s exit 3, the workload's own")
}

// What survives KILL gets it again and is waited for in stage 4.
func TestRestSurvivesKill(t *testing.T) {
	in := roomy()
	in.DrainTimeout = set(2 * sec)
	r := running(t, config(in, named("a")...))
	r.do(exitSome)
	r.at(3*sec, phaseEnds(0, true))
	r.pass(time.Minute)
	r.want("0s withdraw", "0s tell rest TERM", "0s enter phases (10s)", "0s start phase 1 (10s)",
		"2s kill rest", "3s phase 1 ok (3s)", "3s enter cancel (1s)",
		"4s say overran cancel (1s)", "4s enter end", "4s exit 3, the workload's own")
	if n := r.count(KillRest); n < 30 {
		t.Errorf("KILL was sent %d times in 2 s", n)
	}
}

// Descendants in the gate share the window that is running.
func TestRestSharesTheGate(t *testing.T) {
	r := running(t, config(roomy()))
	r.do(sigTERM)
	r.at(15*sec, exitSome)
	r.at(20*sec, allGone)
	r.want("0s withdraw", "0s enter announce (5s)", "5s enter gate (20s)", "5s tell TERM",
		"15s tell rest TERM", "20s enter end", "20s exit 3, the workload's own")
	r = running(t, config(assumed()))
	r.do(sigTERM)
	r.at(30*sec, exitSome)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter announce (0s)", "0s enter gate (no end)", "0s tell TERM",
		"9s say assumed grace passed", "30s tell rest TERM", "40s say overran gate (40s)", "40s enter cancel (1s)",
		"40s kill rest", "41s say overran cancel (1s)", "41s enter end", "41s exit 3, the workload's own")
}

// A stop signal joins the shutdown that the workload's end began, and cuts it to
// the deadline that it brings.
func TestStopJoins(t *testing.T) {
	in := roomy()
	in.Grace = set(12 * sec)
	in.DrainTimeout = set(3 * sec)
	r := running(t, config(in, named("a", "b")...))
	r.do(exitSome)
	r.at(2*sec, sigTERM) // until 13 s; 3 s for the rest, 1 s to unwind, 1 s to kill
	r.at(3*sec, phaseEnds(0, true))
	r.pass(time.Minute)
	r.want("0s withdraw", "0s tell rest TERM", "0s enter phases (10s)", "0s start phase 1 (10s)",
		"2s say joined TERM", "3s kill rest", "3s phase 1 ok (3s)", "3s start phase 2 (5s)",
		"8s TERM to phase 2", "9s KILL to phase 2", "9s phase 2 killed (6s)", "9s enter cancel (1s)",
		"10s say overran cancel (1s)", "10s enter end", "10s exit 3, the workload's own")
}

// A phase that was told to stop before the signal came keeps its second where
// the deadline lets it.
func TestStopJoinsUnwinding(t *testing.T) {
	in := roomy()
	in.Grace, in.DrainTimeout = set(6*sec), set(3*sec) // 5 s from the signal on: 3 + 1 behind the phases
	r := running(t, config(in, Phase{"a", sec}))
	r.do(exitLast)
	r.at(1200*ms, sigTERM)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter phases (10s)", "0s start phase 1 (1s)", "1s TERM to phase 1",
		"1.2s say joined TERM", "2s KILL to phase 1", "2s phase 1 killed (2s)",
		"2s enter end", "2s exit 3, the workload's own")
}

// Where a stop signal brings a deadline that is close, the second between TERM and
// KILL is cut, and not the workload's window.
func TestUnwindIsCut(t *testing.T) {
	in := roomy()
	in.Grace, in.DrainBudget, in.DrainTimeout = set(6*sec), set(30*sec), set(3*sec)
	r := running(t, config(in, named("a")...))
	r.do(exitSome)
	r.at(2500*ms, allGone)
	r.at(10*sec, sigTERM) // until 15 s: 3 + 1 behind the phases, 1 for them to unwind
	r.pass(time.Minute)
	r.want("0s withdraw", "0s tell rest TERM", "0s enter phases (30s)", "0s start phase 1 (30s)",
		"10s say joined TERM", "10s TERM to phase 1", "11s KILL to phase 1", "11s phase 1 killed (11s)",
		"11s enter end", "11s exit 3, the workload's own")
	in.Grace = set(5500 * ms)
	r = running(t, config(in, named("a")...))
	r.do(exitLast)
	r.at(10*sec, sigTERM)
	r.pass(time.Minute)
	r.want("0s withdraw", "0s enter phases (30s)", "0s start phase 1 (30s)",
		"10s say joined TERM", "10s TERM to phase 1", "10.5s KILL to phase 1", "10.5s phase 1 killed (10.5s)",
		"10.5s enter end", "10.5s exit 3, the workload's own")
}

// A COMMAND that can't be executed: no phase, the status of the start.
func TestStartFails(t *testing.T) {
	r := newRig(t, config(roomy(), named("a")...))
	r.do(failedStart(127))
	r.want("0s withdraw", "0s enter end", "0s exit 127")
	r = newRig(t, config(roomy(), named("a")...))
	r.do(sigTERM)
	r.at(sec, failedStart(127))
	r.want("0s withdraw", "1s enter end", "1s exit 143")
}

// The status of a workload that the init has killed is not its own, and never
// remapped; one that ended by itself before the KILL arrived is.
func TestWhoseStatus(t *testing.T) {
	for _, c := range []struct {
		status int
		own    bool
	}{{137, false}, {0, true}, {143, true}} {
		r := running(t, config(roomy()))
		r.do(sigTERM)
		r.at(25*sec + 10*ms)
		r.do(Event{Kind: Exited, Status: c.status, Last: true})
		last := r.all[len(r.all)-1]
		if last.Kind != Exit || last.Status != c.status || last.Own != c.own {
			t.Errorf("%d: %s", c.status, describe(last))
		}
	}
}

// Every stage and every result has a name.
func TestNames(t *testing.T) {
	if len(Stages()) != int(End)+1 || len(Results()) != int(Skipped)+1 {
		t.Errorf("%v %v", Stages(), Results())
	}
	if Gate.String() != "gate" || Interrupted.String() != "interrupted" {
		t.Errorf("%v %v", Gate, Interrupted)
	}
}
