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
			func(p *page) {
				for _, phase := range p.snap.Phases {
					p.gauge(phase.Seconds, phase.Name)
				}
			}},
		{Family{"drainit_phase_result", "gauge", "How each phase of the drain ended; always 1.", []string{"phase", "result"}},
			func(p *page) {
				for _, phase := range p.snap.Phases {
					p.gauge(1, phase.Name, phase.Result)
				}
			}},
		{Family{"drainit_state", "gauge", "1 for the state that the container is in, 0 for the others.", []string{"state"}},
			func(p *page) {
				for _, state := range p.snap.States {
					p.gauge(truth(state == p.snap.State), state)
				}
			}},
		{Family{"drainit_ready", "gauge", "1 while the readiness probe is answered with 200, else 0.", nil},
			func(p *page) { p.gauge(truth(p.ready)) }},
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
