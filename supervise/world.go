// Package supervise is the init's one loop: it takes in signals, the ends of
// processes and the passing of time, asks the machine what follows, and does
// it. All mutable state belongs to its goroutine.
package supervise

import (
	"log/slog"
	"syscall"
	"time"

	"drainit/budget"
	"drainit/child"
	"drainit/config"
	"drainit/hooks"
	"drainit/probe"
)

// processes is what the loop needs of child.Table.
type processes interface {
	Start(s child.Spec, tag int)
	Started() <-chan child.Started
	Register(child.Started)
	Reap() child.Reaped
	Signal(p *child.Proc, sig syscall.Signal, group bool) error
	SignalHook(p *child.Proc, sig syscall.Signal)
	SignalRest(group int, sig syscall.Signal, resume bool) child.Rest
	Remains() (int, bool)
	Stopped(p *child.Proc) (syscall.Signal, bool)
	Hooks() bool
	KillAll()
	// Drain waits until the output of ended hooks has been read, at most limit.
	Drain(limit time.Duration)
}

// prober is what the loop needs of probe.Server.
type prober interface {
	SetStatus(probe.Status)
	Publish(*probe.Snapshot)
}

// terminal is what the loop needs of child.Terminal.
type terminal interface {
	Give(group int)
	TakeBack()
	Foreground() int
}

// World is everything outside the loop.
type World struct {
	// Next waits for a signal until a time, the zero time being never; false:
	// the time has come first. CHLD stands for anything that is not a signal
	// too: a child that may have changed state, an answer of Procs.
	Next     func(until time.Time) (syscall.Signal, bool)
	Procs    processes
	Terminal terminal    // nil: not interactive
	Probe    prober      // nil: no listener
	Suspend  func()      // stops the init itself until its shell continues it; nil as PID 1
	Orphaned func() bool // no shell above could continue the init; nil: there is one
	Recheck  func(hooks.Hook) error
	// Asked is called once when the workload's start has been asked for. It may
	// not block.
	Asked func()
	// Ready is called once when the workload has been started, for what can
	// wait until then. It may not block.
	Ready func()

	Log      *slog.Logger
	HookLine func(attrs []slog.Attr, line string)
	// Flush writes out the log; it takes no longer than the limit.
	Flush func(limit time.Duration)

	Env     []string // the init's own
	Dir     string   // the workload's working directory
	Version string
}

// Job is what is to be run.
type Job struct {
	Config *config.Config
	Plan   budget.Plan
	Phases hooks.Set
}
