package supervise

import (
	"log/slog"
	"syscall"
	"testing"
	"time"
)

// TestPlanIsLogged: every figure, the sum, the grace, and whether it fits.
func TestPlanIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec}, quiet())
		f.run(f.job(roomy()), f.world())
		want := map[string]string{
			"prestop": "0s", "announce": "5s", "phases": "10s", "unwind": "1s", "drain_timeout": "20s",
			"kill": "1s", "companions": "0s", "waves": "0s", "linger": "0s", "headroom": "1s", "sum": "38s", "grace": "1m0s", "assumed": "false", "fits": "true",
		}
		got := f.find("drain plan")
		if len(got) != 1 || len(got[0].attrs) != len(want) {
			t.Fatalf("%+v", got)
		}
		for key, value := range want {
			if got[0].attrs[key] != value {
				t.Errorf("%s = %q, want %q", key, got[0].attrs[key], value)
			}
		}
	})
}

func TestAssumedIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 20 * sec})
		f.kill(sec, syscall.SIGTERM)
		f.run(f.job(docker()), f.world())
		f.wantMessages(t, "grace assumed", "drain plan", "workload started", "signal received",
			"stage began", "stage began", "assumed grace period passed", "workload exited", "shutdown complete")
		plan := f.find("drain plan")[0].attrs
		if plan["drain_timeout"] != "8s" || plan["sum"] != "10s" || plan["assumed"] != "true" {
			t.Errorf("%v", plan)
		}
		if a := f.find("grace assumed")[0].attrs; a["platform"] != "docker" || a["why"] == "" || a["grace"] != "10s" || a["enforced"] != "false" {
			t.Errorf("%v", a)
		}
		if w := f.find("assumed grace period passed")[0]; w.level != slog.LevelWarn || w.at != 10*sec {
			t.Errorf("%+v", w)
		}
	})
}

// 44: what does not fit is warned about with every figure and the shortfall.
func TestMisfitIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in := roomy()
		in.Grace = set(17 * sec)
		f := newFake(behaviour{self: sec}, quiet())
		f.run(f.job(in), f.world())
		got := f.find("drain plan does not fit")
		if len(got) != 1 || got[0].level != slog.LevelWarn || got[0].attrs["shortfall"] != "21s" || got[0].attrs["phases"] != "10s" {
			t.Errorf("%+v", got)
		}
		if f.find("drain plan")[0].attrs["fits"] != "false" {
			t.Errorf("%+v", f.find("drain plan"))
		}
	})
}

func TestUnlimitedIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		in := docker()
		in.Grace, in.Unlimited = fallback(0), true
		f := newFake(behaviour{self: sec})
		f.run(f.job(in), f.world())
		if a := f.find("drain plan")[0].attrs; a["grace"] != "none" || a["sum"] != "no limit" || a["fits"] != "true" {
			t.Errorf("%v", a)
		}
		if len(f.find("grace assumed"))+len(f.find("drain plan does not fit")) != 0 {
			t.Errorf("%q", f.messages())
		}
	})
}

// TestStopIsLoggedFirst: the record of the stop signal is queued before anything
// else happens, and the last one says what became of it all.
func TestStopIsLoggedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 2 * sec, status: 143}, behaviour{self: sec, status: 1})
		job := f.job(roomy())
		job.Config.RemapExit = map[int]int{143: 0}
		f.kill(10*sec, syscall.SIGTERM)
		f.kill(11*sec, syscall.SIGTERM)
		f.kill(12*sec, syscall.SIGTERM)
		f.run(job, f.world())
		for _, e := range f.events {
			if len(e) > 4 && e[:4] == "10s " {
				if e != "10s log signal received" {
					t.Errorf("first is %q", e)
				}
				break
			}
		}
		f.wantMessages(t, "drain plan", "workload started", "signal received", "stage began", "signal ignored",
			"stage began", "phase started", "phase ended", "stage began", "workload exited", "shutdown complete")
		last := f.find("shutdown complete")[0]
		want := map[string]string{
			"announce": "5s", "phases": "1s", "gate": "2s", "total": "8s", "workload_status": "143",
			"ended_by": "stop signal", "exit_status": "0",
		}
		if len(last.attrs) != len(want) || last.level != slog.LevelInfo {
			t.Errorf("%+v", last)
		}
		for key, value := range want {
			if last.attrs[key] != value {
				t.Errorf("%s = %q, want %q", key, last.attrs[key], value)
			}
		}
	})
}

// A signal after the workload's own end is received once, as any other.
func TestStopAfterExitIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec}, behaviour{self: 8 * sec})
		for i := range 4 {
			f.kill(time.Duration(i+2)*sec, syscall.SIGTERM)
		}
		f.run(f.job(roomy()), f.world())
		f.wantMessages(t, "drain plan", "workload started", "workload exited", "stage began", "phase started",
			"signal received", "stop joined", "signal ignored", "phase ended", "shutdown complete")
		if total := f.find("shutdown complete")[0].attrs["total"]; total != "8s" {
			t.Errorf("total %s", total)
		}
	})
}

// TestLevels: normal endings are INFO; WARN is what overran or was killed.
func TestLevels(t *testing.T) {
	warns := func(f *fake) (all []string) {
		for _, r := range f.records {
			if r.level > slog.LevelWarn {
				t.Errorf("%+v", r)
			}
			if r.level == slog.LevelWarn {
				all = append(all, r.msg)
			}
		}
		return all
	}
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{self: sec})
		f.kill(sec, syscall.SIGTERM)
		f.run(f.job(roomy()), f.world())
		if got := warns(f); got != nil {
			t.Errorf("%q", got)
		}
	})
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: never, onKill: 10 * ms}, behaviour{self: never})
		f.kill(sec, syscall.SIGTERM)
		f.run(f.job(roomy()), f.world())
		want := []string{"phase ended", "stage overran", "workload killed"}
		got := warns(f)
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("%q", got)
		}
		killed, over := f.find("workload killed")[0].attrs, f.find("stage overran")[0].attrs
		if killed["count"] != "1" || over["stage"] != "gate" || over["window"] != "20s" {
			t.Errorf("%v %v", killed, over)
		}
		if by := f.find("shutdown complete")[0].attrs["ended_by"]; by != "drainit, by KILL" {
			t.Errorf("ended by %s", by)
		}
	})
}

// TestInterruptIsLogged: what an INT cut short.
func TestInterruptIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: never}, quiet(), quiet())
		f.kill(sec, syscall.SIGTERM)
		f.kill(8*sec, syscall.SIGINT)
		f.kill(8050*ms, syscall.SIGINT)
		f.kill(10*sec, syscall.SIGINT)
		f.run(f.job(roomy()), f.world())
		f.wantMessages(t, "drain plan", "workload started", "signal received", "stage began", "stage began",
			"phase started", "stage cut short", "phase ended", "phase ended", "stage began",
			"stage cut short", "stage began", "workload killed", "workload exited", "shutdown complete")
		if got := f.find("phase ended"); got[0].attrs["result"] != "skipped" || got[1].attrs["result"] != "interrupted" {
			t.Errorf("%+v", got)
		}
	})
}

// TestExitIsLogged: by which signal the workload ended.
func TestExitIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: never})
		f.kill(sec, syscall.SIGTERM)
		f.kill(2*sec, syscall.SIGINT)
		f.run(f.job(docker()), f.world())
		if a := f.find("workload exited")[0].attrs; a["status"] != "137" || a["signal"] != "KILL" {
			t.Errorf("%v", a)
		}
	})
}

// TestSurprisesAreLogged: what the plan makes of hooks, and a drain that nothing
// starts, are told at the start.
func TestSurprisesAreLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec}, behaviour{self: 0})
		job := f.job(docker())
		job.Config.DrainOn = 0
		job.Hooks.Phases.Hooks[0].MaxDuration = 5 * sec
		f.run(job, f.world())
		short := f.find("phase has less than it declares")
		if len(short) != 1 || short[0].level != slog.LevelWarn || short[0].attrs["max_duration"] != "5s" {
			t.Errorf("%+v", short)
		}
		if none := f.find("no signal starts the drain"); len(none) != 1 || none[0].level != slog.LevelWarn {
			t.Errorf("%+v", none)
		}
	})
}

// TestBlindIsLogged: without /proc what left the group can't be reached, and
// that is told once.
func TestBlindIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec, leaves: []behaviour{{self: never, onStop: never, onKill: never}}})
		f.noProc = true
		f.run(f.job(docker()), f.world())
		if got := f.find("processes can't be listed"); len(got) != 1 || got[0].level != slog.LevelWarn {
			t.Errorf("%+v", got)
		}
	})
}

// TestEndedBySignal: who was ended by a signal that was not the stop signal did
// not end by itself.
func TestEndedBySignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: never})
		f.kill(sec, syscall.SIGHUP)
		time.AfterFunc(2*sec, func() { f.end(f.main(), syscall.SIGHUP) })
		f.run(f.job(docker()), f.world())
		if got := f.find("shutdown complete")[0].attrs["ended_by"]; got != "signal HUP" {
			t.Errorf("ended by %q", got)
		}
	})
}
