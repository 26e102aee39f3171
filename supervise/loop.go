package supervise

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"drainit/child"
	"drainit/config"
	"drainit/phases"
	"drainit/signals"
)

// loop is the state of one run.
type loop struct {
	World
	cfg     *config.Config
	job     Job
	machine *phases.Machine

	workload *child.Proc // nil: not started yet
	exit     *child.Exit // how it ended; nil: it has not
	kept     []syscall.Signal
	gone     bool      // nothing is left of the workload, and the machine knows
	rescan   time.Time // when /proc is read again for what it left; zero: a child's end will tell
	pause    time.Duration
	killed   bool // KILL was sent to the workload while it lived
	told     bool // the stop signal was

	calls     map[int]*call // of hooks, by tag
	clients   []uint64      // that wait for a drain
	suspended bool
	reason    string // what began the drain or the shutdown, for hooks

	asked    int // starts that have not been answered
	queue    []phases.Event
	stepping bool

	tell    telling
	began   time.Time
	started time.Time
	spent   time.Duration // by the last words
	status  int
	over    bool
}

// Run starts the workload and what comes before it, and returns the init's exit
// status when it and everything that has to follow are over. The error says why a
// step or the workload could not be started, where that is what ended the run.
func Run(job Job, w World) (int, error) {
	l := newLoop(job, w)
	l.begin()
	more := false
	for !l.over {
		at := l.deadline()
		if more {
			at = time.Now()
		}
		sig, ok := l.Next(at)
		switch { // a signal comes before whatever has come with it
		case !ok:
		case sig == syscall.SIGCHLD:
			l.reap()
			l.jobControl()
		default:
			l.signal(sig)
		}
		l.takeAnswers()
		more = l.takeCalls()
		l.tick(at)
	}
	return l.status, l.tell.err
}

func newLoop(job Job, w World) *loop {
	c := job.Config
	l := &loop{World: w, cfg: c, job: job, calls: make(map[int]*call), began: time.Now()}
	cfg := phases.Config{
		Plan: job.Plan, Companions: len(job.Hooks.Companions.Hooks), StartTimeout: c.StartTimeout,
		StopSignal: int(c.StopSignal), Term: int(syscall.SIGTERM), Seed: job.Seed,
	}
	for _, h := range job.Hooks.Phases.Hooks {
		cfg.Phases = append(cfg.Phases, phases.Phase{Name: h.Name, Max: h.MaxDuration})
	}
	for _, h := range job.Hooks.Steps.Hooks {
		cfg.Steps = append(cfg.Steps, phases.Step{Name: h.Name, Max: h.MaxDuration, Wave: h.Order})
	}
	l.machine = phases.New(cfg)
	l.tell = newTelling(job, w.Version)
	return l
}

// begin takes in the signals that are already there, and starts.
func (l *loop) begin() {
	for range signals.Max { // one of each number: somebody may go on sending
		sig, ok := l.Next(time.Now())
		if !ok {
			break
		}
		if sig != syscall.SIGCHLD {
			l.signal(sig)
		}
	}
	if l.early() && l.reason == "" {
		l.logPlan()
	}
	l.step(phases.Event{Kind: phases.Begin})
	if !l.over {
		l.Asked()
	}
}

// early tells that something is started before the workload, which the plan is
// told before; else it can wait until that has been started.
func (l *loop) early() bool {
	return len(l.job.Hooks.Steps.Hooks)+len(l.job.Hooks.Companions.Hooks) > 0
}

// startWorkload asks for it. What it finds in its environment beside the init's
// own is where to reach the init.
func (l *loop) startWorkload() {
	l.start(child.Spec{
		Argv: l.cfg.Command, Env: l.workloadEnv(), Inherit: l.Inherit,
		Foreground:  l.Terminal != nil,
		DieWithInit: os.Getpid() != 1, // as PID 1 its death is everybody's
	}, workloadTag)
}

// start asks for a process; startAnswered takes in the answer.
func (l *loop) start(s child.Spec, tag int) {
	l.asked++
	l.Procs.Start(s, tag)
}

// deadline is when the loop has to act without being called; zero: never.
func (l *loop) deadline() time.Time {
	at, _ := l.machine.Deadline()
	looking := l.exit != nil && !l.gone || l.clearing()
	if looking && !l.rescan.IsZero() && (at.IsZero() || l.rescan.Before(at)) {
		at = l.rescan
	}
	return at
}

// tick acts on a deadline that has passed, whatever else has kept coming.
func (l *loop) tick(at time.Time) {
	if l.over || at.IsZero() || time.Now().Before(at) {
		return
	}
	l.reap() // what has just ended has not overrun
	l.step(phases.Event{Kind: phases.Tick})
}

// takeAnswers takes in what has become of the starts that were asked for.
func (l *loop) takeAnswers() {
	for !l.over {
		select {
		case s := <-l.Procs.Started():
			l.startAnswered(s)
		case <-l.Scraped:
			l.step(phases.Event{Kind: phases.Scraped})
		default:
			return
		}
	}
}

// step asks the machine and does what it says. An event that comes up while
// effects are performed waits until they all are.
func (l *loop) step(events ...phases.Event) {
	l.queue = append(l.queue, events...)
	if l.stepping {
		return
	}
	l.stepping = true
	for len(l.queue) > 0 {
		events, l.queue = l.queue, nil
		now := time.Now()
		effects := l.machine.Step(now, events...)
		for i := 0; i < len(effects); i++ {
			if n := l.performTogether(effects[i:]); n > 0 {
				i += n - 1
				continue
			}
			l.perform(now, effects[i])
		}
	}
	l.stepping = false
	l.publish()
}

// startAnswered takes in the answer to a Start.
func (l *loop) startAnswered(s child.Started) {
	l.asked--
	l.Procs.Register(s)
	if s.Tag == workloadTag {
		l.workloadStarted(s)
	} else {
		l.callStarted(s)
	}
	l.reap() // it may have ended before it was known
	l.jobControl()
}

func (l *loop) workloadStarted(s child.Started) {
	if s.Err != nil {
		if !l.tell.stopped() {
			l.tell.err = s.Err
		}
		l.step(phases.Event{Kind: phases.StartFailed, Status: startStatus(s.Err)})
		return
	}
	l.workload, l.started = s.Proc, time.Now()
	l.Ready()
	if !l.early() {
		l.logPlan()
	}
	l.Log.Info("workload started", slog.Int("pid", l.workload.PID))
	for _, sig := range l.kept {
		l.send(sig)
	}
	l.kept = nil
	l.step(phases.Event{Kind: phases.Started})
}

// signal takes in one signal.
func (l *loop) signal(sig syscall.Signal) {
	l.tell.signals[sig]++
	if l.cfg.DrainOn.Has(sig) {
		l.stop(sig)
		return
	}
	if sig == syscall.SIGCONT {
		l.resume()
	}
	if sig = l.cfg.Rewrites.Forward(sig); sig != 0 {
		l.forward(sig)
	}
	l.publish()
}

// stop takes in a signal that starts the drain. Later ones the machine has
// logged, once each.
func (l *loop) stop(sig syscall.Signal) {
	if !l.tell.stopped() {
		l.Log.Info("signal received", signalAttr(sig))
		l.tell.stop(time.Now())
	}
	l.reap() // what has ended by now has ended by itself
	if l.reason == "" || l.reason == reasonDrain {
		l.reason = signals.Name(sig)
	}
	l.step(phases.Event{Kind: phases.Stop, Signal: int(sig), Interrupt: sig == syscall.SIGINT})
}

// forward passes a signal on, or keeps it until the workload exists.
func (l *loop) forward(sig syscall.Signal) {
	switch {
	case l.workload == nil && slices.Contains(l.kept, sig): // the kernel keeps one of a kind, too
	case l.workload == nil:
		l.kept = append(l.kept, sig)
	case l.exit == nil:
		l.send(sig)
	}
}

// send signals the workload. That it may not be signalled, since it has changed
// its user, ends nothing.
func (l *loop) send(sig syscall.Signal) {
	err := l.Procs.Signal(l.workload, sig, l.cfg.SignalGroup)
	if l.Log.Enabled(context.Background(), slog.LevelDebug) {
		l.Log.Debug("signal sent", signalAttr(sig))
	}
	switch {
	case err == nil || err == syscall.ESRCH: // it has just ended
	case !l.tell.refused[sig]:
		l.tell.refused[sig] = true
		l.Log.Warn("signal not sent", signalAttr(sig), errAttr(err))
	}
}
