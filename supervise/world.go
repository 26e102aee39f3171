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
	"drainit/control"
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
	SignalHooks(all []*child.Proc, sig syscall.Signal)
	SignalLeft(all []*child.Proc, sig syscall.Signal) int
	Left(all []*child.Proc) ([]int, bool)
	Forget(p *child.Proc)
	SignalRest(group int, sig syscall.Signal, resume bool) child.Rest
	Remains() (int, bool)
	Stopped(p *child.Proc) (syscall.Signal, bool)
	Hooks() bool
	GiveUp() bool
	KillAll()
	// Drain waits until the output of ended hooks has been read, at most limit.
	Drain(limit time.Duration)
}

// prober is what the loop needs of probe.Server.
type prober interface {
	SetStatus(probe.Status)
	Publish(*probe.Snapshot)
}

// controller is what the loop needs of control.Server.
type controller interface {
	Addr() string
	Calls() <-chan control.Call
	Say(id uint64, text string)
	Answer(id uint64, a control.Answer)
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
	// too: a child that may have changed state, an answer of Procs, a call of
	// Control, a scrape.
	Next     func(until time.Time) (syscall.Signal, bool)
	Procs    processes
	Terminal terminal    // nil: not interactive
	Probe    prober      // nil: no listener
	Control  controller  // nil: no control socket
	Suspend  func()      // stops the init itself until its shell continues it; nil as PID 1
	Orphaned func() bool // no shell above could continue the init; nil: there is one
	Recheck  func(hooks.Hook) error
	// Scraped gets one value when the final figures have been read.
	Scraped <-chan struct{}
	// Asked is called once when the first start, a step's or the workload's, has
	// been asked for. It may not block.
	Asked func()
	// Ready is called once when the workload has been started, for what can
	// wait until then. It may not block.
	Ready func()

	Log      *slog.Logger
	HookLine func(attrs []slog.Attr, line string)
	// Flush writes out the log; it takes no longer than the limit.
	Flush func(limit time.Duration)
	// Report writes the shutdown report, within the limit; nil: there is none.
	Report func(line []byte, limit time.Duration) error

	// Inherit are descriptors from 3 on that the workload is to have and no hook:
	// they are close-on-exec by now.
	Inherit []int
	Env     []string // the init's own
	Dir     string   // the workload's working directory
	Version string
}

// Job is what is to be run.
type Job struct {
	Config *config.Config
	Plan   budget.Plan
	Hooks  hooks.All
	// Seed is of the jitter of companions' restarts.
	Seed uint64
}
