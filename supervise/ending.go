package supervise

import (
	"errors"
	"log/slog"
	"syscall"
	"time"

	"drainit/report"
	"drainit/signals"
)

// logEnd is the last line.
func (l *loop) logEnd() {
	if l.workload == nil && !l.tell.stopped() && !l.early() {
		return
	}
	var args []any
	for _, s := range l.tell.stages {
		args = append(args, durAttr(s.Name, time.Duration(s.Seconds*float64(time.Second))))
	}
	args = append(args, durAttr("total", l.tell.total()))
	if l.exit != nil {
		args = append(args, slog.Int("workload_status", l.exit.Status))
	}
	args = append(args, slog.String("ended_by", l.endedBy()), slog.Int("exit_status", l.status))
	l.Log.Info("shutdown complete", args...)
}

// endedBy says who ended the workload.
func (l *loop) endedBy() string {
	switch {
	case l.workload == nil:
		return "never started"
	case l.exit == nil:
		return "nobody: it survived KILL"
	case l.killed && l.exit.Signal == syscall.SIGKILL:
		return "drainit, by KILL"
	case l.told:
		return "stop signal"
	case l.exit.Signal != 0:
		return "signal " + signals.Name(l.exit.Signal)
	}
	return "itself"
}

// report writes the shutdown report: where it was asked for always, else after a
// stop signal or when the init itself failed. A workload that ends by itself has
// its own last words, which an orchestrator shows only where nobody else wrote.
func (l *loop) report(limit time.Duration) {
	if l.Report == nil || !l.cfg.ReportSet && !l.tell.stopped() && l.tell.err == nil {
		return
	}
	r := report.Report{
		Reason: l.reason, EndedBy: l.endedBy(), ExitStatus: l.status, TotalSeconds: l.tell.total().Seconds(),
	}
	if l.tell.err != nil {
		r.Reason, r.Error = reasonFailed, oneLine(l.tell.err.Error())
	}
	if l.exit != nil {
		r.WorkloadStatus = &l.exit.Status
	}
	if p := l.job.Plan; !p.Unlimited {
		grace := p.Grace.Seconds()
		r.GraceSeconds, r.GraceAssumed = &grace, !p.GraceSet
	}
	for _, s := range l.tell.stages {
		r.Stages = append(r.Stages, report.Timed{Name: s.Name, Seconds: s.Seconds})
	}
	r.Phases, r.Steps = reported(l.tell.phases), reported(l.tell.steps)
	switch err := l.Report(r.Line(), limit); {
	case err == nil:
	case errors.Is(err, report.ErrTaken):
		l.Log.Info("report left to the workload", slog.String("file", l.cfg.Report))
	default:
		l.Log.Warn("report not written", slog.String("file", l.cfg.Report), errAttr(err))
	}
}

// reported are the hooks that were called, or should have been.
func reported(all []hookTold) []report.Hook {
	var list []report.Hook
	for _, h := range all {
		if h.result == "" {
			continue
		}
		list = append(list, report.Hook{Name: h.name, Result: h.last.String(), Seconds: h.took.Seconds()})
	}
	return list
}
