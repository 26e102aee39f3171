package supervise

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestSuspendedWorkload: a stopped one is told like a running one, and continued.
func TestSuspendedWorkload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, status: 143, stopped: syscall.SIGSTOP})
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(docker()), f.world())
		if got := f.main().got; !slices.Equal(got, []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}) || r.took > 2*sec {
			t.Errorf("%v after %v", got, r.took)
		}
	})
}

// TestRest: what the workload leaves is told when it exits, and the init ends
// with the last of it.
func TestRest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec, status: 4, leaves: []behaviour{
			{self: never, onStop: 3 * sec}, {self: never, onStop: 5 * sec, leaves: []behaviour{{self: never, onStop: never, onKill: 10 * ms}}},
		}})
		r := f.run(f.job(docker()), f.world())
		if r.status != 4 || r.took < 11*sec || r.took > 11*sec+200*ms { // the grandchild that came up after was told nothing
			t.Errorf("%+v", r)
		}
		if got := f.find("descendants told to stop"); len(got) != 1 || got[0].at != sec || got[0].attrs["count"] != "2" {
			t.Errorf("%+v", got)
		}
		if f.reaps > 100 {
			t.Errorf("reaped %d times", f.reaps)
		}
	})
}

// TestRestBesideHooks: while phases run the end of the last child does not tell;
// /proc does, without being read all the time.
func TestRestBesideHooks(t *testing.T) {
	for _, noProc := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			f := newFake(behaviour{self: sec, leaves: []behaviour{{self: never, onStop: sec}}},
				behaviour{self: 4 * sec}, behaviour{answer: 2 * sec, self: sec})
			f.noProc = noProc
			r := f.run(f.job(roomy()), f.world())
			if r.took < 8*sec || r.took > 8*sec+200*ms {
				t.Errorf("took %v", r.took)
			}
			if f.reaps > 200 {
				t.Errorf("reaped %d times", f.reaps)
			}
		})
	}
}

// TestAtTheDeadline: what is found to have ended when the deadline wakes the
// loop has not overrun.
func TestAtTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 20*sec - 1, status: 143}, behaviour{self: 10*sec - 1})
		f.chldLate = time.Minute
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		if got := f.find("phase ended"); len(got) != 1 || got[0].attrs["result"] != "ok" {
			t.Errorf("%+v", got)
		}
		if f.has("killed to workload") || f.has("terminated to phase 1") || r.status != 143 || r.took > 37*sec {
			t.Errorf("%+v %q", r, f.events)
		}
		if n := len(f.find("stage overran")); n != 0 {
			t.Errorf("%d stages overran", n)
		}
	})
}

// TestEndedBeforeSignal: a workload that had ended when the signal was read ended
// by itself, whenever its CHLD arrives.
func TestEndedBeforeSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec, status: 2}, behaviour{self: sec})
		f.chldLate = time.Minute
		f.kill(2*sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		f.wantMessages(t, "drain plan", "workload started", "signal received", "workload exited",
			"stage began", "phase started", "stop joined", "phase ended", "shutdown complete")
		env := f.specs[1].Env
		if !slices.Contains(env, "DRAINIT_REASON=exited") || !slices.Contains(env, "DRAINIT_WORKLOAD_STATUS=2") {
			t.Errorf("%q", env)
		}
		if by := f.find("shutdown complete")[0].attrs["ended_by"]; by != "itself" || r.status != 2 {
			t.Errorf("ended by %s, %+v", by, r)
		}
	})
}

// TestUnkillable: what survives KILL is waited for as long as stage 4, no longer.
func TestUnkillable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: never, onKill: never})
		f.noProc = true
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		if r.status != 137 || r.took < 27*sec || r.took > 27*sec+flushMax {
			t.Errorf("%+v", r)
		}
		if by := f.find("shutdown complete")[0].attrs["ended_by"]; by != "nobody: it survived KILL" {
			t.Errorf("ended by %s", by)
		}
		if f.killAll != 1 {
			t.Errorf("kill(-1) %d times", f.killAll)
		}
		if n := len(f.find("workload killed")); n != 1 {
			t.Errorf("said %d times", n)
		}
	})
}

// TestCoalesced: one CHLD for any number of ends, late.
func TestCoalesced(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec, status: 6, leaves: slices.Repeat([]behaviour{{self: never, onStop: sec}}, 50)})
		f.chldLate = 100 * ms
		r := f.run(f.job(docker()), f.world())
		if want := 2*sec + 200*ms; r.status != 6 || r.took < want || r.took > want+flushMax {
			t.Errorf("%+v", r)
		}
	})
}

// TestFlushLimit: the last flush ends before the hard deadline.
func TestFlushLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: never, onKill: never})
		in := roomy()
		in.Grace, in.Announce, in.Headroom = set(3*sec), set(0), set(0)
		f.kill(sec, syscall.SIGTERM)
		if r := f.run(f.job(in), f.world()); r.took > 4*sec || r.took < 3900*ms {
			t.Errorf("took %v", r.took)
		}
	})
}

func TestOneLine(t *testing.T) {
	if got := errAttr(fmt.Errorf("a\nb")).Value.String(); got != "a b" {
		t.Errorf("%q", got)
	}
}

// A stop signal that comes together with the end of everything has a deadline
// too: the last lines keep to it.
func TestStopAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in := roomy()
		in.Grace, in.Headroom = set(0), set(0)
		f := newFake(behaviour{leaves: []behaviour{{self: 6*sec - ms/2, onStop: never}}})
		f.chldLate = ms // the signal is heard first
		f.kill(6*sec, syscall.SIGTERM)
		if r := f.run(f.job(in), f.world()); r.took > 6*sec {
			t.Errorf("%+v", r)
		}
	})
}
