package supervise

import (
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"drainit/child"
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
	case phases.StartWorkload:
		l.startWorkload()
	case phases.Tell:
		l.tellWorkload(syscall.Signal(e.Signal))
	case phases.TellRest:
		l.tellRest(syscall.Signal(e.Signal))
	case phases.KillRest:
		l.killRest()
	case phases.Final:
		l.final(e)
	case phases.Exit:
		l.finish()
	default:
		l.performHook(e)
	}
}

func (l *loop) setStatus(s probe.Status) {
	l.tell.readiness = s
	if s == probe.Ready {
		l.tell.begunAt = time.Time{} // a drain that was called off is no shutdown
	}
	if l.Probe != nil {
		l.Probe.SetStatus(s)
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
	l.tell.killed += uint64(r.Count)
	if !l.tell.killSaid && r.Count+r.Denied > 0 {
		l.tell.killSaid = true
		l.Log.Warn("workload killed", slog.Int("count", r.Count), slog.Int("denied", r.Denied))
	}
}

// say logs what the machine only wants to be known.
func (l *loop) say(e phases.Effect) {
	sig := signalAttr(syscall.Signal(e.Signal))
	switch e.Kind {
	case phases.SayIgnored:
		l.Log.Info("signal ignored", sig, stageAttr(e.Stage))
	case phases.SayJoined:
		l.Log.Info("stop joined", sig, stageAttr(e.Stage))
	case phases.SayCancelled:
		l.drainCancelled()
	case phases.Reply, phases.Share, phases.Answer:
		l.reply(e)
	case phases.SayHurried:
		l.Log.Info("stage cut short", sig, stageAttr(e.Stage))
	case phases.SayAssumed:
		l.Log.Warn("assumed grace period passed", durAttr("grace", l.job.Plan.Grace),
			slog.String("hint", "set --grace-period to what the orchestrator gives"))
	case phases.SayOverran:
		l.Log.Warn("stage overran", stageAttr(e.Stage), durAttr("window", e.Window))
		if e.Stage == phases.Starting { // the workload's start hangs
			l.giveUp()
		}
	}
}

// final: nothing of the shutdown's figures changes any more. The last line of the
// log, the report and the metrics tell them.
func (l *loop) final(e phases.Effect) {
	now := time.Now() // what came before in the same step may have taken its time
	l.status = e.Status
	if to, ok := l.cfg.RemapExit[e.Status]; ok && e.Own {
		l.status = to
	}
	l.tell.finish(now)
	l.publish()
	limit := l.flushLimit(now)
	l.Procs.Drain(limit / 4)
	l.logEnd()
	l.report(limit / 2)
	l.spent = time.Since(now)
}

// finish ends the run. The probe listener goes on saying no until the process is
// gone, which closes it.
func (l *loop) finish() {
	now := time.Now()
	l.over = true
	if l.Terminal != nil {
		l.Terminal.TakeBack()
	}
	if l.exit == nil || !l.gone {
		if _, known := l.Procs.Remains(); !known {
			l.Procs.KillAll()
		}
	}
	l.Flush(max(l.flushLimit(now)-l.spent, 0))
}

// flushMax is how long the last lines of the log may take.
const flushMax = 100 * time.Millisecond

// flushLimit keeps the flush inside the hard deadline.
func (l *loop) flushLimit(now time.Time) time.Duration {
	limit := flushMax
	if hard, ok := l.machine.Hard(); ok {
		limit = min(limit, hard.Sub(now))
	} else if l.tell.stopped() { // what had ended by then was taken in before the signal
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
	if l.Suspend == nil || l.tell.closing || l.Orphaned != nil && l.Orphaned() {
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
