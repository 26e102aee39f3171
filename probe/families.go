package probe

import (
	"maps"
	"runtime"
	"slices"
)

// Family is one metric: a name, what Prometheus calls its type (gauge or
// counter), one sentence of help, and the names of its labels in their order.
type Family struct {
	Name, Type, Help string
	Labels           []string
}

// Families lists the metrics in the order of the page. It is the table that the
// page is made from, and that docs/reference/metrics.md is held to. No label tells an
// owner, an address or a pod. A new copy is returned each time.
func Families() []Family {
	var all []Family
	for _, f := range table() {
		all = append(all, f.Family)
	}
	return all
}

// family is a Family and the function that writes its samples.
type family struct {
	Family
	samples func(*page)
}

func table() []family {
	return []family{
		{Family{"app_shutdown_duration_seconds", "gauge", "Time since the stop signal, 0 before it, the whole shutdown's at its end.", []string{"service"}},
			func(p *page) { p.gauge(p.snap.shutdown(p.now), p.snap.Service) }},
		{Family{"drainit_stage_duration_seconds", "gauge", "Time that each stage of the shutdown took or has taken so far.", []string{"stage"}}, stages},
		{Family{"drainit_phase_duration_seconds", "gauge", "Time that each phase of the drain took.", []string{"phase"}},
			phases(func(p *page, r PhaseResult) { p.gauge(r.Seconds, r.Name) })},
		{Family{"drainit_phase_result", "gauge", "How each phase of the drain ended; always 1.", []string{"phase", "result"}},
			phases(func(p *page, r PhaseResult) { p.gauge(1, r.Name, r.Result) })},
		{Family{"drainit_step_start_seconds", "gauge", "Time that the start of each lifecycle step took.", []string{"step"}},
			steps(func(p *page, r StepResult) { p.gauge(r.Seconds, r.Name) })},
		{Family{"drainit_step_result", "gauge", "What became of each lifecycle step last; always 1.", []string{"step", "result"}},
			steps(func(p *page, r StepResult) { p.gauge(1, r.Name, r.Result) })},
		{Family{"drainit_companion_up", "gauge", "1 while the companion runs, 0 while it is down.", []string{"companion"}},
			companions(func(p *page, c Companion) { p.gauge(truth(c.Running), c.Name) })},
		{Family{"drainit_companion_restarts_total", "counter", "How often each companion was started again after it had ended.", []string{"companion"}},
			companions(func(p *page, c Companion) { p.count(c.Restarts, c.Name) })},
		{Family{"drainit_state", "gauge", "1 for the state that the container is in, 0 for the others.", []string{"state"}},
			states},
		{Family{"drainit_ready", "gauge", "1 while the readiness probe is answered with 200, else 0.", nil},
			func(p *page) { p.gauge(truth(p.ready)) }},
		{Family{"drainit_workload_killed_total", "counter", "Processes of the workload that the init had to end by KILL.", nil},
			func(p *page) { p.count(p.snap.KilledWorkload) }},
		{Family{"drainit_reaped_total", "counter", "Processes that the init has reaped.", nil},
			func(p *page) { p.count(read(p.counters.Reaped)) }},
		{Family{"drainit_signals_total", "counter", "Signals that the init has received, by name without SIG.", []string{"signal"}}, signals},
		{Family{"drainit_budget_seconds", "gauge", "The shutdown plan, figure by figure.", []string{"figure"}},
			func(p *page) { p.timed(p.snap.Budget) }},
		{Family{"drainit_grace_seconds", "gauge", "The grace period that the plan must fit, absent without one.", nil},
			func(p *page) {
				if p.snap.GraceKnown {
					p.gauge(p.snap.Grace)
				}
			}},
		{Family{"drainit_log_dropped_total", "counter", "Log lines dropped because nobody read them in time.", nil},
			func(p *page) { p.count(read(p.counters.LogDropped)) }},
		{Family{"drainit_build_info", "gauge", "The version of drainit and of Go that it was built with; always 1.", []string{"version", "goversion"}},
			func(p *page) { p.gauge(1, p.snap.Version, runtime.Version()) }},
	}
}

// phases makes a family of a sample for each phase.
func phases(sample func(*page, PhaseResult)) func(*page) {
	return func(p *page) {
		for _, r := range p.snap.Phases {
			sample(p, r)
		}
	}
}

func steps(sample func(*page, StepResult)) func(*page) {
	return func(p *page) {
		for _, r := range p.snap.Steps {
			sample(p, r)
		}
	}
}

func companions(sample func(*page, Companion)) func(*page) {
	return func(p *page) {
		for _, c := range p.snap.Companions {
			sample(p, c)
		}
	}
}

func states(p *page) {
	for _, state := range p.snap.States {
		p.gauge(truth(state == p.snap.State), state)
	}
}

func stages(p *page) {
	for _, stage := range p.snap.Stages {
		if stage.Name != p.snap.RunningStage {
			p.gauge(stage.Seconds, stage.Name)
		}
	}
	if p.snap.RunningStage != "" {
		p.gauge(since(p.snap.StageSince, p.now), p.snap.RunningStage)
	}
}

// signals are sorted, so that two scrapes differ only in what has changed.
func signals(p *page) {
	for _, name := range slices.Sorted(maps.Keys(p.snap.Signals)) {
		p.count(p.snap.Signals[name], name)
	}
}

func truth(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

func read(counter func() uint64) uint64 {
	if counter == nil {
		return 0
	}
	return counter()
}
