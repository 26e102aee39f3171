package supervise

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"drainit/child"
	"drainit/hooks"
	"drainit/phases"
)

// call is a hook while it runs: a phase, a step's start or stop, a companion.
type call struct {
	hook     hooks.Hook
	index    int // among its kind
	stop     bool
	proc     *child.Proc // nil: its start has not been answered, or it has ended
	answered bool
	asked    time.Time
	signal   syscall.Signal // sent, or to be sent once the process is known
	allowed  time.Duration  // below 0: as long as it takes
	status   *int           // nil: it has not ended by itself
	kept     *child.Proc    // a step's start that has ended well: what it left is the step's
}

// workloadTag and those of tag tell the answers of Start apart.
const workloadTag = 0

// tag is of a hook's call. No two calls of one tag run at once.
func tag(k hooks.Kind, i int, stop bool) int {
	t := int(k)<<24 + i + 1
	if stop {
		t += 1 << 23
	}
	return t
}

// call begins one.
func (l *loop) call(h hooks.Hook, i int, stop bool, allowed time.Duration) {
	t := tag(h.Kind, i, stop)
	l.calls[t] = &call{hook: h, index: i, stop: stop, allowed: allowed, asked: time.Now()}
	argv := []string{h.Path}
	if h.Kind == hooks.Step {
		argv = append(argv, verb(stop))
	}
	attrs := []slog.Attr{slog.String("service", l.cfg.Service), hookAttr(h)}
	l.start(child.Spec{
		Argv: argv, Env: hooks.Environment(l.Env, twins(), l.brief(h, allowed)),
		Dir: l.Dir, Name: h.Name, Kind: h.Kind.String(), Session: true,
		Keep: h.Kind == hooks.Step && !stop, Supervises: h.Kind == hooks.Companion,
		Check:  func() error { return l.Recheck(h) },
		Output: func(line string) { l.HookLine(attrs, line) },
	}, t)
}

// verb is what a step is called with.
func verb(stop bool) string {
	if stop {
		return "stop"
	}
	return "start"
}

// brief is what a hook is told.
func (l *loop) brief(h hooks.Hook, allowed time.Duration) hooks.Call {
	c := hooks.Call{
		Kind: h.Kind, Hook: h.Name, Allowed: allowed, Unbounded: allowed < 0, Workload: "running",
		Reason: l.reason, Service: l.cfg.Service, Socket: l.socket(),
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

// socket is where the init can be reached; "" where it can't.
func (l *loop) socket() string {
	if l.Control == nil {
		return ""
	}
	return l.Control.Addr()
}

// socketVariable tells the control address to all that the init starts.
const socketVariable = "DRAINIT_SOCKET="

// workloadEnv is the init's own environment, with its control address in the
// place of one of an init above.
func (l *loop) workloadEnv() []string {
	s := l.socket()
	if s == "" {
		return l.Env
	}
	env := make([]string, 0, len(l.Env)+1)
	for _, e := range l.Env {
		if !strings.HasPrefix(e, socketVariable) {
			env = append(env, e)
		}
	}
	return append(env, socketVariable+s)
}

// callStarted: a signal that came due while execve(2) was under way is sent now,
// which is also the end of a call that had been given up by then.
func (l *loop) callStarted(s child.Started) {
	c := l.calls[s.Tag]
	c.answered = true
	if s.Err != nil {
		l.Log.Warn("hook not started", hookAttr(c.hook), errAttr(s.Err))
		l.step(c.event(true, l.last(c)))
		return
	}
	c.proc = s.Proc
	if c.signal != 0 {
		l.Procs.SignalHooks([]*child.Proc{c.proc}, c.signal)
	}
}

// callOf returns the call that p runs; nil: none does.
func (l *loop) callOf(p *child.Proc) *call {
	for _, c := range l.calls {
		if c.proc == p {
			return c
		}
	}
	return nil
}

// callEnded takes in the end of a hook's process.
func (l *loop) callEnded(c *call, e child.Exit) phases.Event {
	c.proc, c.status = nil, &e.Status
	if e.Kept {
		c.kept = e.Proc
	}
	if c.hook.Kind == hooks.Companion {
		l.companionOver(c.index)
	}
	return c.event(false, l.last(c))
}

// event is what the machine is told of a call's end, or of its refusal.
func (c *call) event(refused, last bool) phases.Event {
	ev := phases.Event{Hook: c.index, OK: c.status != nil && *c.status == 0, Last: last}
	switch c.hook.Kind {
	case hooks.Phase:
		ev.Kind = phases.PhaseEnded
	case hooks.Step:
		ev.Kind = phases.StepEnded
	case hooks.Companion:
		ev.Kind = phases.CompanionEnded
	}
	if refused {
		ev.Kind++ // the refusals stand behind the ends
	}
	return ev
}

// signalCall signals what belongs to a hook's call, as soon as it exists.
func (l *loop) signalCall(k hooks.Kind, i int, stop bool, sig syscall.Signal) {
	c := l.calls[tag(k, i, stop)]
	if c == nil {
		return
	}
	l.signalCalls([]*call{c}, sig)
}

// signalCalls does so for several at once, which costs no more than for one.
func (l *loop) signalCalls(all []*call, sig syscall.Signal) {
	var procs []*child.Proc
	for _, c := range all {
		c.signal = sig
		switch {
		case c.proc != nil:
			procs = append(procs, c.proc)
		case !c.answered && sig == syscall.SIGKILL && time.Since(c.asked) >= hangs:
			l.giveUp()
		}
	}
	if procs != nil {
		l.Procs.SignalHooks(procs, sig)
	}
}

// hangs is how long a start may take before it is said to.
const hangs = 500 * time.Millisecond

// giveUp has what waits behind a start that hangs, in execve(2) or before it,
// served by another thread. The late answer comes when it comes.
func (l *loop) giveUp() {
	if !l.Procs.GiveUp() {
		l.Log.Warn("a start hangs, and what waits behind it waits on")
	}
}

// stepCall is the call of a step that runs.
func (l *loop) stepCall(i int) *call {
	if c := l.calls[tag(hooks.Step, i, true)]; c != nil {
		return c
	}
	return l.startOf(i)
}

// startOf is the call with which a step was started.
func (l *loop) startOf(i int) *call { return l.calls[tag(hooks.Step, i, false)] }

// last tells whether nothing is left of what a step's start left behind. Where
// that can't be told, what there was is believed to be there.
func (l *loop) last(c *call) bool {
	if c.hook.Kind != hooks.Step || !c.stop {
		return true
	}
	kept := l.startOf(c.index).kept
	if kept == nil {
		return true
	}
	n, _ := l.Procs.Left([]*child.Proc{kept})
	return n[0] == 0
}

// signalLeft signals what steps left behind.
func (l *loop) signalLeft(steps []int, sig syscall.Signal) {
	var all []*child.Proc
	for _, i := range steps {
		if kept := l.startOf(i).kept; kept != nil {
			all = append(all, kept)
		}
	}
	if all == nil {
		return
	}
	n := l.Procs.SignalLeft(all, sig)
	l.Log.Debug("steps' processes told to stop", signalAttr(sig), slog.Int("count", n))
}

// clearing tells whether a step's leftovers are being waited for.
func (l *loop) clearing() bool { return l.tell.clearing > 0 }

// cleared finds out which of those are gone.
func (l *loop) cleared() []phases.Event {
	if !l.clearing() || time.Now().Before(l.rescan) {
		return nil
	}
	l.looked()
	var all []*child.Proc
	var steps []int
	var events []phases.Event
	for i := range l.tell.steps {
		switch {
		case !l.tell.steps[i].clearing:
		case l.startOf(i).kept != nil:
			all, steps = append(all, l.startOf(i).kept), append(steps, i)
		default:
			events = append(events, phases.Event{Kind: phases.StepGone, Hook: i})
		}
	}
	left, _ := l.Procs.Left(all)
	for k, i := range steps {
		if left[k] == 0 {
			events = append(events, phases.Event{Kind: phases.StepGone, Hook: i})
		}
	}
	return events
}

// StepError is a lifecycle step whose start failed, which ended the run.
type StepError struct {
	Step   string
	Reason string
}

func (e *StepError) Error() string { return fmt.Sprintf("start step %q: %s", e.Step, e.Reason) }
