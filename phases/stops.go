package phases

import (
	"time"

	"drainit/budget"
)

// enterLifecycle stops the steps that have started, in reverse wave order.
func (m *Machine) enterLifecycle(now time.Time) []Effect {
	m.end = time.Time{}
	n := m.wavesLeft()
	if n == 0 {
		return m.enterLinger(now)
	}
	m.begin(Lifecycle, now, 0)
	first := m.cfg.Plan.WaveWindow(m.left(now), n)
	return append([]Effect{{Kind: Enter, Stage: Lifecycle, Window: first * time.Duration(n)}}, m.stopWave(now)...)
}

// stopWave calls the steps of the last wave that stands with stop, together.
func (m *Machine) stopWave(now time.Time) []Effect {
	var out []Effect
	window := m.cfg.Plan.WaveWindow(m.left(now), m.wavesLeft())
	wave, found := 0, false
	for i := len(m.steps) - 1; i >= 0; i-- {
		if m.steps[i].state != standing || found && m.cfg.Steps[i].Wave != wave {
			continue
		}
		wave, found = m.cfg.Steps[i].Wave, true
		out = append([]Effect{m.stopStep(now, i, window)}, out...)
	}
	if !found {
		return m.enterLinger(now)
	}
	m.end = now.Add(window)
	return out
}

// stopStep calls one with stop. TERM comes a second before the wave's end, and
// KILL at its end, so that a wave takes no longer than its figure.
func (m *Machine) stopStep(now time.Time, i int, window time.Duration) Effect {
	allowed := window - min(budget.Unwind, window/2)
	m.steps[i] = step{state: stopping, since: now, end: now.Add(allowed)}
	return Effect{Kind: StopStep, Hook: i, Window: allowed}
}

// boundStops: the wave's end has come nearer.
func (m *Machine) boundStops(now time.Time) {
	left := max(m.end.Sub(now), 0)
	at := now.Add(left - min(budget.Unwind, left/2))
	for i := range m.steps {
		if s := &m.steps[i]; s.state == stopping && at.Before(s.end) {
			s.end = at
		}
	}
}

// press sends TERM to a stop that takes too long. What its start left behind is
// told halfway to the wave's end, should the stop not have ended by then: it would
// have nothing but KILL.
func (m *Machine) press(now time.Time, i int, why Result) Effect {
	s := &m.steps[i]
	s.state, s.verdict, s.end = pressed, why, now.Add(max(m.end.Sub(now), 0)/2)
	return Effect{Kind: TermStep, Hook: i}
}

// interruptStops tells the running stops to hurry.
func (m *Machine) interruptStops(now time.Time) []Effect {
	var out []Effect
	for i := range m.steps {
		if m.steps[i].state == stopping {
			out = append(out, m.press(now, i, Interrupted))
		}
	}
	return out
}

// stopOver: the stop of a step has ended. What its start left behind is told to
// stop now, unless the stop has seen to it.
func (m *Machine) stopOver(now time.Time, ev Event) []Effect {
	s := &m.steps[ev.Hook]
	switch {
	case s.state == pressed:
	case ev.Kind == StepRefused || !ev.OK:
		s.verdict = Failed
	default:
		s.verdict = Succeeded
	}
	s.state, s.end = clearing, time.Time{}
	if ev.Last {
		return m.stepStopped(now, ev.Hook)
	}
	if s.told {
		return nil
	}
	return []Effect{{Kind: TermLeft, Hook: ev.Hook}}
}

// stepStopped: nothing is left of a step.
func (m *Machine) stepStopped(now time.Time, i int) []Effect {
	s := &m.steps[i]
	s.state = stopped
	out := []Effect{{Kind: StepStopped, Hook: i, Result: s.verdict, Took: now.Sub(s.since)}}
	return append(out, m.stopsOver(now)...)
}

// stopsOver goes on to the next wave when no step of this one is left.
func (m *Machine) stopsOver(now time.Time) []Effect {
	for i := range m.steps {
		switch m.steps[i].state {
		case stopping, pressed, clearing:
			return nil
		}
	}
	return m.stopWave(now)
}

// killWave: the wave's time is over. KILL is not waited for.
func (m *Machine) killWave(now time.Time) []Effect {
	var kill, left, done []Effect // each kind together, so that it is performed at once
	for i := range m.steps {
		s := &m.steps[i]
		switch s.state {
		case stopping, pressed:
			kill = append(kill, Effect{Kind: KillStep, Hook: i})
		case clearing:
		default:
			continue
		}
		s.state, s.verdict, s.end = stopped, Killed, time.Time{}
		left = append(left, Effect{Kind: KillLeft, Hook: i})
		done = append(done, Effect{Kind: StepStopped, Hook: i, Result: Killed, Took: now.Sub(s.since)})
	}
	out := append(append(kill, left...), done...)
	return append(out, m.stopWave(now)...)
}
