package supervise

import (
	"syscall"
	"testing"
	"time"

	"drainit/probe"
)

// at looks at what /metrics would show after a while.
func (f *fake) at(after time.Duration, look func(*probe.Snapshot)) {
	time.AfterFunc(after, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		look(f.last)
	})
}

// TestSnapshot follows the metrics over a life.
func TestSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 2 * sec}, behaviour{self: sec}, behaviour{self: 2 * sec, status: 1})
		f.kill(2*sec, syscall.SIGHUP)
		f.kill(4*sec, syscall.SIGTERM)
		state := func(after time.Duration, want string) {
			f.at(after, func(s *probe.Snapshot) {
				if s.State != want {
					t.Errorf("after %v the state is %q, want %q", after, s.State, want)
				}
			})
		}
		state(sec, "running")
		f.at(3*sec, func(s *probe.Snapshot) {
			if s.Signals["HUP"] != 1 || !s.StoppedAt.IsZero() || len(s.Stages) != 0 || s.RunningStage != "" {
				t.Errorf("%+v", s)
			}
			if s.Service != "app" || s.Version != "v0" || s.Grace != 60 || !s.GraceKnown || len(s.States) != 11 {
				t.Errorf("%+v", s)
			}
			var sum float64
			for _, b := range s.Budget {
				sum += b.Seconds
			}
			if len(s.Budget) != 10 || sum != 38 {
				t.Errorf("%+v", s.Budget)
			}
		})
		state(5*sec, "announce")
		f.at(5*sec, func(s *probe.Snapshot) {
			if s.StoppedAt.Sub(f.began) != 4*sec || s.RunningStage != "announce" || s.StageSince.Sub(f.began) != 4*sec || s.Done {
				t.Errorf("%+v", s)
			}
		})
		state(11*sec, "phases")
		f.at(11*sec, func(s *probe.Snapshot) {
			if len(s.Phases) != 1 || s.Phases[0] != (probe.PhaseResult{Name: "phase-1", Seconds: 1, Result: "ok"}) {
				t.Errorf("%+v", s.Phases)
			}
			if len(s.Stages) != 1 || s.Stages[0] != (probe.Timed{Name: "announce", Seconds: 5}) {
				t.Errorf("%+v", s.Stages)
			}
		})
		state(13*sec, "gate")
		f.run(f.job(roomy()), f.world())
		s := f.last
		if s.State != "end" || !s.Done || s.Shutdown != 10*sec || s.RunningStage != "" || len(s.Stages) != 3 || len(s.Phases) != 2 {
			t.Errorf("%+v", s)
		}
		if s.Phases[1].Result != "failed" || s.Signals["TERM"] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestSnapshotSelfExit: without a stop signal there is no shutdown to time.
func TestSnapshotSelfExit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in := docker()
		in.Grace, in.Unlimited = fallback(0), true
		f := newFake(behaviour{self: sec}, behaviour{self: sec})
		f.run(f.job(in), f.world())
		if s := f.last; s.Shutdown != 0 || !s.Done || !s.StoppedAt.IsZero() || s.GraceKnown || s.State != "end" {
			t.Errorf("%+v", s)
		}
	})
}

// TestSnapshotsAreTheirOwn: what was published is not changed any more.
func TestSnapshotsAreTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{self: sec})
		f.kill(sec, syscall.SIGTERM)
		f.run(f.job(roomy()), f.world())
		if first := f.snaps[0]; first.State != "starting" || len(first.Signals) != 0 || len(first.Stages) != 0 || len(first.Phases) != 0 {
			t.Errorf("%+v", first)
		}
	})
}

// TestReadiness: ready once, draining once.
func TestReadiness(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: sec, leaves: []behaviour{{self: never, onStop: sec}}})
		f.kill(sec, syscall.SIGTERM)
		f.kill(2*sec, syscall.SIGTERM)
		f.run(f.job(roomy()), f.world())
		if len(f.statuses) != 2 || f.statuses[0] != probe.Ready || f.statuses[1] != probe.Draining {
			t.Errorf("%v", f.statuses)
		}
	})
}

// TestNoProbe: the loop does without a listener.
func TestNoProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		w := f.world()
		w.Probe = nil
		f.kill(sec, syscall.SIGTERM)
		if r := f.run(f.job(docker()), w); r.status != 143 {
			t.Errorf("%+v", r)
		}
	})
}
