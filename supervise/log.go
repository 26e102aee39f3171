package supervise

import (
	"log/slog"
	"strconv"
	"syscall"
	"time"

	"drainit/budget"
	"drainit/child"
	"drainit/config"
	"drainit/hooks"
	"drainit/phases"
	"drainit/signals"
)

// The fields that many records have. They are kept out of line, which saves 4 KB
// of the binary.

//go:noinline
func hookAttr(h hooks.Hook) slog.Attr { return slog.String(h.Kind.String(), h.Name) }

//go:noinline
func stageAttr(s phases.Stage) slog.Attr { return slog.String("stage", s.String()) }

//go:noinline
func signalAttr(sig syscall.Signal) slog.Attr { return slog.String("signal", signals.Name(sig)) }

//go:noinline
func errAttr(err error) slog.Attr { return slog.String("error", oneLine(err.Error())) }

func itoa(n int) string { return strconv.Itoa(n) }
func twins() []string   { return config.Twins() }

// durAttr writes a duration as a person reads it, to the millisecond.
//
//go:noinline
func durAttr(key string, d time.Duration) slog.Attr {
	return slog.String(key, d.Round(time.Millisecond).String())
}

// windowAttr is durAttr for a bound that may not be there.
func windowAttr(key string, d time.Duration) slog.Attr {
	if d < 0 {
		return slog.String(key, "as long as it takes")
	}
	return durAttr(key, d)
}

// logPlan writes the plan, what it rests on, and what of it may surprise.
func (l *loop) logPlan() {
	c, p := l.cfg, l.job.Plan
	if c.Nested {
		l.Log.Info("below another init", slog.String("hint",
			"config-dir, probe-addr, report and remap-exit are none, and announce-delay is 0, unless given as flags"))
	}
	if !p.GraceSet && !p.Unlimited {
		args := []any{durAttr("grace", p.Grace), slog.String("platform", c.Platform.Name), slog.String("why", c.Platform.Why)}
		if p.GateEndless() {
			args = append(args, slog.Bool("enforced", false))
		} else {
			args = append(args, slog.String("hint", "set --grace-period: what is stopped behind the workload needs an end of it"))
		}
		l.Log.Info("grace assumed", args...)
	}
	plan := l.planArgs()
	l.Log.Info("drain plan", plan...)
	if short := p.Shortfall(); short > 0 {
		l.Log.Warn("drain plan does not fit", append(plan, durAttr("shortfall", short), l.advice())...)
	}
	if why := l.tight(); why != "" {
		l.Log.Warn("drain plan is tight", slog.String("why", why), durAttr("announce", p.Announce),
			durAttr("drain_timeout", p.Gate), slog.String("hint", "drainit budget shows what the grace period goes to"))
	}
	hint := "--drain-budget"
	if !c.Budget.DrainBudget.Set && p.Phases < c.Budget.DrainBudget.D {
		hint = "a longer --grace-period where the orchestrator gives it, or less of another figure"
	}
	for _, h := range l.job.Hooks.Phases.Hooks {
		if h.MaxDuration > p.Phases {
			l.Log.Warn("phase has less than it declares", hookAttr(h),
				durAttr("max_duration", h.MaxDuration), durAttr("phases", p.Phases), slog.String("hint", hint))
		}
	}
	if c.ConfigDirSet && !hooks.AnyDirectory(c.ConfigDir) {
		l.Log.Warn("no hooks", slog.String("config_dir", c.ConfigDir),
			slog.String("hint", "it holds none of phases.d, lifecycle.d, background.d"))
	}
	if c.DrainOn == 0 && (p.GraceSet || len(l.job.Hooks.Phases.Hooks) > 0) {
		l.Log.Warn("no signal starts the drain", slog.String("hint", "--drain-on none leaves the stop to the workload"))
	}
	for _, path := range l.job.Hooks.Ignored() {
		l.Log.Info("file ignored", slog.String("path", path))
	}
}

// tight tells what a plan that fits does so at the cost of.
func (l *loop) tight() string {
	c, p := l.cfg, l.job.Plan
	switch {
	case p.Unlimited || p.Shortfall() > 0:
		return ""
	case !p.GateSet && !p.GateEndless() && p.Gate < time.Second:
		return "the workload has next to nothing from its stop signal to its KILL"
	case !c.Budget.Announce.Set && p.Announce < c.Budget.Announce.D:
		return "readiness fails for less than the platform's balancers need to notice"
	}
	return ""
}

// advice is the one figure to change.
func (l *loop) advice() slog.Attr {
	in := l.cfg.Budget
	a, _ := budget.Advise(in)
	return slog.String("hint", "--"+a.Flag+" "+a.To.String()+" in place of "+a.From.String()+" would fit")
}

// planArgs are the figures, their sum and what it is held against.
func (l *loop) planArgs() []any {
	p := l.job.Plan
	var args []any
	for _, f := range p.Figures() {
		if f.Name == "drain_timeout" && p.Unlimited && p.GateEndless() {
			args = append(args, slog.String(f.Name, "as long as it takes"))
			continue
		}
		args = append(args, durAttr(f.Name, f.D))
	}
	if p.Unlimited {
		return append(args, slog.String("sum", "no limit"), slog.String("grace", "none"), slog.Bool("fits", true))
	}
	return append(args, durAttr("sum", p.Sum()), durAttr("grace", p.Grace),
		slog.Bool("assumed", !p.GraceSet), slog.Bool("fits", p.Shortfall() == 0))
}

// enter logs a stage that begins.
func (l *loop) enter(now time.Time, e phases.Effect) {
	l.tell.enter(now, e)
	if e.Stage == phases.Companions {
		for i := range l.tell.companions {
			l.companionOver(i)
		}
	}
	switch {
	case !e.Stage.Timed():
		if e.Stage == phases.Drained {
			l.Log.Info("drained", slog.String("outcome", "waiting for the stop signal"))
		}
	case e.NoEnd:
		l.Log.Info("stage began", stageAttr(e.Stage), slog.String("window", "as long as it takes"))
	default:
		l.Log.Info("stage began", stageAttr(e.Stage), durAttr("window", e.Window))
	}
}

// logExit writes how the workload ended.
func (l *loop) logExit(e child.Exit) {
	args := []any{slog.Int("status", e.Status)}
	if e.Signal != 0 {
		args = append(args, signalAttr(e.Signal))
	}
	if e.Core {
		args = append(args, slog.Bool("core_dumped", true))
	}
	l.Log.Info("workload exited", args...)
}
