package supervise

import (
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"drainit/child"
	"drainit/hooks"
	"drainit/phases"
	"drainit/probe"
)

// perform does one effect.
func (l *loop) perform(now time.Time, e phases.Effect) {
	switch e.Kind {
	case phases.BeReady:
		l.setStatus(probe.Ready)
	case phases.Withdraw:
		l.tell.begin(now)
		l.setStatus(probe.Draining)
	case phases.Enter:
		l.enter(now, e)
	case phases.StartPhase:
		l.startPhase(e.Phase, e.Window)
	case phases.TermPhase:
		l.signalPhase(e.Phase, syscall.SIGTERM)
	case phases.KillPhase:
		l.signalPhase(e.Phase, syscall.SIGKILL)
	case phases.PhaseDone:
		l.phaseDone(e)
	case phases.Tell:
		l.tellWorkload(syscall.Signal(e.Signal))
	case phases.TellRest:
		l.tellRest(syscall.Signal(e.Signal))
	case phases.KillRest:
		l.killRest()
	case phases.Exit:
		l.finish(now, e)
	default:
		l.say(e)
	}
}

func (l *loop) setStatus(s probe.Status) {
	l.tell.ready = s == probe.Ready
	if l.Probe != nil {
		l.Probe.SetStatus(s)
	}
}

func (l *loop) hook(i int) hooks.Hook { return l.job.Phases.Hooks[i] }

// startPhase asks for the process. A file that has turned bad since the start
// is a phase that failed.
func (l *loop) startPhase(i int, allowed time.Duration) {
	h := l.hook(i)
	l.phase[i].allowed = allowed
	l.Log.Info("phase started", phaseAttr(h.Name), durAttr("allowed", allowed))
	attrs := []slog.Attr{slog.String("service", l.cfg.Service), slog.String("phase", h.Name)}
	l.start(child.Spec{
		Argv: []string{h.Path}, Env: hooks.Environment(l.Env, twins(), l.call(h, allowed)),
		Dir: l.Dir, Name: h.Name, Session: true,
		Check:  func() error { return l.Recheck(h) },
		Output: func(line string) { l.HookLine(attrs, line) },
	}, i+1)
}

// call is what a hook is told.
func (l *loop) call(h hooks.Hook, allowed time.Duration) hooks.Call {
	c := hooks.Call{
		Hook: h.Name, Allowed: allowed, Workload: "running",
		Reason: l.reason, Service: l.cfg.Service,
	}
	switch {
	case l.workload == nil:
		c.Workload = "starting"
	case l.exit != nil:
		c.Workload, c.WorkloadStatus = "exited", itoa(l.exit.Status)
	}
	if l.workload != nil {
		c.WorkloadPID = l.workload.PID
	}
	return c
}

// signalPhase signals what belongs to a phase, as soon as it exists.
func (l *loop) signalPhase(i int, sig syscall.Signal) {
	p := &l.phase[i]
	p.signal = sig
	if p.proc != nil {
		l.Procs.SignalHook(p.proc, sig)
	}
}

// tellWorkload sends the stop signal. A suspended process does not act on it
// before it is continued.
func (l *loop) tellWorkload(sig syscall.Signal) {
	l.told = true
	l.send(sig)
	if _, stopped := l.Procs.Stopped(l.workload); stopped {
		l.send(syscall.SIGCONT)
	}
}

// tellRest passes the stop signal to what the workload left behind.
func (l *loop) tellRest(sig syscall.Signal) {
	r := l.signalRest(sig, true)
	if r.Count > 0 || r.Denied > 0 {
		l.Log.Info("descendants told to stop", signalAttr(sig), slog.Int("count", r.Count))
	}
}

// signalRest signals what is left of the workload, as far as it can be found.
func (l *loop) signalRest(sig syscall.Signal, resume bool) child.Rest {
	r := l.Procs.SignalRest(l.workload.PID, sig, resume)
	if !r.Known && !l.tell.blindSaid {
		l.tell.blindSaid = true
		l.Log.Warn("processes can't be listed", slog.String("hint",
			"mount a /proc of this PID namespace: what left the workload's process group can't be reached without"))
	}
	return r
}

// killRest kills whatever is left of the workload. Only the first of several
// sweeps is told of.
func (l *loop) killRest() {
	r := l.signalRest(syscall.SIGKILL, false)
	if l.exit == nil { // also where it could not be found
		if l.Procs.Signal(l.workload, syscall.SIGKILL, false) == nil {
			l.killed, r.Count = true, max(r.Count, 1)
		}
	}
	if !l.tell.killSaid && r.Count+r.Denied > 0 {
		l.tell.killSaid = true
		l.Log.Warn("workload killed", slog.Int("count", r.Count), slog.Int("denied", r.Denied))
	}
}

// phaseDone logs a phase's end.
func (l *loop) phaseDone(e phases.Effect) {
	name := l.hook(e.Phase).Name
	l.tell.phaseDone(e.Phase, e.Result, e.Took)
	args := []any{
		phaseAttr(name), slog.String("result", e.Result.String()),
		durAttr("allowed", l.phase[e.Phase].allowed), durAttr("used", e.Took),
	}
	if s := l.tell.phaseStatus[e.Phase]; s != nil {
		args = append(args, slog.Int("status", *s))
	}
	if e.Result == phases.Succeeded {
		l.Log.Info("phase ended", args...)
	} else {
		l.Log.Warn("phase ended", args...)
	}
}

// say logs what the machine only wants to be known.
func (l *loop) say(e phases.Effect) {
	sig := signalAttr(syscall.Signal(e.Signal))
	switch e.Kind {
	case phases.SayIgnored:
		l.Log.Info("signal ignored", sig, stageAttr(l.machine.Stage()))
	case phases.SayJoined:
		l.Log.Info("stop joined", sig, stageAttr(l.machine.Stage()))
	case phases.SayHurried:
		l.Log.Info("stage cut short", sig, stageAttr(e.Stage))
	case phases.SayAssumed:
		l.Log.Warn("assumed grace period passed", durAttr("grace", l.job.Plan.Grace),
			slog.String("hint", "set --grace-period to what the orchestrator gives"))
	case phases.SayOverran:
		l.Log.Warn("stage overran", stageAttr(e.Stage), durAttr("window", e.Window))
	}
}

// finish ends the run with the last line of the log. The probe listener goes on
// saying no until the process is gone, which closes it.
func (l *loop) finish(now time.Time, e phases.Effect) {
	l.over = true
	l.status = e.Status
	if to, ok := l.cfg.RemapExit[e.Status]; ok && e.Own {
		l.status = to
	}
	l.tell.finish(now)
	l.publish()
	limit := l.flushLimit(now)
	l.Procs.Drain(limit / 2)
	l.logEnd()
	if l.Terminal != nil {
		l.Terminal.TakeBack()
	}
	if l.exit == nil || !l.gone {
		if _, known := l.Procs.Remains(); !known {
			l.Procs.KillAll()
		}
	}
	l.Flush(max(limit-time.Since(now), 0))
}

// flushMax is how long the last lines of the log may take.
const flushMax = 100 * time.Millisecond

// flushLimit keeps the flush inside the hard deadline.
func (l *loop) flushLimit(now time.Time) time.Duration {
	limit := flushMax
	if l.tell.stopped() {
		if hard, ok := l.job.Plan.Deadline(l.tell.stoppedAt); ok {
			limit = min(limit, hard.Sub(now))
		}
	}
	return max(limit, 0)
}

// jobControl looks after a workload that was suspended from its terminal.
func (l *loop) jobControl() {
	if l.Terminal == nil || l.workload == nil || l.exit != nil || l.over {
		return
	}
	sig, stopped := l.Procs.Stopped(l.workload)
	if !stopped {
		l.suspended = false
		return
	}
	if l.suspended || !fromTerminal(sig) {
		return
	}
	if l.Suspend == nil || l.reason != "" || l.Orphaned != nil && l.Orphaned() {
		// As PID 1, and in a session of the init's own, there is no shell above
		// that could continue it: it would be stuck for good. And one that is to
		// stop has to run.
		if sig != syscall.SIGTSTP {
			l.Terminal.Give(l.workload.PID)
		}
		_ = l.Procs.Signal(l.workload, syscall.SIGCONT, true)
		return
	}
	l.suspended = true
	l.Terminal.TakeBack()
	l.Suspend()
}

// fromTerminal: the signals with which a terminal suspends a job (termios(3)).
func fromTerminal(sig syscall.Signal) bool {
	return sig == syscall.SIGTSTP || sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
}

// resume: the shell has continued us, in the foreground (fg) or not (bg). After
// bg another fg finds the workload running: it only lacks the terminal.
func (l *loop) resume() {
	if l.Terminal == nil || l.workload == nil || l.exit != nil {
		return
	}
	if l.Terminal.Foreground() == syscall.Getpgrp() {
		l.Terminal.Give(l.workload.PID)
	}
	if l.suspended {
		_ = l.Procs.Signal(l.workload, syscall.SIGCONT, true)
	}
	l.suspended = false
}

// startStatus is the exit status for a command that could not be started.
func startStatus(err error) int {
	var e *child.StartError
	if errors.As(err, &e) {
		return e.Status
	}
	return 126
}

// oneLine keeps an error on the line it belongs to.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
