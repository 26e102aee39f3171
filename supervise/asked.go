package supervise

import (
	"log/slog"
	"slices"
	"time"

	"drainit/budget"
	"drainit/control"
	"drainit/hooks"
	"drainit/phases"
	"drainit/probe"
)

// callsAtOnce bounds how many calls of clients are taken in before the loop looks
// at signals and processes again.
const callsAtOnce = 16

// takeCalls takes in what clients want; true: there may be more.
func (l *loop) takeCalls() bool {
	if l.Control == nil {
		return false
	}
	for range callsAtOnce {
		select {
		case c := <-l.Control.Calls():
			if l.over {
				return false
			}
			l.take(c)
		default:
			return false
		}
	}
	return true
}

// take takes in one call.
func (l *loop) take(c control.Call) {
	if c.Left {
		if i := slices.Index(l.clients, c.ID); i >= 0 {
			l.clients = slices.Delete(l.clients, i, i+1)
			l.step(phases.Event{Kind: phases.ClientLeft, Client: c.ID})
		}
		return
	}
	ev := phases.Event{Client: c.ID}
	switch c.Request.Verb {
	case control.Announce:
		ev.Kind = phases.AskAnnounce
	case control.Undrain:
		ev.Kind = phases.AskUndrain
	case control.Drain:
		ev.Kind = phases.AskDrain
		ev.Budget, ev.Delay = value(c.Request.Budget), value(c.Request.AnnounceDelay)
		l.clients = append(l.clients, c.ID)
	default:
		l.Control.Answer(c.ID, control.Answer{Status: l.state(time.Now())})
		return
	}
	l.Log.Info("asked by a client", slog.String("verb", c.Request.Verb), stageAttr(l.machine.Stage()))
	if l.reason == "" && ev.Kind == phases.AskDrain {
		l.reason = reasonDrain
	}
	l.step(ev)
}

func value(d *time.Duration) budget.Value {
	if d == nil {
		return budget.Value{}
	}
	return budget.Value{D: *d, Set: true}
}

// answers are what a client is told of an outcome, and its exit status.
var answers = [...]control.Answer{
	phases.Done:       {Code: 0, Text: "done"},
	phases.Incomplete: {Code: 1, Text: "drained, but not every phase has run to a good end"},
	phases.Cancelled:  {Code: 2, Text: "the drain was called off"},
	phases.Refused:    {Code: 1, Text: "refused: a phase has begun, or the shutdown has"},
}

// reply tells clients.
func (l *loop) reply(e phases.Effect) {
	switch e.Kind {
	case phases.Share:
		l.Control.Say(e.Client, "a drain is under way; waiting for its end")
	case phases.Reply:
		l.drop(e.Client)
		l.Control.Answer(e.Client, answers[e.Outcome])
	case phases.Answer:
		l.answer(e.Outcome)
	}
}

// answer ends the wait of everybody who waits for the drain.
func (l *loop) answer(o phases.Outcome) {
	for _, id := range l.clients {
		l.Control.Answer(id, answers[o])
	}
	l.clients = nil
}

func (l *loop) drop(id uint64) {
	l.clients = slices.DeleteFunc(l.clients, func(c uint64) bool { return c == id })
}

// drainCancelled: the drain that was asked for will not be.
func (l *loop) drainCancelled() {
	l.Log.Info("drain cancelled")
	if l.reason == reasonDrain {
		l.reason = ""
	}
	if l.Control != nil {
		l.answer(phases.Cancelled)
	}
}

// state is what status tells.
func (l *loop) state(now time.Time) *control.State {
	s := &control.State{
		State: l.machine.Stage().String(), Readiness: readinessNames[l.tell.readiness],
		Service: l.cfg.Service, Version: l.Version, Reason: l.reason,
		UptimeSeconds: now.Sub(l.began).Seconds(), StageSeconds: now.Sub(l.machine.Since()).Seconds(),
	}
	left := func(at time.Time, ok bool) *float64 {
		if !ok {
			return nil
		}
		seconds := max(at.Sub(now), 0).Seconds()
		return &seconds
	}
	s.LeftSeconds = left(l.machine.Ends())
	s.DeadlineSeconds = left(l.machine.Hard())
	if l.workload != nil {
		s.WorkloadPID = l.workload.PID
	}
	if l.exit != nil {
		s.WorkloadStatus = &l.exit.Status
	}
	s.Phases, s.Steps = states(l.tell.phases, now), states(l.tell.steps, now)
	for i, c := range l.tell.companions {
		state := control.CompanionState{Name: c.name, State: c.state, Restarts: max(c.starts-1, 0)}
		if call := l.calls[tag(hooks.Companion, i, false)]; call != nil && call.proc != nil {
			state.PID = call.proc.PID
		}
		s.Companions = append(s.Companions, state)
	}
	return s
}

func states(all []hookTold, now time.Time) []control.HookState {
	var list []control.HookState
	for _, h := range all {
		s := control.HookState{Name: h.name, State: h.state, Seconds: h.seconds}
		if !h.since.IsZero() {
			s.Seconds = now.Sub(h.since).Seconds()
		}
		list = append(list, s)
	}
	return list
}

var readinessNames = [...]string{
	probe.Unavailable: "unavailable", probe.Ready: "ready", probe.Draining: "draining",
}
