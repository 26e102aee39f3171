package phases

import "time"

// tick does what the time alone demands. It goes on until nothing is due, so
// that a stage of 0 takes no time.
func (m *Machine) tick(now time.Time) []Effect {
	var out []Effect
	for m.stage != End {
		more := m.due(now)
		if more == nil {
			break
		}
		out = append(out, more...)
	}
	return out
}

// passed tells that a time has come.
func passed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// due returns what the first deadline that has passed demands; nil: none has.
func (m *Machine) due(now time.Time) []Effect {
	switch {
	case passed(m.warning(), now):
		m.assuming = false
		return []Effect{{Kind: SayAssumed}}
	case passed(m.leftover(), now):
		m.toldEnd = time.Time{}
		return m.kill(now)
	case passed(m.sweepAt, now):
		return m.kill(now)
	case passed(m.phase.end, now):
		return m.phaseDue(now)
	}
	for i := range m.steps {
		if passed(m.steps[i].end, now) {
			return m.stepDue(now, i)
		}
	}
	for i := range m.companions {
		if passed(m.companions[i].again, now) {
			return m.startCompanion(now, i)
		}
	}
	if passed(m.end, now) {
		return m.stageOver(now)
	}
	return nil
}

// kill sends KILL to the rest, and again until it is gone.
func (m *Machine) kill(now time.Time) []Effect {
	m.sweepAt = now.Add(sweep)
	m.killing = m.killing || m.work == alive
	return []Effect{{Kind: KillRest}}
}

// stageOver: the running stage has used up its window.
func (m *Machine) stageOver(now time.Time) []Effect {
	switch m.stage {
	case Starting: // execve(2) hangs: nothing can be told, and nothing is waited for
		over := m.overran()
		m.work, m.status = absent, 128+m.signal
		return append([]Effect{over}, m.tearDown(now)...)
	case Announce:
		return m.enterPhases(now)
	case Phases: // what runs has an end of its own; what does not is skipped
		m.end = time.Time{}
		if m.phase.running() {
			return []Effect{}
		}
		return m.phasesOver(now)
	case Gate:
		over := m.overran()
		return append([]Effect{over}, m.enterCancel(now)...)
	case Companions:
		return m.killCompanions(now)
	case Lifecycle:
		return m.killWave(now)
	case Linger: // nobody came to read
		return m.exit()
	}
	// What survives KILL can't be waited for: a process in uninterruptible
	// sleep, or one that may not be signalled. The kernel ends it with PID 1.
	over := m.overran()
	if m.work == alive {
		m.status = 128 + killed
	}
	return append([]Effect{over}, m.tearDown(now)...)
}

// overran says that the running stage has used up what it had in the end: it may
// have been cut, or bounded, after it began.
func (m *Machine) overran() Effect {
	return Effect{Kind: SayOverran, Stage: m.stage, Window: m.end.Sub(m.since)}
}

// killed is SIGKILL: what a workload that is left behind is reported to have
// died of.
const killed = 9
