package supervise

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"drainit/child"
	"drainit/signals"
)

// TestOrder is a whole life: what is asked of the world, and when.
func TestOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: sec, status: 3}, behaviour{self: 2 * sec})
		f.kill(10*sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		f.wantEvents(t, "0s start 0", "0s ready", "0s readiness 1",
			"10s readiness 2", "15s start 1", "17s terminated to workload")
		if r.status != 3 || r.err != nil {
			t.Errorf("%+v", r)
		}
	})
}

// TestForward: what does not drain is passed on, during the drain too; rewritten
// and dropped as the rules say.
func TestForward(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 5 * sec})
		job := f.job(docker())
		job.Config.Rewrites = signals.Rewrites{syscall.SIGHUP: syscall.SIGUSR2, syscall.SIGWINCH: 0}
		for i, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGUSR1, 40} {
			f.kill(time.Duration(i+1)*sec, sig)
		}
		f.run(job, f.world())
		want := []syscall.Signal{syscall.SIGUSR2, syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGUSR1, 40}
		if got := f.main().got; !slices.Equal(got, want) {
			t.Errorf("the workload got %v, want %v", got, want)
		}
	})
}

// TestKept: signals that come before the workload exists are kept for it, one of
// a kind, in order.
func TestKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{answer: 3 * sec, self: 10 * sec})
		f.signals <- syscall.SIGUSR1 // before anything
		f.kill(1*sec, syscall.SIGHUP)
		f.kill(2*sec, syscall.SIGUSR1)
		f.run(f.job(docker()), f.world())
		if got := f.main().got; !slices.Equal(got, []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP}) {
			t.Errorf("the workload got %v", got)
		}
	})
}

// TestSignalGroup: with it all signals, the stop signal too, go to the group.
func TestSignalGroup(t *testing.T) {
	for _, group := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			f := newFake(quiet())
			job := f.job(docker())
			job.Config.SignalGroup = group
			f.kill(sec, syscall.SIGUSR1)
			f.kill(2*sec, syscall.SIGTERM)
			f.run(job, f.world())
			for _, name := range []string{"user defined signal 1", "terminated"} {
				if f.has(name+" to group") != group || f.has(name+" to workload") == group {
					t.Errorf("group %v: %q", group, f.events)
				}
			}
		})
	}
}

// TestDenied: a signal that may not be sent is a warning, once for each.
func TestDenied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: 30 * sec})
		f.denied = syscall.EPERM
		for i := range 3 {
			f.kill(time.Duration(i+1)*sec, syscall.SIGHUP)
		}
		f.kill(5*sec, syscall.SIGTERM)
		r := f.run(f.job(docker()), f.world())
		if got := f.find("signal not sent"); len(got) != 2 || r.status != 0 {
			t.Errorf("%+v, status %d", got, r.status)
		}
	})
}

// TestStopFirst: a stop signal that is there before the start: nothing is
// started, and nothing is remapped.
func TestStopFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), quiet())
		f.signals <- syscall.SIGHUP
		f.signals <- syscall.SIGTERM
		job := f.job(roomy())
		job.Config.RemapExit = map[int]int{143: 0}
		r := f.run(job, f.world())
		f.wantEvents(t, "0s readiness 2")
		f.wantMessages(t, "signal received", "shutdown complete")
		if r.status != 143 || r.err != nil {
			t.Errorf("%+v", r)
		}
	})
}

// TestStopDuringFork: the workload is told as soon as it exists; one that never
// does is not waited for.
func TestStopDuringFork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{answer: 2 * sec, self: never, status: 143})
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(docker()), f.world())
		f.wantEvents(t, "0s start 0", "1s readiness 2", "2s ready", "2s terminated to workload")
		if r.status != 143 {
			t.Errorf("%+v", r)
		}
	})
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{answer: never})
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(docker()), f.world())
		if r.status != 143 || r.took < 11*sec || r.took > 11*sec+flushMax || f.find("shutdown complete")[0].attrs["ended_by"] != "never started" {
			t.Errorf("%+v %+v", r, f.find("shutdown complete"))
		}
	})
}

// TestEndsBeforeKnown: a process may have ended before the init hears that it was
// started; its CHLD has come and gone by then.
func TestEndsBeforeKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec, slow: 2 * sec, status: 5}, behaviour{self: sec, slow: 3 * sec})
		r := f.run(f.job(roomy()), f.world())
		f.wantEvents(t, "0s start 0", "2s ready", "2s readiness 1", "2s readiness 2", "2s start 1")
		if got := f.find("phase ended"); r.status != 5 || got[0].attrs["result"] != "ok" {
			t.Errorf("%+v %+v", r, got)
		}
	})
}

// TestStartFails: the error is returned for main to print, nothing is drained.
func TestStartFails(t *testing.T) {
	for want, refused := range map[int]error{
		127: &child.StartError{Name: "app", Reason: "not found", Status: 127},
		126: errors.New("resource temporarily unavailable"),
	} {
		bubble(t, func(t *testing.T) {
			f := newFake(behaviour{refused: refused}, quiet())
			job := f.job(roomy())
			job.Config.RemapExit = map[int]int{want: 0}
			r := f.run(job, f.world())
			f.wantEvents(t, "0s start 0", "0s readiness 2")
			if r.status != want || r.err != refused {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestStopWithTheAnswer: a signal that is read together with the answer comes
// first; nothing is said after the end.
func TestStopWithTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{refused: errRefused})
		w := f.world()
		next := w.Next
		w.Next = func(until time.Time) (syscall.Signal, bool) {
			if sig, ok := next(until); ok && sig != syscall.SIGCHLD {
				return sig, true
			} else if !ok {
				return 0, false
			}
			return syscall.SIGTERM, true // the answer is there by now
		}
		r := f.run(f.job(docker()), w)
		f.wantMessages(t, "signal received", "shutdown complete")
		if r.status != 143 || r.err != nil {
			t.Errorf("%+v", r)
		}
	})
}

// TestRemap: the workload's own final status, once; not a KILL by the init.
func TestRemap(t *testing.T) {
	rules := map[int]int{143: 0, 0: 5, 126: 1, 137: 9}
	for _, c := range []struct {
		workload behaviour
		want     int
	}{
		{behaviour{self: never, status: 143}, 0},
		{behaviour{self: 2 * sec}, 5},
		{behaviour{self: 2 * sec, status: 126}, 1},
		{behaviour{self: 2 * sec, status: 137}, 9},
		{behaviour{self: 2 * sec, status: 4}, 4},
		{behaviour{self: never, onStop: never}, 137},
	} {
		bubble(t, func(t *testing.T) {
			f := newFake(c.workload)
			job := f.job(roomy())
			job.Config.RemapExit = rules
			f.kill(sec, syscall.SIGTERM)
			if r := f.run(job, f.world()); r.status != c.want {
				t.Errorf("%+v: status %d, want %d", c.workload, r.status, c.want)
			}
		})
	}
}
