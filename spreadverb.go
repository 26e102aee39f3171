package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"drainit/child"
	"drainit/config"
	"drainit/self"
	"drainit/signals"
	"drainit/spread"
)

// spreadVerb runs a command for each line of standard input, evenly over a time.
func spreadVerb(s *config.Spread) (status int) {
	defer recovered(&status)
	over, err := spreadOver(s, os.LookupEnv)
	if err != nil {
		return refuse(err)
	}
	relay := signals.Open()
	in, err := takeInput()
	if err != nil {
		return refuse(err)
	}
	self.Processors(false)
	r := &spreadRuns{table: child.NewTable(), env: syscall.Environ(), procs: map[*child.Proc]int{}}
	r.table.Answered = relay.Wake
	go r.table.Fork()
	o := spread.Options{
		Command: s.Command, Over: over, Reading: !s.OverSet, In: in,
		Next: stopsOf(relay), Wake: relay.Wake, Runs: r,
	}
	if s.Jitter {
		o.Jitter = rand.Float64
	}
	status, err = spread.Run(o)
	if err != nil {
		refuse(err)
	}
	return status
}

// spreadOver is the time to spread over: what was set, or nine tenths of what the
// hook that we run in was given.
func spreadOver(s *config.Spread, env func(string) (string, bool)) (time.Duration, error) {
	if s.OverSet {
		return s.Over, nil
	}
	for _, v := range []struct{ name, unit string }{{"DRAINIT_ALLOWED", ""}, {"DRAINIT_ALLOWED_MS", "ms"}} {
		text, _ := env(v.name)
		if text == "" {
			continue
		}
		d, err := config.ParseDuration(text + v.unit)
		if err != nil {
			return 0, &config.Error{Text: fmt.Sprintf("%s %q: %v", v.name, text, err), Hint: "drainit sets it for its hooks; --over=D takes its place"}
		}
		return d - d/10, nil
	}
	return 0, &config.Error{
		Text: "no time to spread over: --over is not set, and neither is DRAINIT_ALLOWED",
		Hint: "--over=D; in a hook of drainit's it may be left out",
	}
}

// takeInput moves standard input to a descriptor of our own, and leaves the runs
// /dev/null in its place.
func takeInput() (io.Reader, error) {
	fd, err := syscall.Dup(0)
	if err != nil {
		return nil, os.NewSyscallError("dup standard input", err)
	}
	syscall.CloseOnExec(fd) // nothing has been forked yet
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := syscall.Dup3(int(null.Fd()), 0, 0); err != nil {
		return nil, os.NewSyscallError("dup /dev/null", err)
	}
	return os.NewFile(uintptr(fd), "standard input"), nil
}

// stopsOf is what spread waits by: of all signals those come through that end a
// program which is told to end, unless it was started with them ignored (nohup).
// Those with which a terminal suspends a job do that.
func stopsOf(relay *signals.Relay) func(time.Time) (syscall.Signal, bool) {
	stops := signals.Of(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	suspends := signals.Of(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	return func(until time.Time) (syscall.Signal, bool) {
		for {
			sig, ok := relay.Next(until)
			switch {
			case !ok || sig == syscall.SIGCHLD:
				return sig, ok
			case stops.Has(sig) && !signal.Ignored(sig):
				return sig, true
			case suspends.Has(sig) && !child.Orphaned():
				child.Suspend()
			}
		}
	}
}

// spreadRuns are the processes of the runs.
type spreadRuns struct {
	table *child.Table
	env   []string
	procs map[*child.Proc]int // those that run, and their items
	told  syscall.Signal      // 0: none
}

// Start asks for a process. It leads a group of its own, so that what a terminal
// sends to ours does not reach it twice.
func (r *spreadRuns) Start(argv []string, item int) {
	r.table.Start(child.Spec{Argv: argv, Env: r.env}, item)
}

// Changes takes in the answers to Start, and what has ended since.
func (r *spreadRuns) Changes() []spread.Change {
	var all []spread.Change
	for {
		select {
		case s := <-r.table.Started():
			all = append(all, r.started(s))
			continue
		default:
		}
		break
	}
	for _, e := range r.table.Reap().Exits {
		all = append(all, spread.Change{Item: r.procs[e.Proc], Err: exitError(e)})
		delete(r.procs, e.Proc)
	}
	return all
}

func (r *spreadRuns) started(s child.Started) spread.Change {
	r.table.Register(s)
	if s.Err != nil {
		return spread.Change{Item: s.Tag, Err: s.Err, Status: refusedStatus(s.Err)}
	}
	r.procs[s.Proc] = s.Tag
	if r.told != 0 {
		_ = r.table.Signal(s.Proc, r.told, true)
	}
	return spread.Change{Item: s.Tag, Started: true}
}

// Tell signals the groups of the runs.
func (r *spreadRuns) Tell(sig syscall.Signal) {
	r.told = sig
	for p := range r.procs {
		_ = r.table.Signal(p, sig, true) // it has just ended, or is another user's by now
	}
}

// exitError is how a run ended; nil: well.
func exitError(e child.Exit) error {
	switch {
	case e.Signal != 0:
		return errors.New("signal " + signals.Name(e.Signal))
	case e.Status != 0:
		return fmt.Errorf("exit status %d", e.Status)
	}
	return nil
}

// refusedStatus is the exit status for a command that can't be run; 0 where the
// error comes of this run's argument, or of what there was of processes and memory
// at that moment.
func refusedStatus(err error) int {
	for _, passing := range []error{syscall.E2BIG, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY} {
		if errors.Is(err, passing) {
			return 0
		}
	}
	var e *child.StartError
	if errors.As(err, &e) {
		return cmp.Or(e.Status, 126)
	}
	return 0
}
