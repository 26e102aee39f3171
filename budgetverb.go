package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"drainit/budget"
	"drainit/chart"
	"drainit/config"
	"drainit/hooks"
)

// budgetVerb prints the plan that a main job would have, and whether it fits:
// exit status 0, 1 where it does not.
func budgetVerb(c *config.Config, asJSON bool) int {
	found, err := hooks.DiscoverAll(c.ConfigDir, os.Geteuid())
	if err != nil {
		return refuse(err)
	}
	in := c.Budget
	in.Phases, in.Companions, in.Waves = len(found.Phases.Hooks), len(found.Companions.Hooks), found.Waves()
	v := &planView{platform: c.Platform, in: in, plan: budget.Make(in), phases: found.Phases.Hooks}
	text := v.text()
	if asJSON {
		text = v.json()
	}
	if _, err := os.Stdout.WriteString(text); err != nil {
		return refuse(err)
	}
	if v.plan.Shortfall() > 0 {
		return 1
	}
	return 0
}

// planView is a plan and what it was made of.
type planView struct {
	platform config.Platform
	in       budget.Input
	plan     budget.Plan
	phases   []hooks.Hook
}

// source is where a figure comes from.
type source struct {
	value    budget.Value  // the setting behind it
	whole    time.Duration // what it is where it need not give way
	fallback string        // what to call the default
	absent   string        // why it counts nothing; empty where it counts
}

// sources are those of all figures, by name.
func (v *planView) sources() map[string]source {
	in := v.in
	plain := func(value budget.Value) source { return source{value, value.D, "default", ""} }
	fixed := func(d time.Duration) source { return source{budget.Value{D: d}, d, "fixed", ""} }
	of := func(n int, absent string, s source) source {
		if n == 0 {
			return source{absent: absent}
		}
		s.whole *= time.Duration(n)
		return s
	}
	announce, gate := plain(in.Announce), source{in.DrainTimeout, budget.GateWish, "what is left", ""}
	announce.fallback = "by platform"
	if in.Unlimited {
		gate.fallback = "default"
	}
	waves := of(in.Waves, "no step", plain(in.StepTimeout))
	return map[string]source{
		"prestop":       plain(in.Prestop),
		"announce":      announce,
		"phases":        of(min(in.Phases, 1), "no phase", plain(in.DrainBudget)),
		"unwind":        of(min(in.Phases, 1), "no phase", fixed(budget.Unwind)),
		"drain_timeout": gate,
		"kill":          fixed(budget.Cancel),
		"companions":    of(min(in.Companions, 1), "no companion", plain(in.StepTimeout)),
		"waves":         waves,
		"linger":        plain(in.Linger),
		"headroom":      plain(in.Headroom),
	}
}

// who says who set a figure that is d in the plan.
func (s source) who(d time.Duration) string {
	switch {
	case s.absent != "":
		return s.absent
	case s.value.Set:
		return "set"
	case d < s.whole:
		return "shrunk to fit"
	}
	return s.fallback
}

// endless tells of the one figure that may have no end, and of the sum.
func (v *planView) endless() bool { return v.in.Unlimited && v.plan.GateEndless() }

// text is the table and what it comes to.
func (v *planView) text() string {
	var t chart.Table
	sources := v.sources()
	for _, f := range v.plan.Figures() {
		endless := f.Name == "drain_timeout" && v.endless()
		note := sources[f.Name].who(f.D)
		if endless {
			note = "default"
		}
		if f.Name == "waves" && v.in.Waves > 1 {
			note += fmt.Sprintf(", %d waves", v.in.Waves)
		}
		t.Figures = append(t.Figures, chart.Row{Name: f.Name, D: f.D, Endless: endless, Note: note})
	}
	grace := chart.Row{Name: "grace", D: v.plan.Grace, Endless: v.in.Unlimited, Note: "assumed by platform"}
	if v.in.Grace.Set {
		grace.Note = "set"
	}
	t.Totals = []chart.Row{{Name: "sum", D: v.plan.Sum(), Endless: v.endless()}, grace}
	t.Lines = v.lines()
	return chart.Render(t)
}

// declared is what all phases declare that they may take, and which of them alone
// declare more than all have together.
func (v *planView) declared() (sum time.Duration, long []hooks.Hook) {
	for _, h := range v.phases {
		sum = min(sum, math.MaxInt64-h.MaxDuration) + h.MaxDuration // whatever they declare: it must not overflow
		if h.MaxDuration > v.plan.Phases {
			long = append(long, h)
		}
	}
	return sum, long
}

// overDeclared are the lines about phases that do not get what they declare.
func (v *planView) overDeclared() []string {
	sum, long := v.declared()
	have := ", all phases have " + chart.Duration(v.plan.Phases)
	var lines []string
	for _, h := range long {
		lines = append(lines, fmt.Sprintf("phase %q declares %s%s", h.Name, chart.Duration(h.MaxDuration), have))
	}
	if sum > v.plan.Phases && len(v.phases) > 1 {
		lines = append(lines, "the phases declare "+chart.Duration(sum)+" together"+have)
	}
	return lines
}

// gate is what an assumed grace period does to the program. Nobody promised it, so
// it ends nobody's work, but for what must be stopped behind the program.
func (v *planView) gate() []string {
	switch p := v.plan; {
	case v.in.Unlimited || p.GraceSet || p.GateSet:
		return nil
	case p.GateEndless():
		return []string{"drain_timeout is not enforced: an assumed grace period ends nobody's work"}
	}
	return []string{
		"the grace period is assumed; with steps or companions the program is ended in",
		"time for them, not before " + budget.GateWish.String() + ": set --grace-period",
	}
}

// lines are what is to be said about the table.
func (v *planView) lines() []string {
	lines := []string{fmt.Sprintf("platform %s: %s", v.platform.Name, v.platform.Why)}
	lines = append(lines, v.gate()...)
	return append(v.fit(lines), v.overDeclared()...)
}

// fit adds whether it fits, and if not what would.
func (v *planView) fit(lines []string) []string {
	short := v.plan.Shortfall()
	switch {
	case v.in.Unlimited:
		return append(lines, "fits: there is no grace period to fit into")
	case short == 0:
		return append(lines, "fits, "+(v.plan.Grace-v.plan.Sum()).Truncate(time.Millisecond).String()+" to spare")
	}
	lines = append(lines, "does not fit, "+chart.Duration(short)+" too long")
	if a, ok := budget.Advise(v.in); ok {
		lines = append(lines, "hint: "+advise(a))
	}
	return lines
}

// advise says what to change. It is rounded to whole milliseconds, to the side on
// which it fits.
func advise(a budget.Advice) string {
	if a.To > a.From {
		to := (a.To + time.Millisecond - 1).Truncate(time.Millisecond)
		return fmt.Sprintf("raise --%s from %v to %v, where the orchestrator gives it", a.Flag, a.From, to)
	}
	return fmt.Sprintf("shrink --%s from %v to %v", a.Flag, a.From, a.To.Truncate(time.Millisecond))
}

// planJSON is the plan for programs. What has no end is null.
type planJSON struct {
	Figures   []figureJSON `json:"figures"`
	Sum       *float64     `json:"sum"`
	Grace     *float64     `json:"grace"`
	Assumed   bool         `json:"assumed"`
	Platform  string       `json:"platform"`
	Fits      bool         `json:"fits"`
	Shortfall float64      `json:"shortfall"`
	Advice    *adviceJSON  `json:"advice"`

	Declared   float64         `json:"declared"`
	LongPhases []longPhaseJSON `json:"long_phases"` // never null
}

// longPhaseJSON is a phase that declares more than all of them have.
type longPhaseJSON struct {
	Name     string  `json:"name"`
	Declared float64 `json:"declared"`
}

type figureJSON struct {
	Name    string   `json:"name"`
	Seconds *float64 `json:"seconds"`
	Set     bool     `json:"set"`
}

type adviceJSON struct {
	Figure string  `json:"figure"`
	Flag   string  `json:"flag"`
	From   float64 `json:"from"`
	To     float64 `json:"to"`
}

// json is the plan in one line.
func (v *planView) json() string {
	seconds := func(d time.Duration, endless bool) *float64 {
		if endless {
			return nil
		}
		s := d.Seconds()
		return &s
	}
	all := planJSON{
		Sum: seconds(v.plan.Sum(), v.endless()), Grace: seconds(v.plan.Grace, v.in.Unlimited),
		Assumed: !v.in.Grace.Set, Platform: v.platform.Name,
		Fits: v.plan.Shortfall() == 0, Shortfall: v.plan.Shortfall().Seconds(),
	}
	sources := v.sources()
	for _, f := range v.plan.Figures() {
		all.Figures = append(all.Figures, figureJSON{
			f.Name, seconds(f.D, f.Name == "drain_timeout" && v.endless()), sources[f.Name].value.Set,
		})
	}
	if a, ok := budget.Advise(v.in); ok {
		all.Advice = &adviceJSON{a.Figure, a.Flag, a.From.Seconds(), a.To.Seconds()}
	}
	sum, long := v.declared()
	all.Declared, all.LongPhases = sum.Seconds(), []longPhaseJSON{}
	for _, h := range long {
		all.LongPhases = append(all.LongPhases, longPhaseJSON{h.Name, h.MaxDuration.Seconds()})
	}
	text, _ := json.Marshal(all) // figures, words and numbers
	return string(text) + "\n"
}

// sameInit tells whether PID 1 is this very program, as it is for what is executed
// in a container beside its init. Another user may not look at the file that PID 1
// runs, but at its name (proc_pid_exe(5), proc_pid_comm(5)).
func sameInit() bool {
	own, errOwn := os.Stat("/proc/self/exe")
	first, err := os.Stat("/proc/1/exe")
	if errOwn == nil && err == nil {
		return os.SameFile(own, first)
	}
	ownName, errOwn := os.ReadFile("/proc/self/comm")
	name, err := os.ReadFile("/proc/1/comm")
	return errOwn == nil && err == nil && strings.TrimSpace(string(ownName)) == strings.TrimSpace(string(name))
}
