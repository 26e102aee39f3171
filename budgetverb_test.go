package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drainit/budget"
	"drainit/config"
	"drainit/hooks"
)

// viewOf is the plan of flags, with so many phases, companions and waves.
func viewOf(t *testing.T, phases, companions, waves int, flags ...string) *planView {
	t.Helper()
	r, err := config.Parse(config.World{
		Args: append([]string{"budget"}, flags...), PID: 2, Env: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	in := r.Budget.Budget
	in.Phases, in.Companions, in.Waves = phases, companions, waves
	return &planView{platform: r.Budget.Platform, in: in, plan: budget.Make(in)}
}

func TestBudgetText(t *testing.T) {
	for _, c := range []struct {
		name string
		view *planView
		want string
	}{
		{"nothing set, on Kubernetes", viewOf(t, 1, 0, 0, "--platform=kubernetes"), `
prestop         0s                                           default
announce        5s  #######                                  by platform
phases         10s  #############                            default
unwind          1s  #                                        fixed
drain_timeout  12s  ################                         what is left
kill            1s  #                                        fixed
companions      0s                                           no companion
waves           0s                                           no step
linger          0s                                           default
headroom        1s  #                                        default
------------------
sum            30s  #######################################  
grace          30s  #######################################  assumed by platform

platform kubernetes: it was set
drain_timeout is not enforced: an assumed grace period ends nobody's work
fits, 0s to spare
`},
		{"hooks of all kinds share docker's 10 s", viewOf(t, 1, 2, 3, "--platform=docker", "--drain-budget=3"), `
prestop           0s                                      default
announce          0s                                      by platform
phases            3s  ##########                          set
unwind            1s  ###                                 fixed
drain_timeout     3s  ##########                          shrunk to fit
kill              1s  ###                                 fixed
companions     250ms  #                                   shrunk to fit
waves          750ms  ###                                 shrunk to fit, 3 waves
linger            0s                                      default
headroom          1s  ###                                 default
--------------------
sum              10s  ##################################  
grace            10s  ##################################  assumed by platform

platform docker: it was set
the grace period is assumed; with steps or companions the program is ended in
time for them, not before 10s: set --grace-period
fits, 0s to spare
`},
		{"what was set is too long", viewOf(t, 0, 0, 0, "--grace-period=30", "--drain-timeout=29", "--announce-delay=20", "--linger=0"), `
prestop         0s                                            default
announce       20s  ################                          set
phases          0s                                            no phase
unwind          0s                                            no phase
drain_timeout  29s  #######################                   set
kill            1s  #                                         fixed
companions      0s                                            no companion
waves           0s                                            no step
linger          0s                                            set
headroom        1s  #                                         default
------------------
sum            51s  ########################################  
grace          30s  ########################                  set

platform none: the init is not PID 1, and no platform has made itself known
does not fit, 21s too long
hint: shrink --drain-timeout from 29s to 8s
`},
		{"no single figure helps", viewOf(t, 1, 1, 0, "--grace-period=5", "--drain-timeout=8", "--drain-budget=8", "--step-timeout=1"), `
prestop         0s                                            default
announce        0s                                            by platform
phases          8s  ################                          set
unwind          1s  ##                                        fixed
drain_timeout   8s  ################                          set
kill            1s  ##                                        fixed
companions      1s  ##                                        set
waves           0s                                            no step
linger          0s                                            default
headroom        1s  ##                                        default
------------------
sum            20s  ########################################  
grace           5s  ##########                                set

platform none: the init is not PID 1, and no platform has made itself known
does not fit, 15s too long
hint: raise --grace-period from 5s to 20s, where the orchestrator gives it
`},
		{"no limit", viewOf(t, 0, 0, 1), `
prestop              0s                                      default
announce             0s                                      by platform
phases               0s                                      no phase
unwind               0s                                      no phase
drain_timeout  no limit  --------------------------------->  default
kill                 1s  ###                                 fixed
companions           0s                                      no companion
waves               10s  ##################################  default
linger               0s                                      default
headroom             1s  ###                                 default
-----------------------
sum            no limit  --------------------------------->  
grace          no limit  --------------------------------->  assumed by platform

platform none: the init is not PID 1, and no platform has made itself known
fits: there is no grace period to fit into
`},
		{"no limit, and a gate that has one", viewOf(t, 0, 0, 0, "--drain-timeout=8"), `
prestop              0s                                      default
announce             0s                                      by platform
phases               0s                                      no phase
unwind               0s                                      no phase
drain_timeout        8s  ###########################         set
kill                 1s  ###                                 fixed
companions           0s                                      no companion
waves                0s                                      no step
linger               0s                                      default
headroom             1s  ###                                 default
-----------------------
sum                 10s  ##################################  
grace          no limit  --------------------------------->  assumed by platform

platform none: the init is not PID 1, and no platform has made itself known
fits: there is no grace period to fit into
`},
	} {
		want := strings.ReplaceAll(strings.TrimPrefix(c.want, "\n"), "  \n", "\n")
		if got := c.view.text(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, want)
		}
		for line := range strings.Lines(c.view.text()) {
			if len(line) > 81 {
				t.Errorf("%s: %d columns: %s", c.name, len(line), line)
			}
		}
	}
}

// declaring adds what each phase declares.
func (v *planView) declaring(durations ...time.Duration) *planView {
	for i, d := range durations {
		v.phases = append(v.phases, hooks.Hook{Name: string(rune('a' + i)), MaxDuration: d})
	}
	return v
}

// What phases declare is held against what they have, whatever platform and
// settings that is from; it is no misfit.
func TestBudgetTellsOfLongPhases(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name   string
		view   *planView
		lines  []string
		asJSON string
	}{
		{"nothing declared", viewOf(t, 2, 0, 0).declaring(0, 0), nil, `"declared":0,"long_phases":[]`},
		{"all it has", viewOf(t, 2, 0, 0).declaring(4*s, 6*s), nil, `"declared":10,"long_phases":[]`},
		{"all it has, alone", viewOf(t, 1, 0, 0).declaring(10 * s), nil, `"declared":10,"long_phases":[]`},
		{"one alone", viewOf(t, 1, 0, 0).declaring(20 * s), []string{`phase "a" declares 20s, all phases have 10s`}, `"declared":20,"long_phases":[{"name":"a","declared":20}]`},
		{"the sum", viewOf(t, 2, 0, 0, "--grace-period=60").declaring(6*s, 4500*time.Millisecond), []string{"the phases declare 10.5s together, all phases have 10s"}, `"declared":10.5,"long_phases":[]`},
		{"a shrunk one", viewOf(t, 3, 0, 0, "--platform=docker").declaring(s, 2*s, 0), []string{
			`phase "b" declares 2s, all phases have 1.75s`, "the phases declare 3s together, all phases have 1.75s",
		}, `"declared":3,"long_phases":[{"name":"b","declared":2}]`},
		{"beyond all bounds", viewOf(t, 2, 0, 0, "--drain-budget=1").declaring(math.MaxInt64, math.MaxInt64), []string{
			`phase "a" declares 2562047h47m16.854775807s, all phases have 1s`, `phase "b" declares 2562047h47m16.854775807s, all phases have 1s`,
			"the phases declare 2562047h47m16.854775807s together, all phases have 1s",
		}, `"declared":9223372036.854776,`},
	} {
		_, below, _ := strings.Cut(c.view.text(), "\nfits")
		_, below, _ = strings.Cut(strings.TrimSpace(below), "\n")
		if below != strings.Join(c.lines, "\n") {
			t.Errorf("%s: %s\nwant %q", c.name, c.view.text(), c.lines)
		}
		if text := c.view.json(); !strings.Contains(text, c.asJSON) || !strings.Contains(text, `"fits":true`) {
			t.Errorf("%s: %s, want %s", c.name, text, c.asJSON)
		}
	}
}

// Whether the program is ended under an assumed grace period is told, and by what.
func TestBudgetTellsWhoEndsTheProgram(t *testing.T) {
	const endless, ended = "not enforced", "the program is ended in\ntime for them, not before 10s: set --grace-period\n"
	for _, c := range []struct {
		companions, waves int
		flags             []string
		want              string
	}{
		{0, 0, []string{"--platform=ecs"}, endless},
		{1, 0, []string{"--platform=ecs"}, ended},
		{0, 1, []string{"--platform=ecs"}, ended},
		{1, 1, []string{"--platform=ecs", "--grace-period=30"}, ""},
		{1, 1, []string{"--platform=ecs", "--drain-timeout=3"}, ""},
		{0, 0, []string{"--platform=ecs", "--drain-timeout=3"}, ""},
		{1, 1, nil, ""},
	} {
		text := viewOf(t, 1, c.companions, c.waves, c.flags...).text()
		for _, line := range []string{endless, ended} {
			if strings.Contains(text, line) != (line == c.want) {
				t.Errorf("%d companions, %d waves, %q: %s", c.companions, c.waves, c.flags, text)
			}
		}
	}
}

// The table of the documentation is one that is printed.
func TestBudgetIsDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/reference/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	table := viewOf(t, 1, 0, 0, "--platform=kubernetes").text()
	indented := strings.ReplaceAll("    "+strings.TrimSpace(strings.ReplaceAll(table, "\n", "\n    ")), "\n    \n", "\n\n")
	if !strings.Contains(string(page), indented) {
		t.Errorf("docs/reference/flags.md has not\n%s", indented)
	}
}

// Every figure of the plan says who set it.
func TestBudgetKnowsEveryFigure(t *testing.T) {
	v := viewOf(t, 1, 1, 1)
	sources := v.sources()
	for _, f := range v.plan.Figures() {
		if s, ok := sources[f.Name]; !ok || s.who(f.D) == "" {
			t.Errorf("%s: nobody set it", f.Name)
		}
		delete(sources, f.Name)
	}
	for name := range sources {
		t.Errorf("%s is no figure of the plan", name)
	}
}

// What a hint proposes makes the plan fit.
func TestBudgetAdviceHelps(t *testing.T) {
	for _, flags := range [][]string{
		{"--grace-period=30", "--drain-timeout=29", "--announce-delay=20"},
		{"--grace-period=30", "--step-timeout=10.0004"},
		{"--grace-period=5.0004", "--drain-timeout=8.0001", "--drain-budget=8"},
		{"--platform=kubernetes", "--prestop=40"},
		{"--grace-period=30.0006", "--linger=40"},
		{"--grace-period=30.0006", "--drain-timeout=40"},
	} {
		v := viewOf(t, 1, 1, 4, flags...)
		_, hint, found := strings.Cut(v.text(), "hint: ")
		words := strings.Fields(strings.ReplaceAll(hint, ",", ""))
		if !found || len(words) < 6 {
			t.Errorf("%q: no hint:\n%s", flags, v.text())
			continue
		}
		if v := viewOf(t, 1, 1, 4, append(flags, words[1]+"="+words[5])...); v.plan.Shortfall() != 0 {
			t.Errorf("%q: %q, and it is %v too long", flags, hint, v.plan.Shortfall())
		}
	}
}

func TestBudgetJSON(t *testing.T) {
	for _, c := range []struct {
		view *planView
		want string
	}{
		{viewOf(t, 1, 1, 2, "--grace-period=30", "--drain-timeout=29.5", "--announce-delay=20", "--step-timeout=0.1"),
			`{"figures":[{"name":"prestop","seconds":0,"set":false},{"name":"announce","seconds":20,"set":true},{"name":"phases","seconds":0.1,"set":false},` +
				`{"name":"unwind","seconds":1,"set":false},{"name":"drain_timeout","seconds":29.5,"set":true},{"name":"kill","seconds":1,"set":false},` +
				`{"name":"companions","seconds":0.1,"set":true},{"name":"waves","seconds":0.2,"set":true},{"name":"linger","seconds":0,"set":false},{"name":"headroom","seconds":1,"set":false}],` +
				`"sum":52.9,"grace":30,"assumed":false,"platform":"none","fits":false,"shortfall":22.9,"advice":{"figure":"drain_timeout","flag":"drain-timeout","from":29.5,"to":6.6},"declared":0,"long_phases":[]}`},
		{viewOf(t, 0, 0, 0),
			`{"figures":[{"name":"prestop","seconds":0,"set":false},{"name":"announce","seconds":0,"set":false},{"name":"phases","seconds":0,"set":false},` +
				`{"name":"unwind","seconds":0,"set":false},{"name":"drain_timeout","seconds":null,"set":false},{"name":"kill","seconds":1,"set":false},` +
				`{"name":"companions","seconds":0,"set":false},{"name":"waves","seconds":0,"set":false},{"name":"linger","seconds":0,"set":false},{"name":"headroom","seconds":1,"set":false}],` +
				`"sum":null,"grace":null,"assumed":true,"platform":"none","fits":true,"shortfall":0,"advice":null,"declared":0,"long_phases":[]}`},
	} {
		if got := c.view.json(); got != c.want+"\n" {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
	// A setting that counts nothing sets no figure.
	var all planJSON
	if err := json.Unmarshal([]byte(viewOf(t, 0, 0, 0, "--drain-budget=5", "--platform=fly").json()), &all); err != nil {
		t.Fatal(err)
	}
	if p := all.Figures[2]; p.Name != "phases" || p.Set || *p.Seconds != 0 || !all.Assumed || *all.Grace != 5 {
		t.Errorf("%+v of %+v", p, all)
	}
}

// TestBudgetVerb: the hooks that are there count, and the exit status tells.
func TestBudgetVerb(t *testing.T) {
	dir := t.TempDir()
	directives := map[string]string{"phases.d/10-a": "# drainit: max-duration=5s\n"}
	for _, name := range []string{"phases.d/10-a", "lifecycle.d/10-a", "lifecycle.d/10-b", "lifecycle.d/20-c", "background.d/x"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+directives[name]), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		flags  []string
		status int
		want   string
	}{
		{[]string{"--grace-period=60"}, 0, `"name":"waves","seconds":20,`},
		{[]string{"--grace-period=60", "--drain-budget=4"}, 0, `"long_phases":[{"name":"a","declared":5}]`},
		{[]string{"--grace-period=60", "--config-dir=none"}, 0, `"name":"waves","seconds":0,`},
		{[]string{"--grace-period=60", "--step-timeout=10", "--drain-timeout=35"}, 1, `"name":"companions","seconds":10,"set":true},{"name":"waves","seconds":20,"set":true}`},
		{[]string{"--config-dir=" + filepath.Join(dir, "phases.d/10-a")}, failed, ""},
	} {
		args := append([]string{"budget", "--json", "--config-dir=" + dir}, c.flags...)
		r, err := config.Parse(config.World{Args: args, PID: 2, Env: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		status, out := printed(t, func() int { return budgetVerb(r.Budget, r.BudgetJSON) })
		if status != c.status || !strings.Contains(out, c.want) || (out == "") != (c.status == failed) {
			t.Errorf("%q: status %d, want %d: %s", c.flags, status, c.status, out)
		}
	}
}

// printed runs f with standard output and standard error going to files.
func printed(t *testing.T, f func() int) (int, string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	before := os.Stdout
	defer func() { os.Stdout = before }()
	os.Stdout = out
	status := f()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return status, string(text)
}

// The test is not PID 1, nor is what is.
func TestSameInit(t *testing.T) {
	if sameInit() {
		t.Error("PID 1 of this machine is the test")
	}
}
