package supervise

import (
	"log/slog"
	"syscall"
	"time"

	"drainit/hooks"
	"drainit/phases"
)

// performHook does what concerns a hook.
func (l *loop) performHook(e phases.Effect) {
	i := e.Hook
	switch e.Kind {
	case phases.StartPhase:
		l.startPhase(i, e.Window)
	case phases.TermPhase:
		l.signalCall(hooks.Phase, i, false, syscall.SIGTERM)
	case phases.KillPhase:
		l.signalCall(hooks.Phase, i, false, syscall.SIGKILL)
	case phases.PhaseDone:
		l.phaseDone(e)
	case phases.StartStep:
		l.startStep(i, e)
	case phases.StopStep:
		l.stopStep(i, e.Window)
	case phases.StepStarted, phases.StepFailed, phases.StepStopped:
		l.stepDone(i, e)
	case phases.StartCompanion:
		l.startCompanion(i)
	case phases.CompanionRests:
		l.companionRests(i, e)
	default:
		l.say(e)
	}
}

// performTogether does the first effects at once where they signal hooks of one
// kind, since finding out whose processes are costs as much for many as for one.
// It returns how many those were.
func (l *loop) performTogether(effects []phases.Effect) int {
	kind := effects[0].Kind
	sig, signals := map[phases.EffectKind]syscall.Signal{
		phases.TermCompanion: syscall.SIGTERM, phases.KillCompanion: syscall.SIGKILL,
		phases.TermStep: syscall.SIGTERM, phases.KillStep: syscall.SIGKILL,
		phases.TermLeft: syscall.SIGTERM, phases.KillLeft: syscall.SIGKILL,
	}[kind]
	if !signals {
		return 0
	}
	var hooked []int
	for _, e := range effects {
		if e.Kind != kind {
			break
		}
		hooked = append(hooked, e.Hook)
	}
	switch kind {
	case phases.TermCompanion, phases.KillCompanion:
		l.signalCompanions(hooked, sig)
	case phases.TermStep, phases.KillStep:
		var calls []*call
		for _, i := range hooked {
			calls = append(calls, l.stepCall(i))
		}
		l.signalCalls(calls, sig)
	case phases.TermLeft:
		for _, i := range hooked {
			l.tell.clear(i)
		}
		l.pause = 0
		l.looked()
		l.signalLeft(hooked, sig)
	default:
		l.signalLeft(hooked, sig)
	}
	return len(hooked)
}

// companionOver notes that one which does not run will not run any more.
func (l *loop) companionOver(i int) {
	c := l.calls[tag(hooks.Companion, i, false)]
	if l.machine.Stage() >= phases.Companions && (c == nil || c.answered && c.proc == nil) {
		l.tell.companions[i].state = "stopped"
	}
}

func (l *loop) signalCompanions(all []int, sig syscall.Signal) {
	var calls []*call
	for _, i := range all {
		if sig == syscall.SIGKILL {
			l.Log.Warn("companion killed", hookAttr(l.job.Hooks.Companions.Hooks[i]))
		}
		calls = append(calls, l.calls[tag(hooks.Companion, i, false)])
	}
	l.signalCalls(calls, sig)
}

// startPhase asks for the process. A file that has turned bad since the start
// is a phase that failed.
func (l *loop) startPhase(i int, allowed time.Duration) {
	h := l.job.Hooks.Phases.Hooks[i]
	l.Log.Info("phase started", hookAttr(h), durAttr("allowed", allowed))
	l.tell.phases[i].run(stateRunning)
	l.call(h, i, false, allowed)
}

// startStep calls a step with start.
func (l *loop) startStep(i int, e phases.Effect) {
	h, allowed := l.job.Hooks.Steps.Hooks[i], e.Window
	if e.NoEnd {
		allowed = -1
	}
	l.Log.Info("step starting", hookAttr(h), windowAttr("allowed", allowed))
	l.tell.steps[i].run("starting")
	l.call(h, i, false, allowed)
}

// stopStep calls it with stop.
func (l *loop) stopStep(i int, allowed time.Duration) {
	h := l.job.Hooks.Steps.Hooks[i]
	l.Log.Info("step stopping", hookAttr(h), durAttr("allowed", allowed))
	l.tell.steps[i].run("stopping")
	l.call(h, i, true, allowed)
}

// startCompanion starts one, or starts it again.
func (l *loop) startCompanion(i int) {
	h := l.job.Hooks.Companions.Hooks[i]
	c := &l.tell.companions[i]
	if c.starts++; c.starts == 1 {
		l.Log.Info("companion started", hookAttr(h))
	}
	c.state = stateRunning
	l.call(h, i, false, -1)
}

// companionRests: one has ended, and that is never what it is there for.
func (l *loop) companionRests(i int, e phases.Effect) {
	c := l.calls[tag(hooks.Companion, i, false)]
	args := []any{hookAttr(c.hook), durAttr("ran", e.Took), durAttr("restart_in", e.Window)}
	if c.status != nil {
		args = append(args, slog.Int("status", *c.status))
	}
	l.tell.companions[i].state = "resting"
	l.Log.Warn("companion ended", args...)
}

// phaseDone logs a phase's end.
func (l *loop) phaseDone(e phases.Effect) {
	h := l.job.Hooks.Phases.Hooks[e.Hook]
	l.tell.phaseDone(e.Hook, e.Result, e.Took)
	args := []any{hookAttr(h), slog.String("result", e.Result.String())}
	if c := l.calls[tag(hooks.Phase, e.Hook, false)]; c != nil {
		args = append(args, durAttr("allowed", c.allowed), durAttr("used", e.Took))
		if c.status != nil {
			args = append(args, slog.Int("status", *c.status))
		}
	} else {
		args = append(args, durAttr("allowed", 0), durAttr("used", 0))
	}
	if e.Result == phases.Succeeded {
		l.Log.Info("phase ended", args...)
	} else {
		l.Log.Warn("phase ended", args...)
	}
}

// stepDone logs what a step's call came to.
func (l *loop) stepDone(i int, e phases.Effect) {
	stop := e.Kind == phases.StepStopped
	h := l.job.Hooks.Steps.Hooks[i]
	args := []any{hookAttr(h), slog.String("result", e.Result.String()), durAttr("used", e.Took)}
	c := l.calls[tag(hooks.Step, i, stop)]
	if c.status != nil {
		args = append(args, slog.Int("status", *c.status))
	}
	l.tell.stepDone(i, e)
	switch {
	case e.Kind == phases.StepStarted:
		l.Log.Info("step started", hookAttr(h), durAttr("used", e.Took))
	case stop:
		l.stepStopped(i, e, args)
	default:
		l.stepFailed(h, c, e, args)
	}
}

// stepStopped: what is left of a step, if anything, is nobody's any more.
func (l *loop) stepStopped(i int, e phases.Effect, args []any) {
	if e.Result == phases.Succeeded {
		l.Log.Info("step stopped", args...)
	} else {
		l.Log.Warn("step stopped", args...)
	}
	if kept := l.startOf(i).kept; kept != nil {
		l.Procs.Forget(kept)
	}
}

// stepFailed: a start that failed before any stop signal is what ends the run.
func (l *loop) stepFailed(h hooks.Hook, c *call, e phases.Effect, args []any) {
	reason := e.Result.String()
	if e.Result == phases.Failed && c.status != nil {
		reason = "exit status " + itoa(*c.status)
	}
	if l.tell.stopped() || l.tell.err != nil {
		l.Log.Warn("step not started", args...)
		return
	}
	l.reason = reasonFailed
	l.tell.err = &StepError{Step: h.Name, Reason: reason}
	l.Log.Error("step failed", args...)
}
