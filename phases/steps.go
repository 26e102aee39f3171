package phases

import (
	"time"

	"drainit/budget"
)

// step is a lifecycle step as it stands.
type step struct {
	state   stepState
	since   time.Time // when the running call began
	end     time.Time // when that is told, or killed; zero: it has no end of its own
	verdict Result    // what its end is called once it was told
	told    bool      // what its start left behind was, while its stop runs
}

type stepState int

const (
	waiting   stepState = iota
	launching           // its start runs
	recalled            // and was told to stop
	standing            // it has started
	broken              // its start failed, or it will not be called any more
	stopping            // its stop runs
	pressed             // and was told to stop
	clearing            // its stop has ended; what its start left behind was told
	stopped
)

// launch begins the start, once, unless a stop signal has come before.
func (m *Machine) launch(now time.Time) []Effect {
	if m.stage != Starting || !m.since.IsZero() {
		return nil
	}
	m.since = now
	if m.stopped {
		m.status = 128 + m.signal
		return m.tearDown(now)
	}
	return m.startWave(now)
}

// startWave starts the first wave that waits; behind the last, the companions and
// the workload.
func (m *Machine) startWave(now time.Time) []Effect {
	var out []Effect
	wave, found := 0, false
	for i, s := range m.cfg.Steps {
		if m.steps[i].state != waiting || found && s.Wave != wave {
			continue
		}
		wave, found = s.Wave, true
		out = append(out, m.startStep(now, i))
	}
	if found {
		return out
	}
	for i := range m.companions {
		out = append(out, m.startCompanion(now, i)...)
	}
	m.work = asked
	return append(out, Effect{Kind: StartWorkload})
}

// startStep calls one with start.
func (m *Machine) startStep(now time.Time, i int) Effect {
	window := m.cfg.StartTimeout
	if own := m.cfg.Steps[i].Max; own > 0 && (window == 0 || own < window) {
		window = own
	}
	m.steps[i] = step{state: launching, since: now}
	if window > 0 {
		m.steps[i].end = now.Add(window)
	}
	return Effect{Kind: StartStep, Hook: i, Window: window, NoEnd: window == 0}
}

// stepOver: a step's call has ended, or could not be started; or nothing is left
// of it.
func (m *Machine) stepOver(now time.Time, ev Event) []Effect {
	s := &m.steps[ev.Hook]
	switch s.state {
	case launching, recalled:
		if ev.Kind != StepGone {
			return m.startOver(now, ev)
		}
	case stopping, pressed:
		if ev.Kind != StepGone {
			return m.stopOver(now, ev)
		}
	case clearing:
		if ev.Kind == StepGone || ev.Last {
			return m.stepStopped(now, ev.Hook)
		}
	}
	return nil
}

// startOver: the start of a step has ended. One that was told and did what it had
// to do has started.
func (m *Machine) startOver(now time.Time, ev Event) []Effect {
	s := &m.steps[ev.Hook]
	took, told := now.Sub(s.since), s.state == recalled
	s.end = time.Time{}
	if ev.Kind == StepEnded && ev.OK {
		s.state = standing
		return append([]Effect{{Kind: StepStarted, Hook: ev.Hook, Took: took}}, m.waveOver(now)...)
	}
	result := Failed
	if told {
		result = s.verdict
	}
	return m.startBroken(now, ev.Hook, result, took)
}

// startBroken: a start that fails ends the container, unless that ends anyway.
// What runs beside it may finish, within the time that stopping it would have.
func (m *Machine) startBroken(now time.Time, i int, result Result, took time.Duration) []Effect {
	m.steps[i].state, m.steps[i].end = broken, time.Time{}
	out := []Effect{{Kind: StepFailed, Hook: i, Result: result, Took: took}}
	if !m.stopped && !m.failed {
		m.failed, m.status = true, refused
		out = append(out, m.withdraw(now)...)
		m.cutStarts(now.Add(m.cfg.Plan.Wave))
	}
	return append(out, m.waveOver(now)...)
}

// waveOver goes on when no start runs any more: with the next wave, or back.
func (m *Machine) waveOver(now time.Time) []Effect {
	all := true
	for i := range m.steps {
		switch m.steps[i].state {
		case launching, recalled:
			return nil
		case standing:
		default:
			all = false
		}
	}
	switch {
	case m.failed || m.stopped && !all:
		return m.tearDown(now)
	case m.stopped:
		return m.enterPhases(now)
	}
	return m.startWave(now)
}

// boundStarts: a stop signal has come; the running starts have until the deadline
// less what must come after.
func (m *Machine) boundStarts(now time.Time) {
	left := m.left(now)
	if m.hard.IsZero() && !m.assumed.IsZero() {
		left = max(m.assumed.Sub(now), 0)
	}
	waits := m.waves(func(s stepState) bool { return s == waiting }) > 0
	last := !waits && !m.failed // the phases come next
	m.cutStarts(now.Add(m.cfg.Plan.StepStartWindow(left, m.wavesUp(), last)))
	m.cutRecalled(now)
}

// cutRecalled holds the second of the starts that had been told before there was
// a deadline to what that leaves.
func (m *Machine) cutRecalled(now time.Time) {
	at := now.Add(m.unwind(now))
	for i := range m.steps {
		if s := &m.steps[i]; s.state == recalled && at.Before(s.end) {
			s.end = at
		}
	}
}

// cutStarts ends the running starts at a time, if they have not ended by then.
func (m *Machine) cutStarts(at time.Time) {
	for i := range m.steps {
		if s := &m.steps[i]; s.state == launching && (s.end.IsZero() || at.Before(s.end)) {
			s.end = at
		}
	}
}

// interruptStarts tells the running starts to stop.
func (m *Machine) interruptStarts(now time.Time) []Effect {
	var out []Effect
	for i := range m.steps {
		if m.steps[i].state == launching {
			out = append(out, m.recall(now, i, Interrupted))
		}
	}
	return out
}

// recall sends TERM to a start and gives it a second.
func (m *Machine) recall(now time.Time, i int, why Result) Effect {
	s := &m.steps[i]
	s.state, s.verdict, s.end = recalled, why, now.Add(m.unwind(now))
	return Effect{Kind: TermStep, Hook: i}
}

// unwind is the second behind TERM, as far as the deadline leaves it.
func (m *Machine) unwind(now time.Time) time.Duration {
	return min(budget.Unwind, m.left(now)/2)
}

// stepDue: a step's call has used up its time, or the second after it.
func (m *Machine) stepDue(now time.Time, i int) []Effect {
	s := &m.steps[i]
	switch s.state {
	case launching:
		why := Overran
		if m.stopped || m.failed {
			why = Interrupted
		}
		return []Effect{m.recall(now, i, why)}
	case recalled:
		out := []Effect{{Kind: KillStep, Hook: i}}
		return append(out, m.startBroken(now, i, Killed, now.Sub(s.since))...)
	case stopping:
		return []Effect{m.press(now, i, Overran)}
	}
	s.end, s.told = time.Time{}, true // the wave's end is the next
	return []Effect{{Kind: TermLeft, Hook: i}}
}

// wavesUp counts the waves that would have to be stopped if every start that runs
// came to its end.
func (m *Machine) wavesUp() int {
	return m.waves(func(s stepState) bool { return s == launching || s == recalled || s == standing })
}

// wavesLeft counts those whose stop has not ended.
func (m *Machine) wavesLeft() int {
	return m.waves(func(s stepState) bool { return s == standing || s == stopping || s == pressed || s == clearing })
}

// waves counts the waves that have a step in such a state.
func (m *Machine) waves(in func(stepState) bool) int {
	n, last := 0, -1
	for i, s := range m.cfg.Steps {
		if in(m.steps[i].state) && (n == 0 || s.Wave != last) {
			n, last = n+1, s.Wave
		}
	}
	return n
}
