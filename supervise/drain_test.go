package supervise

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"drainit/control"
	"drainit/probe"
)

func asks(id uint64, verb string) control.Call {
	return control.Call{ID: id, Request: control.Request{Verb: verb}}
}

// answeredTo returns who was answered what, and when.
func (f *fake) answeredTo() []string {
	var all []string
	for _, e := range f.events {
		if strings.Contains(e, " answer ") {
			all = append(all, e)
		}
	}
	return all
}

func (f *fake) wantAnswers(t *testing.T, want ...string) {
	t.Helper()
	if got := f.answeredTo(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A drain that was asked for runs its stages, and the workload goes on; the stop
// signal later does not wait or run anything again.
func TestDrainAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: sec}, behaviour{self: 2 * sec})
		f.ask(sec, asks(1, control.Drain))
		f.kill(600*sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		f.wantAnswers(t, "8s answer 0 to 1")
		if took := r.took - 600*sec; took < sec || took > sec+flushMax {
			t.Errorf("took %v", took)
		}
		env := f.specs[tag(0, 0, false)].Env
		if !slices.Contains(env, "DRAINIT_REASON=drain") || !slices.Contains(env, "DRAINIT_SOCKET=@fake") {
			t.Errorf("%q", env)
		}
		end := f.find("shutdown complete")[0].attrs
		if end["announce"] != "5s" || end["phases"] != "2s" || end["total"] != "1s" {
			t.Errorf("%v", end)
		}
	})
}

// Two clients share one drain; the one that leaves takes nothing with it.
func TestDrainShared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 0}, behaviour{self: 2 * sec, status: 1})
		f.ask(sec, asks(1, control.Drain))
		f.ask(2*sec, asks(2, control.Drain))
		f.ask(3*sec, control.Call{ID: 1, Left: true})
		f.kill(60*sec, syscall.SIGTERM)
		f.run(f.job(roomy()), f.world())
		f.wantAnswers(t, "8s answer 1 to 2")
		if !f.has("say to 2: a drain is under way; waiting for its end") {
			t.Errorf("%q", f.events)
		}
	})
}

// The last client's leaving calls a drain off that has not begun its phases; the
// shutdown runs them.
func TestDrainCalledOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 0}, behaviour{self: 2 * sec})
		f.ask(sec, asks(1, control.Drain))
		f.ask(2*sec, control.Call{ID: 1, Left: true})
		f.kill(60*sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		want := []probe.Status{probe.Ready, probe.Draining, probe.Ready, probe.Draining}
		if !slices.Equal(f.statuses, want) {
			t.Errorf("%v", f.statuses)
		}
		if took := r.took - 60*sec; took < 7*sec || took > 7*sec+flushMax {
			t.Errorf("took %v", took)
		}
		if !slices.Contains(f.specs[tag(0, 0, false)].Env, "DRAINIT_REASON=TERM") {
			t.Error("the reason is another")
		}
		if end := f.find("shutdown complete")[0].attrs; end["announce"] != "5s" || end["total"] != "7s" {
			t.Errorf("%v", end)
		}
	})
}

// undrain answers whoever waits, and is refused once a phase has begun.
func TestUndrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 0}, behaviour{self: 5 * sec})
		f.ask(sec, asks(1, control.Drain))
		f.ask(2*sec, asks(2, control.Undrain))
		f.ask(10*sec, asks(3, control.Drain))
		f.ask(17*sec, asks(4, control.Undrain))
		f.ask(18*sec, asks(5, control.Announce))
		f.kill(60*sec, syscall.SIGTERM)
		f.run(f.job(roomy()), f.world())
		f.wantAnswers(t, "2s answer 2 to 1", "2s answer 0 to 2", "17s answer 1 to 4", "18s answer 0 to 5", "20s answer 0 to 3")
	})
}

// The announcement alone changes nothing else, and the stop signal counts from it.
func TestAnnounceAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 0})
		f.ask(sec, asks(1, control.Announce))
		f.ask(2*sec, asks(2, control.Announce))
		f.ask(3*sec, asks(3, control.Status))
		f.kill(4*sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		f.wantAnswers(t, "1s answer 0 to 1", "2s answer 0 to 2")
		if took := r.took - 4*sec; took < 2*sec || took > 2*sec+flushMax {
			t.Errorf("took %v", took)
		}
		if s := f.toldState; s == nil || s.State != "running" || s.Readiness != "draining" || s.WorkloadPID != 100 || s.LeftSeconds != nil {
			t.Errorf("%+v", s)
		}
	})
}

// A drain that was asked for during the start hides no failure of it.
func TestDrainDuringFailingStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.steps = []behaviour{{self: 3 * sec, status: 2}}
		f.ask(sec, asks(1, control.Drain))
		r := f.run(f.job(full()), f.world())
		if r.status != 125 || r.err == nil || len(f.find("step failed")) != 1 {
			t.Errorf("%+v", r)
		}
		f.wantAnswers(t, "3s answer 0 to 1")
	})
}

// Status tells every kind of hook, the time that is left and the deadline.
func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 0}, behaviour{self: 4 * sec}, behaviour{})
		f.steps, f.beside = []behaviour{{self: sec}}, []behaviour{lasting()}
		f.kill(2*sec, syscall.SIGTERM)
		f.ask(8*sec, asks(1, control.Status))
		f.run(f.job(full()), f.world())
		got, err := json.Marshal(f.toldState)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"state":"phases","readiness":"draining","service":"app","version":"v0","reason":"TERM",` +
			`"uptime_seconds":8,"stage_seconds":1,"left_seconds":9,"deadline_seconds":113,"workload_pid":100,` +
			`"phases":[{"name":"phase-1","state":"running","seconds":1},{"name":"phase-2","state":"waiting","seconds":0}],` +
			`"steps":[{"name":"step-1","state":"started","seconds":1}],` +
			`"companions":[{"name":"companion-1","state":"running","pid":33554533,"restarts":0}]}`
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A drain that a preStop hook ran: the deadline counts from its start.
func TestPrestopDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in := roomy()
		in.Grace, in.Headroom, in.Announce = set(20*sec), set(0), set(3*sec)
		f := newFake(behaviour{self: never, onStop: never}, behaviour{self: 5 * sec})
		f.ask(10*sec, asks(1, control.Drain))
		f.kill(19*sec, syscall.SIGTERM)
		r := f.run(f.job(in), f.world())
		if r.took < 29*sec || r.took > 30*sec {
			t.Errorf("ended after %v, 30s is the deadline", r.took)
		}
	})
}

// A flood of calls keeps no signal from being heard.
func TestCallsDoNotStarve(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 0})
		over := make(chan struct{})
		time.AfterFunc(sec, func() {
			for i := uint64(1); ; i++ {
				select {
				case f.calls <- asks(i, control.Status):
					f.wake()
				case <-over:
					return
				}
			}
		})
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(docker()), f.world())
		close(over)
		if r.took > 2*sec {
			t.Errorf("%+v", r)
		}
	})
}

// The report: after a stop signal, and else only where it was asked for.
func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		stop, set bool
		want      int
	}{"stop": {true, false, 1}, "its own end": {false, false, 0}, "its own end, asked for": {false, true, 1}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(behaviour{self: 5 * sec, status: 3, onStop: sec}, behaviour{self: sec}, behaviour{self: sec, status: 1})
				if c.stop {
					f.kill(2*sec, syscall.SIGTERM)
				}
				job := f.job(roomy())
				job.Config.ReportSet = c.set
				f.run(job, f.world())
				if len(f.reports) != c.want {
					t.Fatalf("%d reports", len(f.reports))
				}
				for _, line := range f.reports {
					var r struct {
						Reason string             `json:"reason"`
						Stages map[string]float64 `json:"stages"`
						Phases []struct{ Name, Result string }
						Status int `json:"workload_status"`
					}
					if err := json.Unmarshal(line, &r); err != nil {
						t.Fatal(err)
					}
					want := map[bool]string{true: "TERM", false: "exited"}[c.stop]
					if r.Reason != want || r.Status != 3 || len(r.Phases) != 2 || r.Phases[1].Result != "failed" || r.Stages["phases"] != 2 {
						t.Errorf("%s", line)
					}
				}
			})
		})
	}
}

// A companion that has ended in the shutdown has stopped.
func TestStatusOfStoppedCompanions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.steps, f.undo = []behaviour{{}}, []behaviour{{self: 3 * sec}}
		f.beside = []behaviour{lasting(), {self: 8 * sec}, {self: never, onStop: 3 * sec}}
		f.kill(3*sec, syscall.SIGTERM) // companions from 8 s on
		f.ask(9500*ms, asks(1, control.Status))
		f.run(f.job(full()), f.world())
		var got []string
		for _, c := range f.toldState.Companions {
			got = append(got, c.State)
		}
		if !slices.Equal(got, []string{"stopped", "stopped", "running"}) {
			t.Errorf("%q", got)
		}
	})
}
