package phases

import (
	"time"

	"drainit/budget"
)

// stop takes in a signal of drain-on.
func (m *Machine) stop(now time.Time, ev Event) []Effect {
	again := ev.Interrupt && !m.interrupt.IsZero() && now.Sub(m.interrupt) < debounce
	if again {
		return nil
	}
	if ev.Interrupt {
		m.interrupt = now
	}
	if !m.stopped {
		return m.firstStop(now, ev)
	}
	if ev.Interrupt {
		return m.hurry(now, ev.Signal)
	}
	return m.ignore(ev.Signal)
}

// firstStop sets the deadline and begins the shutdown, or joins it to the one
// that the workload's own end began.
func (m *Machine) firstStop(now time.Time, ev Event) []Effect {
	m.stopped, m.signal = true, ev.Signal
	if hard, ok := m.cfg.Plan.Deadline(now); ok {
		m.hard = hard
	}
	if at, ok := m.cfg.Plan.Assumed(now); ok {
		m.assumed = at
	}
	switch m.stage {
	case Starting: // the start is under way; it may hang, for all we know
		m.begin(Starting, now, m.cfg.Plan.StartWindow(m.left(now)))
		return m.withdraw()
	case Running:
		return m.enterAnnounce(now)
	}
	m.cutToDeadline(now)
	return []Effect{{Kind: SayJoined, Signal: ev.Signal}}
}

// cutToDeadline shortens what was begun without a deadline to what the one
// that has just been set leaves.
func (m *Machine) cutToDeadline(now time.Time) {
	sooner := func(t *time.Time, window time.Duration) {
		if end := now.Add(window); !t.IsZero() && end.Before(*t) {
			*t = end
		}
	}
	left := m.left(now)
	switch m.stage {
	case Phases:
		sooner(&m.end, m.cfg.Plan.PhasesWindow(left))
		if m.phase.state == busy {
			sooner(&m.phase.end, m.cfg.Plan.PhasesWindow(left))
		} else {
			sooner(&m.phase.end, m.cfg.Plan.UnwindWindow(left))
		}
		sooner(&m.toldEnd, m.cfg.Plan.LeftoverWindow(left))
	case Gate:
		sooner(&m.end, m.cfg.Plan.LeftoverWindow(left))
	case Cancel:
		sooner(&m.end, m.cfg.Plan.CancelWindow(left))
	}
}

// hurry: INT during the shutdown ends the stage that is running.
func (m *Machine) hurry(now time.Time, sig int) []Effect {
	out := []Effect{{Kind: SayHurried, Signal: sig, Stage: m.stage}}
	switch m.stage {
	case Starting: // a start that is all but done is still told to stop
		if soon := now.Add(budget.Unwind); soon.Before(m.end) {
			m.end = soon
		}
		return append(out, m.interruptPhases(now)...)
	case Announce, Phases:
		out = append(out, m.interruptPhases(now)...)
		if !m.phase.running() {
			out = append(out, m.enterGate(now)...)
		}
		return out
	case Gate:
		return append(out, m.enterCancel(now)...)
	}
	return m.ignore(sig)
}

// ignore says once for each signal that it does nothing.
func (m *Machine) ignore(sig int) []Effect {
	bit := uint64(1) << ((sig - 1) & 63)
	if m.said&bit != 0 {
		return nil
	}
	m.said |= bit
	return []Effect{{Kind: SayIgnored, Signal: sig}}
}

// enterAnnounce withdraws readiness; the workload serves on.
func (m *Machine) enterAnnounce(now time.Time) []Effect {
	window := m.cfg.Plan.AnnounceWindow(m.left(now))
	m.begin(Announce, now, window)
	return append(m.withdraw(), Effect{Kind: Enter, Stage: Announce, Window: window})
}

// enterPhases starts the first phase. The stage is passed over when there is
// none.
func (m *Machine) enterPhases(now time.Time) []Effect {
	if m.phasesDone() {
		return m.enterGate(now)
	}
	window := m.cfg.Plan.PhasesWindow(m.left(now))
	m.begin(Phases, now, window)
	out := []Effect{{Kind: Enter, Stage: Phases, Window: window}}
	return append(out, m.nextPhase(now)...)
}

// enterGate tells the workload to stop. Where it has ended, what it left has
// been told then, and keeps the time that it was given.
func (m *Machine) enterGate(now time.Time) []Effect {
	switch {
	case m.work == absent || m.work == gone:
		return m.exit()
	case m.work == ended && m.toldEnd.IsZero(): // its time is over: KILL was sent
		return m.enterCancel(now)
	case m.work == ended:
		window := max(m.toldEnd.Sub(now), 0)
		m.begin(Gate, now, window)
		return []Effect{{Kind: Enter, Stage: Gate, Window: window}}
	}
	enter := Effect{Kind: Enter, Stage: Gate, Window: m.cfg.Plan.GateWindow(m.left(now))}
	m.begin(Gate, now, enter.Window)
	if m.cfg.Plan.GateEndless() {
		enter.Window, enter.NoEnd, m.end = 0, true, time.Time{}
	}
	return []Effect{enter, {Kind: Tell, Signal: m.stopSignal()}}
}

// enterCancel kills what is left and waits a bounded time for it.
func (m *Machine) enterCancel(now time.Time) []Effect {
	window := m.cfg.Plan.CancelWindow(m.left(now))
	m.begin(Cancel, now, window)
	m.toldEnd = time.Time{}
	return append([]Effect{{Kind: Enter, Stage: Cancel, Window: window}}, m.kill(now)...)
}

// begin makes s the running stage.
func (m *Machine) begin(s Stage, now time.Time, window time.Duration) {
	m.stage, m.since, m.end = s, now, now.Add(window)
}

// overran says that the running stage has used up what it had in the end: it may
// have been cut, or bounded, after it began.
func (m *Machine) overran() Effect {
	return Effect{Kind: SayOverran, Stage: m.stage, Window: m.end.Sub(m.since)}
}

// stageOver: the running stage has used up its window.
func (m *Machine) stageOver(now time.Time) []Effect {
	switch m.stage {
	case Starting: // execve(2) hangs: nothing can be told, and nothing is waited for
		over := m.overran()
		m.status = 128 + m.signal
		return append([]Effect{over}, m.exit()...)
	case Announce:
		return m.enterPhases(now)
	case Phases: // what runs has an end of its own; what does not is skipped
		m.end = time.Time{}
		if m.phase.running() {
			return []Effect{}
		}
		return m.enterGate(now)
	case Gate:
		over := m.overran()
		return append([]Effect{over}, m.enterCancel(now)...)
	}
	// What survives KILL can't be waited for: a process in uninterruptible
	// sleep, or one that may not be signalled. The kernel ends it with PID 1.
	over := m.overran()
	if m.work == alive {
		m.status = 128 + killed
	}
	return append([]Effect{over}, m.exit()...)
}

// killed is SIGKILL: what a workload that is left behind is reported to have
// died of.
const killed = 9
