package phases

import "time"

// companion is one that runs beside the workload.
type companion struct {
	state   companionState
	since   time.Time     // when it was started
	again   time.Time     // when it is started again; zero: it runs, or is over
	backoff time.Duration // the pause after its next end
}

type companionState int

const (
	unstarted companionState = iota
	up
	resting // it has ended, and is started again
	toldOff // TERM was sent
	over
)

// The pause before a companion is started again doubles from the first to the
// longest; a run of the latter's length begins anew.
const (
	firstRest   = time.Second
	longestRest = 30 * time.Second
)

// startCompanion starts one, or starts it again.
func (m *Machine) startCompanion(now time.Time, i int) []Effect {
	c := &m.companions[i]
	c.state, c.since, c.again = up, now, time.Time{}
	return []Effect{{Kind: StartCompanion, Hook: i}}
}

// companionOver: it has ended, or could not be started.
func (m *Machine) companionOver(now time.Time, ev Event) []Effect {
	c := &m.companions[ev.Hook]
	switch c.state {
	case up:
		return m.rest(now, ev.Hook)
	case toldOff:
		c.state = over
		if m.stage == Companions && m.companionsOver() {
			return m.enterLifecycle(now)
		}
	}
	return nil
}

// rest has it started again after a pause.
func (m *Machine) rest(now time.Time, i int) []Effect {
	c := &m.companions[i]
	took := now.Sub(c.since)
	if c.backoff == 0 || took >= longestRest {
		c.backoff = firstRest
	}
	pause := m.jitter(c.backoff)
	c.state, c.again = resting, now.Add(pause)
	c.backoff = min(2*c.backoff, longestRest)
	return []Effect{{Kind: CompanionRests, Hook: i, Took: took, Window: pause}}
}

// jitter makes a pause up to a fifth longer, so that the companions of many
// replicas, which one fault has ended together, do not come back together.
func (m *Machine) jitter(d time.Duration) time.Duration {
	m.rand += 0x9e3779b97f4a7c15 // splitmix64
	z := m.rand
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return d + time.Duration(z%uint64(d/5))
}

// enterCompanions tells all companions to stop, together.
func (m *Machine) enterCompanions(now time.Time) []Effect {
	var out []Effect
	for i := range m.companions {
		c := &m.companions[i]
		c.again = time.Time{}
		if c.state != up {
			c.state = over
			continue
		}
		c.state = toldOff
		out = append(out, Effect{Kind: TermCompanion, Hook: i})
	}
	if out == nil {
		return m.enterLifecycle(now)
	}
	window := m.cfg.Plan.CompanionsWindow(m.left(now))
	m.begin(Companions, now, window)
	return append([]Effect{{Kind: Enter, Stage: Companions, Window: window}}, out...)
}

func (m *Machine) companionsOver() bool {
	for i := range m.companions {
		if m.companions[i].state != over {
			return false
		}
	}
	return true
}

// killCompanions: their time is over. KILL is not waited for.
func (m *Machine) killCompanions(now time.Time) []Effect {
	out := []Effect{m.overran()}
	for i := range m.companions {
		if c := &m.companions[i]; c.state == toldOff {
			c.state = over
			out = append(out, Effect{Kind: KillCompanion, Hook: i})
		}
	}
	return append(out, m.enterLifecycle(now)...)
}
