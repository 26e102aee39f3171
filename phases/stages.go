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
// that is under way: the workload's own end, a step that failed, a drain that was
// asked for.
func (m *Machine) firstStop(now time.Time, ev Event) []Effect {
	m.stopped, m.signal = true, ev.Signal
	m.setDeadlines(now)
	switch m.stage {
	case Starting:
		return m.stopStarting(now, ev)
	case Running:
		return m.enterAnnounce(now)
	case Drained: // announced, and all phases have run
		return m.enterGate(now)
	}
	m.cutToDeadline(now)
	return m.say(SayJoined, ev.Signal)
}

// setDeadlines: a drain that is under way, or has just ended, was a preStop
// hook's, and the orchestrator counts from its start.
func (m *Machine) setDeadlines(now time.Time) {
	p := m.cfg.Plan
	if at, ok := p.Deadline(now); ok {
		m.hard = at
	}
	if at, ok := p.Assumed(now); ok {
		m.assumed, m.assuming = at, true
		// Nothing cuts what a client has asked for: from now on it is the plan's.
		m.drain.budget.D = min(m.drain.budget.D, p.Phases)
	}
	if !m.drain.recent(now, p.Grace) {
		return
	}
	at, set := p.PrestopDeadline(m.drain.began, now)
	if set {
		m.hard = at
	} else if m.assuming {
		m.assumed = at
	}
}

// stopStarting: the start is under way; it may hang, for all we know. INT does
// not wait for the starts of steps.
func (m *Machine) stopStarting(now time.Time, ev Event) []Effect {
	out := m.withdraw(now)
	switch {
	case m.work == asked:
		m.begin(Starting, now, m.cfg.Plan.StartWindow(m.left(now)))
		return out
	case m.failed:
		out = m.say(SayJoined, ev.Signal)
	default:
		m.status = 128 + m.signal // launch and waveOver look at stopped
	}
	m.boundStarts(now)
	if ev.Interrupt {
		out = append(out, m.interruptStarts(now)...)
	}
	return out
}

// cutToDeadline shortens what was begun without a deadline to what the one
// that has just been set leaves.
func (m *Machine) cutToDeadline(now time.Time) {
	sooner := func(t *time.Time, window time.Duration) {
		if end := now.Add(window); !t.IsZero() && end.Before(*t) {
			*t = end
		}
	}
	p, left := m.plan(), m.left(now)
	switch m.stage {
	case Starting:
		m.boundStarts(now)
	case Announce:
		sooner(&m.end, p.AnnounceWindow(left))
	case Phases:
		sooner(&m.end, p.PhasesWindow(left))
		if m.phase.state == busy {
			sooner(&m.phase.end, p.PhasesWindow(left))
		} else {
			sooner(&m.phase.end, p.UnwindWindow(left))
		}
		sooner(&m.toldEnd, p.LeftoverWindow(left))
	case Gate:
		sooner(&m.end, p.LeftoverWindow(left))
	case Cancel:
		sooner(&m.end, p.CancelWindow(left))
	case Companions:
		sooner(&m.end, p.CompanionsWindow(left))
	case Lifecycle:
		sooner(&m.end, p.WaveWindow(left, m.wavesLeft()))
		m.boundStops(now)
	case Linger:
		sooner(&m.end, p.LingerWindow(left))
	}
}

// hurry: INT during the shutdown ends the stage that is running.
func (m *Machine) hurry(now time.Time, sig int) []Effect {
	out := []Effect{{Kind: SayHurried, Signal: sig, Stage: m.stage}}
	soon := now.Add(budget.Unwind)
	switch m.stage {
	case Starting: // a start that is all but done is still told to stop
		if m.work == asked && soon.Before(m.end) {
			m.end = soon
		}
		out = append(out, m.interruptStarts(now)...)
		return append(out, m.interruptPhases(now)...)
	case Announce, Phases:
		out = append(out, m.interruptPhases(now)...)
		if !m.phase.running() {
			out = append(out, m.phasesOver(now)...)
		}
		return out
	case Gate:
		return append(out, m.enterCancel(now)...)
	case Companions:
		if soon.Before(m.end) {
			m.end = soon
		}
		return out
	case Lifecycle:
		if soon.Before(m.end) {
			m.end = soon
		}
		return append(out, m.interruptStops(now)...)
	case Linger:
		return append(out, m.exit()...)
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
	return m.say(SayIgnored, sig)
}

// say is an effect that only tells of a signal.
func (m *Machine) say(kind EffectKind, sig int) []Effect {
	return []Effect{{Kind: kind, Signal: sig, Stage: m.stage}}
}

// run is the workload's life: ready, unless somebody has announced otherwise.
func (m *Machine) run(now time.Time) []Effect {
	m.stage, m.since, m.end = Running, now, time.Time{}
	enter := Effect{Kind: Enter, Stage: Running, NoEnd: true}
	switch {
	case m.drain.clients > 0: // asked for during the start
		return append([]Effect{enter}, m.beginDrain(now)...)
	case m.drain.announced:
		return append([]Effect{enter}, m.withdraw(now)...)
	}
	m.withdrawn = time.Time{}
	return []Effect{{Kind: BeReady}, enter}
}

// enterAnnounce withdraws readiness; the workload serves on. The window counts
// from when readiness was first withdrawn.
func (m *Machine) enterAnnounce(now time.Time) []Effect {
	out := m.withdraw(now)
	p := m.plan()
	window := min(p.AnnounceWindow(m.left(now)), max(p.Announce-now.Sub(m.withdrawn), 0))
	m.begin(Announce, now, window)
	return append(out, Effect{Kind: Enter, Stage: Announce, Window: window})
}

// enterPhases starts the first phase. The stage is passed over when there is
// none.
func (m *Machine) enterPhases(now time.Time) []Effect {
	if m.phasesDone() {
		return m.phasesOver(now)
	}
	window := m.plan().PhasesWindow(m.left(now))
	m.begin(Phases, now, window)
	out := []Effect{{Kind: Enter, Stage: Phases, Window: window}}
	return append(out, m.nextPhase(now)...)
}

// phasesOver: whoever waited for the drain has its end; a drain that was asked
// for ends here, and the shutdown goes on.
func (m *Machine) phasesOver(now time.Time) []Effect {
	out := m.answer(m.outcome())
	m.drain.ended = now
	if m.stopped || m.work != alive {
		return append(out, m.enterGate(now)...)
	}
	m.stage, m.since, m.end = Drained, now, time.Time{}
	return append(out, Effect{Kind: Enter, Stage: Drained, NoEnd: true})
}

// enterGate tells the workload to stop. Where it has ended, what it left has
// been told then, and keeps the time that it was given.
func (m *Machine) enterGate(now time.Time) []Effect {
	switch {
	case m.work == absent || m.work == gone:
		return m.tearDown(now)
	case m.work == ended && m.toldEnd.IsZero(): // its time is over: KILL was sent
		return m.enterCancel(now)
	case m.work == ended:
		window := max(m.toldEnd.Sub(now), 0)
		m.begin(Gate, now, window)
		return []Effect{{Kind: Enter, Stage: Gate, Window: window}}
	}
	p := m.cfg.Plan
	enter := Effect{Kind: Enter, Stage: Gate, Window: p.GateWindow(m.left(now))}
	switch {
	case p.GateEndless():
		enter.Window, enter.NoEnd = 0, true
	case !p.GraceSet && !p.GateSet:
		enter.Window = p.AssumedGateWindow(m.assumed.Sub(now))
	}
	m.begin(Gate, now, enter.Window)
	if enter.NoEnd {
		m.end = time.Time{}
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

// tearDown stops what has been started beside the workload, which is over or
// never was.
func (m *Machine) tearDown(now time.Time) []Effect {
	out := append(m.withdraw(now), m.answer(m.outcome())...)
	return append(out, m.enterCompanions(now)...)
}

// enterLinger keeps the listener for one last scrape of the final figures.
func (m *Machine) enterLinger(now time.Time) []Effect {
	window := m.cfg.Plan.LingerWindow(m.left(now))
	final := Effect{Kind: Final, Status: m.status, Own: m.own}
	if window == 0 {
		out := m.exit()
		return []Effect{out[0], final, out[1]}
	}
	m.begin(Linger, now, window)
	return []Effect{{Kind: Enter, Stage: Linger, Window: window}, final}
}

// scraped: somebody has read them.
func (m *Machine) scraped() []Effect {
	if m.stage != Linger {
		return nil
	}
	return m.exit()
}

// exit ends the machine.
func (m *Machine) exit() []Effect {
	m.stage = End
	return []Effect{{Kind: Enter, Stage: End}, {Kind: Exit, Status: m.status, Own: m.own}}
}

// begin makes s the running stage.
func (m *Machine) begin(s Stage, now time.Time, window time.Duration) {
	m.stage, m.since, m.end = s, now, now.Add(window)
}
