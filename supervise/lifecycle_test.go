package supervise

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"drainit/budget"
	"drainit/probe"
)

// full is a plan with room for steps and companions.
func full() budget.Input {
	in := roomy()
	in.Grace, in.StepTimeout = set(120*sec), set(10*sec)
	return in
}

// lasting is a companion that obeys.
func lasting() behaviour { return behaviour{self: never, onStop: sec} }

// called returns what hooks were called with, in order.
func (f *fake) called() []string {
	var all []string
	for _, r := range f.records {
		switch r.msg {
		case "step starting", "step stopping":
			all = append(all, strings.TrimPrefix(r.msg, "step ")+" "+r.attrs["step"])
		case "companion started":
			all = append(all, "companion "+r.attrs["companion"])
		case "workload started", "workload exited":
			all = append(all, r.msg)
		}
	}
	return all
}

// The steps start in their order, then the companions, then the workload; and
// they end in the reverse one.
func TestLifecycle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{self: sec})
		f.steps = []behaviour{{self: sec}, {self: 2 * sec}}
		f.undo = []behaviour{{self: sec}, {self: 3 * sec}}
		f.beside = []behaviour{lasting(), lasting()}
		f.kill(10*sec, syscall.SIGTERM)
		r := f.run(f.job(full()), f.world())
		want := []string{
			"starting step-1", "starting step-2", "companion companion-1", "companion companion-2", "workload started",
			"workload exited", "stopping step-2", "stopping step-1",
		}
		if got := f.called(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if r.status != 143 || r.err != nil {
			t.Errorf("%+v", r)
		}
		// 5 announce, 1 phase, 1 companions, 3 and 1 the stops
		if took := r.took - 10*sec; took < 11*sec || took > 11*sec+flushMax {
			t.Errorf("took %v", took)
		}
		end := f.find("shutdown complete")[0].attrs
		if end["companions"] != "1s" || end["lifecycle"] != "4s" {
			t.Errorf("%v", end)
		}
		if argv := f.specs[tag(1, 0, true)].Argv; len(argv) != 2 || argv[1] != "stop" {
			t.Errorf("called with %q", argv)
		}
	})
}

// Readiness is unavailable until everything has started.
func TestReadyBehindSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.steps = []behaviour{{self: 3 * sec}}
		f.kill(10*sec, syscall.SIGTERM)
		f.run(f.job(full()), f.world())
		if !slices.Equal(f.statuses, []probe.Status{probe.Ready, probe.Draining}) || !f.has("3s readiness 1") {
			t.Errorf("%v %q", f.statuses, f.events)
		}
	})
}

// A start that fails is what the run ends with: those before it are stopped, and
// nothing else is started.
func TestStepFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{self: sec})
		f.steps = []behaviour{{self: sec}, {self: sec, status: 3}, {self: sec}}
		f.beside = []behaviour{lasting()}
		r := f.run(f.job(full()), f.world())
		want := []string{"starting step-1", "starting step-2", "stopping step-1"}
		if got := f.called(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		var e *StepError
		if r.status != 125 || !errors.As(r.err, &e) || e.Error() != `start step "step-2": exit status 3` {
			t.Errorf("%+v", r)
		}
		if len(f.reports) != 1 || !strings.Contains(string(f.reports[0]), `"reason":"failed"`) {
			t.Errorf("%s", f.reports)
		}
	})
}

// The error that is told is the first, whatever fails behind it.
func TestStopFailsToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.steps = []behaviour{{self: sec}, {refused: errRefused}}
		f.undo = []behaviour{{self: sec, status: 9}}
		r := f.run(f.job(full()), f.world())
		var e *StepError
		if r.status != 125 || !errors.As(r.err, &e) || e.Step != "step-2" {
			t.Errorf("%+v", r)
		}
		stopped := f.find("step stopped")
		if len(stopped) != 1 || stopped[0].attrs["status"] != "9" || stopped[0].attrs["result"] != "failed" {
			t.Errorf("%+v", stopped)
		}
	})
}

// A stop signal during a start: what runs may finish, nothing further starts.
func TestStopDuringSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{self: sec})
		f.steps = []behaviour{{self: 5 * sec}, {self: sec}}
		f.kill(2*sec, syscall.SIGTERM)
		r := f.run(f.job(full()), f.world())
		want := []string{"starting step-1", "stopping step-1"}
		if got := f.called(); !slices.Equal(got, want) || len(f.find("phase started")) > 0 {
			t.Errorf("got %q, want %q", got, want)
		}
		if r.status != 143 || r.err != nil || r.took < 5*sec || r.took > 5*sec+flushMax {
			t.Errorf("%+v", r)
		}
	})
}

// What a step's start left behind is told once its stop has ended, and killed at
// the end of the wave's window.
func TestStepLeavesSome(t *testing.T) {
	for name, c := range map[string]struct {
		onStop time.Duration
		took   time.Duration
		result string
	}{"it obeys": {2 * sec, 3 * sec, "ok"}, "it does not": {never, 10 * sec, "killed"}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(behaviour{self: 5 * sec})
				f.steps = []behaviour{{self: sec, leaves: []behaviour{{self: never, onStop: c.onStop}}}}
				f.undo = []behaviour{{self: sec}}
				r := f.run(f.job(full()), f.world())
				if took := r.took - 6*sec; took < c.took || took > c.took+lookAgain+flushMax {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got := f.find("step stopped")[0].attrs["result"]; got != c.result {
					t.Errorf("result %s", got)
				}
				if !f.has("terminated to 1 left") || f.has("killed to 1 left") != (c.result == "killed") || !f.has("forget 16777217") {
					t.Errorf("%q", f.events)
				}
			})
		})
	}
}

// A companion that ends is started again, later each time, and not any more once
// it has been told to stop.
func TestCompanionRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.beside = []behaviour{{self: sec, status: 4, onStop: 0}}
		f.kill(30*sec, syscall.SIGTERM)
		f.at(20*sec, func(s *probe.Snapshot) {
			if len(s.Companions) != 1 || s.Companions[0].Restarts < 3 || s.Companions[0].Restarts > 4 {
				t.Errorf("%+v", s.Companions)
			}
		})
		r := f.run(f.job(full()), f.world())
		var pauses []time.Duration
		for _, rec := range f.find("companion ended") {
			d, err := time.ParseDuration(rec.attrs["restart_in"])
			if err != nil || rec.attrs["status"] != "4" {
				t.Errorf("%+v", rec)
			}
			pauses = append(pauses, d)
		}
		for i, least := range []time.Duration{sec, 2 * sec, 4 * sec, 8 * sec} {
			if pauses[i] < least || pauses[i] > least*6/5 {
				t.Errorf("pause %d: %v", i, pauses[i])
			}
		}
		if r.took > 30*sec+5*sec+sec+flushMax {
			t.Errorf("%+v", r)
		}
	})
}

// One that can't be started costs nothing but warnings.
func TestCompanionRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: 10 * sec, status: 5})
		f.beside = []behaviour{{refused: errRefused}}
		r := f.run(f.job(full()), f.world())
		if n := len(f.find("hook not started")); r.status != 5 || n < 3 || n > 4 {
			t.Errorf("%+v, %d attempts", r, n)
		}
	})
}

// One that does not obey is killed at the end of their window, and the steps
// still have theirs.
func TestCompanionKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.steps, f.undo = []behaviour{{}}, []behaviour{{self: 2 * sec}}
		f.beside = []behaviour{{self: never, onStop: never}}
		f.kill(10*sec, syscall.SIGTERM)
		r := f.run(f.job(full()), f.world())
		if took := r.took - 10*sec; took < 17*sec || took > 17*sec+flushMax || len(f.find("companion killed")) != 1 {
			t.Errorf("took %v, %q", took, f.messages())
		}
	})
}

// The plan is told before the steps run.
func TestPlanBeforeSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec})
		f.steps, f.beside = []behaviour{{self: sec}, {}}, []behaviour{lasting()}
		f.run(f.job(full()), f.world())
		plan := f.records[0]
		if plan.msg != "drain plan" || plan.attrs["companions"] != "10s" || plan.attrs["waves"] != "20s" {
			t.Errorf("%+v", plan)
		}
	})
}

// A plan that fits only at the workload's or the announcement's cost says so.
func TestTightPlan(t *testing.T) {
	for name, c := range map[string]struct {
		in   budget.Input
		want int
	}{
		"room for all": {full(), 0},
		"no time for the workload": {budget.Input{
			Grace: set(30 * sec), Linger: set(28 * sec), Headroom: fallback(sec)}, 1},
		"no announcement": {budget.Input{
			Grace: set(30 * sec), Announce: fallback(5 * sec), DrainTimeout: set(27 * sec), Headroom: fallback(sec)}, 1},
		"does not fit at all": {budget.Input{Grace: set(3 * sec), DrainTimeout: set(9 * sec)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(behaviour{self: sec})
				f.run(f.job(c.in), f.world())
				if got := len(f.find("drain plan is tight")); got != c.want {
					t.Errorf("warned %d times: %q", got, f.messages())
				}
			})
		})
	}
}

// The report has a step's stop where that was called, else its start.
func TestReportedSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec})
		f.steps, f.undo = []behaviour{{self: sec}}, []behaviour{{self: 3 * sec, status: 1}}
		job := f.job(full())
		job.Config.ReportSet = true
		f.run(job, f.world())
		if got := string(f.reports[0]); !strings.Contains(got, `"steps":[{"name":"step-1","result":"failed","seconds":3}]`) {
			t.Error(got)
		}
	})
}

// A run that a failed start ends has a last line, too.
func TestLastLineBehindAFailedStep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.steps = []behaviour{{}, {status: 1}}
		f.run(f.job(full()), f.world())
		if m := f.messages(); m[len(m)-1] != "shutdown complete" {
			t.Errorf("%q", m)
		}
	})
}

// Companions that fill a wide window are told and killed by one look at all
// processes each.
func TestCompanionsAreSignalledTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		for range 20 {
			f.beside = append(f.beside, behaviour{self: never, onStop: never})
		}
		f.kill(10*sec, syscall.SIGTERM)
		f.run(f.job(full()), f.world())
		if f.looks != 2 {
			t.Errorf("%d calls", f.looks)
		}
	})
}

// The last line has its time, however long what was done before it took.
func TestLastLineBehindSlowKills(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet())
		f.beside = []behaviour{{self: never, onStop: never}}
		f.slowly = 300 * ms
		f.kill(10*sec, syscall.SIGTERM)
		f.run(f.job(full()), f.world())
		if total := f.find("shutdown complete")[0].attrs["total"]; f.flushed < flushMax/2 || total != "15.3s" {
			t.Errorf("%v for the last lines, total %s", f.flushed, total)
		}
	})
}
