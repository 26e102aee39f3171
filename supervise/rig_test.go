package supervise

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"drainit/budget"
	"drainit/config"
	"drainit/hooks"
	"drainit/signals"
)

func set(d time.Duration) budget.Value      { return budget.Value{D: d, Set: true} }
func fallback(d time.Duration) budget.Value { return budget.Value{D: d} }

// roomy is a plan with every figure set and room to spare; from the stop signal
// on: 5 + 10 + 1 + 20 + 1 of 59 s.
func roomy() budget.Input {
	return budget.Input{
		Grace: set(60 * sec), Announce: set(5 * sec), DrainBudget: set(10 * sec),
		DrainTimeout: set(20 * sec), Headroom: set(sec),
	}
}

// docker is what is assumed there.
func docker() budget.Input {
	return budget.Input{Grace: fallback(10 * sec), DrainBudget: fallback(10 * sec), Headroom: fallback(sec)}
}

// job is a run of the fake's phases under a plan.
func (f *fake) job(in budget.Input) Job {
	c := &config.Config{
		Command: []string{"app"}, Service: "app", Budget: in,
		DrainOn:  signals.Of(syscall.SIGTERM, syscall.SIGINT),
		Platform: config.Platform{Name: "docker", Why: "the init is PID 1", Grace: 10 * sec},
	}
	all := hooks.All{
		Phases: hooksOf(hooks.Phase, len(f.phases)), Steps: hooksOf(hooks.Step, len(f.steps)), Companions: hooksOf(hooks.Companion, len(f.beside)),
	}
	in.Phases, in.Companions, in.Waves = len(f.phases), len(f.beside), all.Waves()
	if in.StepTimeout == (budget.Value{}) {
		in.StepTimeout = fallback(budget.DefaultStepTimeout)
	}
	c.Budget = in
	return Job{Config: c, Plan: budget.Make(in), Hooks: all}
}

// hooksOf makes hooks of a kind, each in a wave of its own.
func hooksOf(k hooks.Kind, n int) hooks.Set {
	s := hooks.Set{}
	for i := range n {
		name := fmt.Sprintf("%v-%d", k, i+1)
		s.Hooks = append(s.Hooks, hooks.Hook{Kind: k, Name: name, Path: "/etc/drainit/" + k.Dir() + "/" + name, Order: 10 * (i + 1)})
	}
	return s
}

// result is what a run came to.
type result struct {
	status int
	err    error
	took   time.Duration
}

// watch ends a test whose run does not end.
const watch = 24 * time.Hour

// run runs the job to its end.
func (f *fake) run(job Job, w World) result {
	if f.name == "" {
		f.name = "run"
	}
	hung := time.AfterFunc(watch, func() { panic(f.name + ": the run hangs") })
	defer hung.Stop()
	f.began = time.Now()
	status, err := Run(job, w)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true // the world ends with the init
	return result{status, err, time.Since(f.began)}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// wantEvents compares what was asked of the world, less the records of the log.
func (f *fake) wantEvents(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, e := range f.events {
		var at, word string
		if _, err := fmt.Sscan(e, &at, &word); err == nil && word != "log" {
			got = append(got, e)
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("event %d:\ngot  %q\nwant %q", i, got, want)
		}
	}
}

// wantMessages compares the events of the log.
func (f *fake) wantMessages(t *testing.T, want ...string) {
	t.Helper()
	got := f.messages()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("record %d:\ngot  %q\nwant %q", i, got, want)
		}
	}
}
