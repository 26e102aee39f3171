package supervise

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// environment returns what a phase was told, by name.
func (f *fake) environment(phase int) map[string]string {
	told := map[string]string{}
	for _, entry := range f.specs[phase].Env {
		key, value, _ := strings.Cut(entry, "=")
		told[key] = value
	}
	return told
}

// TestPhaseIsTold: what a phase finds in its environment, and how it is started.
func TestPhaseIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		workload behaviour
		signal   syscall.Signal
		want     map[string]string
	}{
		"TERM": {quiet(), syscall.SIGTERM, map[string]string{
			"DRAINIT_REASON": "TERM", "DRAINIT_WORKLOAD": "running", "DRAINIT_WORKLOAD_PID": "100"}},
		"INT": {quiet(), syscall.SIGINT, map[string]string{
			"DRAINIT_REASON": "INT", "DRAINIT_WORKLOAD": "running", "DRAINIT_WORKLOAD_PID": "100"}},
		"exit": {behaviour{self: sec, status: 7}, 0, map[string]string{
			"DRAINIT_REASON": "exited", "DRAINIT_WORKLOAD": "exited", "DRAINIT_WORKLOAD_PID": "100", "DRAINIT_WORKLOAD_STATUS": "7"}},
		"exit in the announcement": {behaviour{self: 3 * sec}, syscall.SIGTERM, map[string]string{
			"DRAINIT_REASON": "TERM", "DRAINIT_WORKLOAD": "exited", "DRAINIT_WORKLOAD_STATUS": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(c.workload, behaviour{self: 500 * ms}, behaviour{self: sec})
				job := f.job(roomy())
				job.Hooks.Phases.Hooks[0].MaxDuration = 1500 * ms
				if c.signal != 0 {
					f.kill(2*sec, c.signal)
				}
				f.run(job, f.world())
				got := f.environment(1)
				c.want["DRAINIT_HOOK"], c.want["DRAINIT_SERVICE"], c.want["PATH"] = "phase-1", "app", "/bin"
				c.want["DRAINIT_ALLOWED"], c.want["DRAINIT_ALLOWED_MS"] = "1.500", "1500"
				for key, value := range c.want {
					if got[key] != value {
						t.Errorf("%s=%q, want %q", key, got[key], value)
					}
				}
				if _, ok := got["DRAINIT_WORKLOAD_STATUS"]; ok != (got["DRAINIT_WORKLOAD"] == "exited") {
					t.Errorf("%v", got)
				}
				if got := f.environment(2)["DRAINIT_ALLOWED"]; got != "9.500" {
					t.Errorf("the second was allowed %s", got)
				}
				s := f.specs[1]
				if !s.Session || s.Dir != "/srv" || s.Name != "phase-1" || s.Output == nil || s.DieWithInit || s.Foreground {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestLateStart: a phase whose start answers after it was given up gets the KILL
// that it has missed, and the next ones have run in their order meanwhile.
func TestLateStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, status: 143}, behaviour{answer: 4 * sec, self: never, onStop: never}, behaviour{self: 3 * sec})
		in := roomy()
		in.Announce = set(0)
		job := f.job(in)
		job.Hooks.Phases.Hooks[0].MaxDuration = sec
		f.kill(sec, syscall.SIGTERM)
		f.run(job, f.world())
		f.wantEvents(t, "0s start 0", "0s ready", "0s readiness 1", "1s readiness 2", "1s start 1",
			"3s give up", "3s start 2", "5s killed to phase 1", "6s terminated to workload")
		got := f.find("phase ended")
		if got[0].attrs["result"] != "killed" || got[0].attrs["used"] != "2s" || got[1].attrs["result"] != "ok" {
			t.Errorf("%+v", got)
		}
	})
}

// TestLateTold: one that answers between its TERM and its KILL gets the TERM.
func TestLateTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{answer: 1500 * ms, self: never})
		in := roomy()
		in.Announce = set(0)
		job := f.job(in)
		job.Hooks.Phases.Hooks[0].MaxDuration = sec
		f.kill(sec, syscall.SIGTERM)
		f.run(job, f.world())
		if !f.has("2.5s terminated to phase 1") || f.has("killed to phase 1") {
			t.Errorf("%q", f.events)
		}
		if got := f.find("phase ended"); got[0].attrs["result"] != "overran" || got[0].attrs["used"] != "1.5s" {
			t.Errorf("%+v", got)
		}
	})
}

// TestPhaseResults: every result by its name, with what it was allowed and used.
func TestPhaseResults(t *testing.T) {
	for want, c := range map[string]struct {
		phase   behaviour
		used    string
		status  string
		budget  time.Duration
		hurried bool
	}{
		"ok":          {behaviour{self: sec}, "1s", "0", 10 * sec, false},
		"failed":      {behaviour{self: sec, status: 9}, "1s", "9", 10 * sec, false},
		"overran":     {behaviour{self: never, onStop: 300 * ms}, "2.3s", "0", 2 * sec, false},
		"killed":      {behaviour{self: never, onStop: never}, "3s", "", 2 * sec, false},
		"interrupted": {behaviour{self: never, status: 130}, "1s", "130", 10 * sec, true},
		"skipped":     {behaviour{}, "0s", "", 0, false},
	} {
		t.Run(want, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(quiet(), c.phase)
				in := roomy()
				in.Announce, in.DrainBudget = set(0), set(c.budget)
				f.kill(sec, syscall.SIGTERM)
				if c.hurried {
					f.kill(2*sec, syscall.SIGINT)
				}
				f.run(f.job(in), f.world())
				got := f.find("phase ended")[0].attrs
				if got["phase"] != "phase-1" || got["result"] != want || got["used"] != c.used || got["status"] != c.status {
					t.Errorf("%v", got)
				}
				if p := f.last.Phases; len(p) != 1 || p[0].Name != "phase-1" || p[0].Result != want {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

// TestNotStarted: a phase that can't be executed, or whose file has turned bad, is
// a failed one; the next runs.
func TestNotStarted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(quiet(), behaviour{refused: errRefused}, behaviour{changed: errRefused}, behaviour{changed: errRefused})
		f.kill(sec, syscall.SIGTERM)
		r := f.run(f.job(roomy()), f.world())
		var results []string
		for _, p := range f.find("phase ended") {
			results = append(results, p.attrs["result"])
		}
		if !slices.Equal(results, []string{"failed", "failed", "failed"}) || r.status != 143 {
			t.Errorf("%q %+v", results, r)
		}
		if got := f.find("hook not started"); len(got) != 3 || got[1].attrs["error"] != "permission denied" {
			t.Errorf("%+v", got)
		}
		for _, e := range f.events {
			if strings.HasSuffix(e, "start 2") {
				t.Error("a file that has turned bad was started")
			}
		}
	})
}

// TestForkNeverAnswers: a phase whose execve(2) hangs costs its own time alone,
// also where the workload has ended, and the loop does not spin meanwhile.
func TestForkNeverAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: sec, leaves: []behaviour{{self: never, onStop: 2 * sec}}}, behaviour{answer: never})
		in := roomy()
		in.DrainBudget = set(5 * sec)
		r := f.run(f.job(in), f.world())
		if want := 7 * sec; r.took < want || r.took > want+flushMax {
			t.Errorf("took %v", r.took)
		}
		if f.reaps > 200 {
			t.Errorf("reaped %d times", f.reaps)
		}
	})
}
