package supervise

import (
	"os"
	"syscall"
	"time"

	"drainit/child"
	"drainit/config"
	"drainit/phases"
	"drainit/signals"
)

// workloadTag and the numbers behind it tell the answers of Start apart: a
// phase has its index + 1.
const workloadTag = 0

// loop is the state of one run.
type loop struct {
	World
	cfg     *config.Config
	job     Job
	machine *phases.Machine

	workload *child.Proc // nil: not started yet
	exit     *child.Exit // how it ended; nil: it has not
	kept     []syscall.Signal
	gone     bool // nothing is left of the workload, and the machine knows
	rescan   time.Time
	killed   bool // KILL was sent to the workload while it lived
	told     bool // the stop signal was

	phase     []phaseState
	suspended bool
	reason    string // what began the shutdown, for hooks

	queue    []phases.Event
	stepping bool

	tell    telling
	started time.Time
	status  int
	over    bool
}

// phaseState is what the loop knows of a phase.
type phaseState struct {
	proc    *child.Proc
	signal  syscall.Signal // sent, or to be sent once the process is known
	allowed time.Duration
}

// Run starts the workload, and returns the init's exit status when it and
// everything that has to follow are over. The error says why the workload
// could not be started, where that is what ended the run.
func Run(job Job, w World) (int, error) {
	l := newLoop(job, w)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	l.begin()
	for !l.over {
		l.arm(timer)
		select {
		case s := <-l.Signals:
			l.signal(s.(syscall.Signal))
		case <-l.Children:
			l.reap()
			l.jobControl()
		case s := <-l.Procs.Started():
			l.startAnswered(s)
		case <-timer.C:
			l.reap() // what has just ended has not overrun
			l.step(phases.Event{Kind: phases.Tick})
		}
	}
	if l.tell.stopped() {
		return l.status, nil
	}
	return l.status, l.tell.startError
}

func newLoop(job Job, w World) *loop {
	c := job.Config
	l := &loop{World: w, cfg: c, job: job, phase: make([]phaseState, len(job.Phases.Hooks))}
	list := make([]phases.Phase, len(job.Phases.Hooks))
	for i, h := range job.Phases.Hooks {
		list[i] = phases.Phase{Name: h.Name, Max: h.MaxDuration}
	}
	l.machine = phases.New(phases.Config{
		Plan: job.Plan, Phases: list, StopSignal: int(c.StopSignal), Term: int(syscall.SIGTERM),
	})
	l.tell = newTelling(job, w.Version)
	return l
}

// begin asks for the workload, unless a stop signal is already there.
func (l *loop) begin() {
	for waiting := true; waiting; {
		select {
		case s := <-l.Signals:
			l.signal(s.(syscall.Signal))
		default:
			waiting = false
		}
	}
	if l.reason != "" {
		l.step(phases.Event{Kind: phases.StartFailed})
		return
	}
	l.Procs.Start(child.Spec{
		Argv: l.cfg.Command, Env: l.Env,
		Foreground:  l.Terminal != nil,
		DieWithInit: os.Getpid() != 1, // as PID 1 its death is everybody's
	}, workloadTag)
}

// arm sets the one timer to the next deadline.
func (l *loop) arm(timer *time.Timer) {
	at, ok := l.machine.Deadline()
	if !l.rescan.IsZero() && (!ok || l.rescan.Before(at)) {
		at, ok = l.rescan, true
	}
	if !ok {
		timer.Stop()
		return
	}
	timer.Reset(time.Until(at))
}

// step asks the machine and does what it says. An event that comes up while
// effects are performed waits until they all are.
func (l *loop) step(ev phases.Event) {
	l.queue = append(l.queue, ev)
	if l.stepping {
		return
	}
	l.stepping = true
	for len(l.queue) > 0 {
		ev, l.queue = l.queue[0], l.queue[1:]
		now := time.Now()
		for _, e := range l.machine.Step(now, ev) {
			l.perform(now, e)
		}
	}
	l.stepping = false
	l.publish()
}

// startAnswered takes in the answer to a Start.
func (l *loop) startAnswered(s child.Started) {
	l.Procs.Register(s)
	if s.Tag == workloadTag {
		l.workloadStarted(s)
	} else {
		l.phaseStarted(s)
	}
	l.reap() // it may have ended before it was known
}

func (l *loop) workloadStarted(s child.Started) {
	if s.Err != nil {
		l.tell.startError = s.Err
		l.step(phases.Event{Kind: phases.StartFailed, Status: startStatus(s.Err)})
		return
	}
	l.workload, l.started = s.Proc, time.Now()
	l.Ready()
	l.logStart()
	for _, sig := range l.kept {
		l.send(sig)
	}
	l.kept = nil
	l.step(phases.Event{Kind: phases.Started})
}

// phaseStarted: a signal that came due while execve(2) was under way is sent
// now, which is also the end of a phase that had been given up by then.
func (l *loop) phaseStarted(s child.Started) {
	i := s.Tag - 1
	if s.Err != nil {
		l.Log.Warn("phase not started", phaseAttr(l.hook(i).Name), errAttr(s.Err))
		l.step(phases.Event{Kind: phases.PhaseRefused, Phase: i})
		return
	}
	p := &l.phase[i]
	p.proc = s.Proc
	if p.signal != 0 {
		l.Procs.SignalHook(p.proc, p.signal)
	}
}

// signal takes in one signal.
func (l *loop) signal(sig syscall.Signal) {
	l.tell.signals[sig]++
	if l.cfg.DrainOn.Has(sig) {
		if l.reason == "" || l.reason == reasonExited {
			l.Log.Info("signal received", signalAttr(sig))
		}
		if l.reason == "" {
			l.reason = signals.Name(sig)
		}
		l.reap() // what has ended by now has ended by itself
		l.tell.stop(time.Now())
		l.step(phases.Event{Kind: phases.Stop, Signal: int(sig), Interrupt: sig == syscall.SIGINT})
		return
	}
	if sig == syscall.SIGCONT {
		l.resume()
	}
	if sig = l.cfg.Rewrites.Forward(sig); sig != 0 {
		l.forward(sig)
	}
}

// forward passes a signal on, or keeps it until the workload exists.
func (l *loop) forward(sig syscall.Signal) {
	switch {
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
	switch {
	case err == nil || err == syscall.ESRCH: // it has just ended
	case !l.tell.refused[sig]:
		l.tell.refused[sig] = true
		l.Log.Warn("signal not sent", signalAttr(sig), errAttr(err))
	}
}

// reap takes in every process that has ended.
func (l *loop) reap() {
	if l.over {
		return
	}
	r := l.Procs.Reap()
	for i := range r.Exits {
		l.ended(r.Exits[i], r.Left)
	}
	l.checkGone(r.Left)
}

// ended takes in one exit.
func (l *loop) ended(e child.Exit, left bool) {
	if e.Proc == l.workload {
		l.exit = &e
		l.gone = !left
		if l.reason == "" {
			l.reason = reasonExited
		}
		l.logExit(e)
		l.step(phases.Event{Kind: phases.Exited, Status: e.Status, Last: l.gone})
		return
	}
	for i := range l.phase {
		if l.phase[i].proc == e.Proc {
			l.phase[i].proc = nil
			l.tell.phaseExit(i, e)
			l.step(phases.Event{Kind: phases.PhaseEnded, Phase: i, OK: e.Status == 0})
			return
		}
	}
}

// reasonExited is DRAINIT_REASON when the workload ended by itself.
const reasonExited = "exited"

// lookAgain is how soon /proc is read again for what an ended workload left,
// while hooks run and the end of a child alone does not tell.
const lookAgain = 100 * time.Millisecond

// checkGone finds out whether anything is left of an ended workload. Without a
// child there is nothing: whatever it started would have become ours. With one
// there is, unless hooks are running, whose processes those may be.
func (l *loop) checkGone(left bool) {
	if l.exit == nil || l.gone || l.over {
		return
	}
	if left {
		now := time.Now()
		if !l.Procs.Hooks() || now.Before(l.rescan) {
			return
		}
		l.rescan = now.Add(lookAgain)
		if n, ok := l.Procs.Remains(); !ok || n > 0 {
			return
		}
	}
	l.vanished()
}

// vanished tells the machine that nothing is left.
func (l *loop) vanished() {
	l.gone, l.rescan = true, time.Time{}
	l.step(phases.Event{Kind: phases.Gone})
}
