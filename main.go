// Command drainit is the init that a container starts with: it runs one
// program, forwards signals, reaps orphans, and drains before it stops.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"drainit/budget"
	"drainit/child"
	"drainit/config"
	"drainit/hooks"
	"drainit/journal"
	"drainit/probe"
	"drainit/self"
	"drainit/signals"
	"drainit/supervise"
)

// failed is the exit status when the init itself refused or could not go on.
const failed = 125

// version is what drainit version and the metrics tell.
const version = "0.1.0"

func main() {
	relay := signals.Open() // before anything that takes time, and on the first thread
	threads := make(chan struct{})
	go func() {
		defer close(threads)
		self.Threads()
	}()
	os.Exit(run(relay, threads))
}

// run parses, and does what was asked for.
func run(relay *signals.Relay, threads <-chan struct{}) int {
	r, err := config.Parse(config.World{
		Args: os.Args[1:], Env: os.LookupEnv, PID: os.Getpid(), Help: os.Stdout,
	})
	switch {
	case errors.Is(err, config.ErrHelp):
		return 0
	case err != nil:
		return refuse(err)
	case r.Version:
		fmt.Println("drainit", version, runtime.Version())
		return 0
	}
	return mainJob(r.Run, relay, threads)
}

// mainJob prepares everything that may be refused, and only then starts
// anything.
func mainJob(c *config.Config, relay *signals.Relay, threads <-chan struct{}) int {
	found := hooks.Set{}
	if c.ConfigDir != "" {
		var err error
		if found, err = hooks.Discover(filepath.Join(c.ConfigDir, "phases.d"), hooks.Phase, os.Geteuid()); err != nil {
			return refuse(err)
		}
	}
	c.Budget.Phases = len(found.Hooks)
	plan := budget.Make(c.Budget)
	if short := plan.Shortfall(); short > 0 && c.Strict {
		return refuse(misfit(plan))
	}
	terminal, err := openTerminal(c)
	if err != nil {
		return refuse(err)
	}
	p := parts{relay: relay, table: child.NewTable(), terminal: terminal, journal: openJournal(c, terminal != nil)}
	p.log = p.journal.Logger().With(slog.String("service", c.Service))
	if p.server, err = listen(c, p); err != nil {
		return refuse(err)
	}
	<-threads
	return supervised(supervise.Job{Config: c, Plan: plan, Phases: found}, p)
}

// openTerminal finds the terminal that the workload is to have; nil: none.
func openTerminal(c *config.Config) (*child.Terminal, error) {
	if c.Interactive == "never" {
		return nil, nil
	}
	t := child.OpenTerminal()
	if t == nil && c.Interactive == "always" {
		return nil, &config.Error{
			Text: `--interactive "always": standard input is not our controlling terminal, or we are not in its foreground`,
			Hint: "run the container with a terminal (docker run -it), or leave it to auto",
		}
	}
	return t, nil
}

func openJournal(c *config.Config, interactive bool) *journal.Journal {
	level := c.LogLevel
	if interactive && !c.LogLevelSet {
		level = slog.LevelWarn
	}
	return journal.Open(journal.Options{Format: c.LogFormat, Level: level, FD: 2})
}

// listen binds the probe listener. An address that nobody asked for and that
// is taken costs the probes, not the workload.
func listen(c *config.Config, p parts) (*probe.Server, error) {
	if c.ProbeAddr == "" {
		return nil, nil
	}
	s, err := probe.Listen(probe.Config{
		Addr: c.ProbeAddr, ReadyPath: c.ReadyPath, LivePath: c.LivePath, MetricsPath: c.MetricsPath,
		UnreadyStatus: c.UnreadyStatus, Log: p.log,
	}, probe.Counters{Reaped: p.table.Orphans, LogDropped: p.journal.Dropped})
	if err == nil {
		return s, nil
	}
	if c.ProbeAddrSet {
		return nil, &config.Error{
			Text: fmt.Sprintf("--probe-addr %q: %v", c.ProbeAddr, err),
			Hint: "choose another port, or none",
		}
	}
	p.log.Warn("no probe listener", slog.String("addr", c.ProbeAddr), slog.String("error", err.Error()),
		slog.String("hint", "--probe-addr names another one, or none"))
	return nil, nil
}

// misfit is the refusal of --strict-budget.
func misfit(p budget.Plan) error {
	text := "--strict-budget: the plan is longer than the grace period:"
	for _, f := range p.Figures() {
		text += fmt.Sprintf(" %s %v +", f.Name, f.D)
	}
	return &config.Error{
		Text: fmt.Sprintf("%s = %v, grace %v, shortfall %v", text[:len(text)-2], p.Sum(), p.Grace, p.Shortfall()),
		Hint: "shrink one of the figures that you set, or declare a longer --grace-period where the orchestrator gives it",
	}
}

// refuse prints the one line and the hint.
func refuse(err error) int {
	var hint string
	var e *config.Error
	var p hooks.Problems
	var s *child.StartError
	switch {
	case errors.As(err, &e):
		hint = e.Hint
	case errors.As(err, &p):
		hint = p.Hint()
	case errors.As(err, &s):
		hint = s.Hint
	}
	text := "drainit: " + err.Error() + "\n"
	if hint != "" {
		text += "drainit: hint: " + hint + "\n"
	}
	self.Say(text)
	return failed
}

// parts are what a run is wired of.
type parts struct {
	relay    *signals.Relay
	table    *child.Table
	journal  *journal.Journal
	log      *slog.Logger
	server   *probe.Server
	terminal *child.Terminal
}

// supervised runs the loop, on the main goroutine's own thread, with the
// forking thread beside it. What runs in the background is not waited for: it
// holds nothing that is not over by then, and a fork whose execve(2) hangs must
// not keep the init.
func supervised(job supervise.Job, p parts) (status int) {
	defer recovered(&status)
	self.Processors()
	adopt := self.Adopt()
	p.table.Answered, p.table.Collect = p.relay.Wake, self.Collect
	go p.table.Fork()
	status, err := supervise.Run(job, world(job, p, adopt))
	if err != nil {
		refuse(err)
	}
	return status
}

// world is the loop's view of everything.
func world(job supervise.Job, p parts, adopt error) supervise.World {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	w := supervise.World{
		Next: p.relay.Next, Procs: p.table,
		Recheck: func(h hooks.Hook) error { return hooks.Recheck(h, os.Geteuid()) },
		Asked:   func() { asked(p) },
		Ready:   func() { started(p, adopt) },
		Log:     p.log, HookLine: p.journal.HookLine, Flush: p.journal.Close,
		Env: syscall.Environ(), Dir: dir, Version: version,
	}
	if p.server != nil {
		w.Probe = p.server
	}
	if p.terminal != nil {
		w.Terminal = p.terminal
		if os.Getpid() != 1 {
			w.Suspend, w.Orphaned = child.Suspend, child.Orphaned
		}
	}
	return w
}
