// Command drainit is the init that a container starts with: it runs one
// program, forwards signals, reaps orphans, and drains before it stops.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"drainit/budget"
	"drainit/child"
	"drainit/config"
	"drainit/control"
	"drainit/hooks"
	"drainit/journal"
	"drainit/probe"
	"drainit/report"
	"drainit/self"
	"drainit/signals"
	"drainit/supervise"
)

// failed is the exit status when the init itself refused or could not go on.
const failed = 125

// version is what drainit version and the metrics tell.
const version = "0.1.0"

func main() {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(run(nil, nil)) // a verb, which has no care for signals
	}
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
		Args: os.Args[1:], Env: os.LookupEnv, PID: os.Getpid(), Help: os.Stdout, SameInit: sameInit,
	})
	switch {
	case errors.Is(err, config.ErrHelp):
		return 0
	case err != nil && relay != nil:
		return refuseRun(defaultReport(config.DefaultReport), err)
	case err != nil:
		return refuse(err)
	case r.Version:
		fmt.Println("drainit", version, runtime.Version())
		return 0
	case r.Client != nil:
		return client(r.Client)
	case r.Spread != nil:
		return spreadVerb(r.Spread)
	case r.Budget != nil:
		return budgetVerb(r.Budget, r.BudgetJSON)
	}
	return mainJob(r.Run, relay, threads)
}

// mainJob prepares everything that may be refused, and only then starts
// anything.
func mainJob(c *config.Config, relay *signals.Relay, threads <-chan struct{}) int {
	file := openReport(c)
	found, err := hooks.DiscoverAll(c.ConfigDir, os.Geteuid())
	if err != nil {
		return refuseRun(file, err)
	}
	terminal, err := openTerminal(c)
	if err != nil {
		return refuseRun(file, err)
	}
	p := parts{
		relay: relay, table: child.NewTable(), terminal: terminal,
		journal: openJournal(c, terminal != nil), scraped: make(chan struct{}, 1), report: file,
	}
	p.log = p.journal.Logger().With(slog.String("service", c.Service))
	if p.server, err = listen(c, p); err != nil {
		return refuseRun(file, err)
	}
	if p.server == nil {
		c.Budget.Linger.D = 0 // there is nothing that could stay
	}
	c.Budget.Phases, c.Budget.Companions, c.Budget.Waves = len(found.Phases.Hooks), len(found.Companions.Hooks), found.Waves()
	plan := budget.Make(c.Budget)
	if plan.Shortfall() > 0 && c.Strict {
		return refuseRun(file, misfit(c.Budget, plan))
	}
	if p.control, err = openControl(c, p); err != nil {
		return refuseRun(file, err)
	}
	if len(found.Steps.Hooks)+len(found.Companions.Hooks) > 0 { // which come before the workload
		p.held = self.Seal()
	}
	<-threads
	if sig, dying := relay.Dying(); dying {
		return 128 + int(sig)
	}
	return supervised(supervise.Job{Config: c, Plan: plan, Hooks: found, Seed: uint64(time.Now().UnixNano())}, p)
}

// openReport finds out where the report goes: to the default place only where
// that is there.
func openReport(c *config.Config) *report.File {
	if !c.ReportSet && c.Report != "" {
		return defaultReport(c.Report)
	}
	return report.Open(c.Report)
}

// openControl binds the control socket. A name that nobody asked for and that
// can't be had costs the control, not the workload.
func openControl(c *config.Config, p parts) (*control.Server, error) {
	if c.ControlOff {
		return nil, nil
	}
	addr, err := c.Control, error(nil)
	if addr == "" {
		addr, err = control.Default(os.Getpid())
	}
	var s *control.Server
	if err == nil {
		s, err = control.Listen(addr, control.Options{Wake: p.relay.Wake, Log: p.log})
	}
	switch {
	case err == nil:
		return s, nil
	case c.ControlSet:
		return nil, &config.Error{Text: fmt.Sprintf("--control %q: %v", c.Control, err), Hint: "choose another address, or none"}
	}
	p.log.Warn("no control socket", slog.String("error", err.Error()),
		slog.String("hint", "drainit status and drain can't reach this init; --control names another address, or none"))
	return nil, nil
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
		UnreadyStatus: c.UnreadyStatus, Log: p.log, Scraped: p.lastScrape,
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

// parts are what a run is wired of.
type parts struct {
	relay    *signals.Relay
	table    *child.Table
	journal  *journal.Journal
	log      *slog.Logger
	server   *probe.Server
	control  *control.Server // nil: none
	terminal *child.Terminal
	report   *report.File // nil: none
	scraped  chan struct{}
	held     []int // inherited descriptors that are the workload's alone; nil: not looked at yet
}

// lastScrape tells the loop that the final figures have been read.
func (p parts) lastScrape() {
	select {
	case p.scraped <- struct{}{}:
	default: // it knows
	}
	p.relay.Wake()
}

// supervised runs the loop, on the main goroutine's own thread, with the
// forking thread beside it. What runs in the background is not waited for: it
// holds nothing that is not over by then, and a fork whose execve(2) hangs must
// not keep the init.
func supervised(job supervise.Job, p parts) (status int) {
	defer recovered(&status)
	self.Processors(job.Hooks.Some())
	adopt := self.Adopt()
	p.table.Answered, p.table.Collect = p.relay.Wake, self.Collect
	go p.table.Fork()
	status, err := supervise.Run(job, world(job, p, adopt))
	if p.control != nil {
		p.control.Close() // which removes its file
	}
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
		Inherit: p.held, Env: syscall.Environ(), Dir: dir, Version: version,
	}
	w.Scraped = p.scraped
	if p.server != nil {
		w.Probe = p.server
	}
	if p.control != nil {
		w.Control = p.control
	}
	if p.report != nil {
		w.Report = p.report.Write
	}
	if p.terminal != nil {
		w.Terminal = p.terminal
		if os.Getpid() != 1 {
			w.Suspend, w.Orphaned = child.Suspend, child.Orphaned
		}
	}
	return w
}
