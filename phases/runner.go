package phases

import "time"

// runner is the sequence of the phases: at most one runs, each once.
type runner struct {
	current int // the one that runs, while one does
	next    int // the first that was neither started nor skipped
	state   runState
	since   time.Time
	end     time.Time // when the running one is told, or killed; zero: nothing runs
	verdict Result    // what its end is called once it was told
	bad     bool      // one did not come to a good end
}

type runState int

const (
	idle runState = iota
	busy          // within its time
	told          // TERM was sent
)

func (r *runner) running() bool { return r.state != idle }

// phasesDone tells that no phase runs and none will.
func (m *Machine) phasesDone() bool {
	return !m.phase.running() && m.phase.next == len(m.cfg.Phases)
}

// nextPhase starts the next phase that has enough time left, skips the ones
// that have not, and ends the drain after the last.
func (m *Machine) nextPhase(now time.Time) []Effect {
	var out []Effect
	r := &m.phase
	for r.next < len(m.cfg.Phases) {
		i := r.next
		r.next++
		left := m.budgetLeft(now)
		if left < minSlice {
			out = append(out, m.skip(i))
			continue
		}
		allowed := left
		if own := m.cfg.Phases[i].Max; own > 0 {
			allowed = min(left, own)
		}
		r.current, r.state, r.since, r.end = i, busy, now, now.Add(allowed)
		return append(out, Effect{Kind: StartPhase, Hook: i, Window: allowed})
	}
	return append(out, m.phasesOver(now)...)
}

// skip passes over a phase.
func (m *Machine) skip(i int) Effect {
	m.phase.bad = true
	return Effect{Kind: PhaseDone, Hook: i, Result: Skipped}
}

// budgetLeft is what is left of the shared budget; 0 once it has ended.
func (m *Machine) budgetLeft(now time.Time) time.Duration {
	if m.end.IsZero() {
		return 0
	}
	return m.end.Sub(now)
}

// phaseDue: the running phase has used up its time, or the second after it.
func (m *Machine) phaseDue(now time.Time) []Effect {
	r := &m.phase
	if r.state == busy {
		return m.tellPhase(now, Overran)
	}
	// It is never waited for longer: a process that KILL does not end at once
	// is abandoned.
	kill := Effect{Kind: KillPhase, Hook: r.current}
	return append([]Effect{kill}, m.endPhase(now, Killed)...)
}

// tellPhase sends TERM and gives it a second.
func (m *Machine) tellPhase(now time.Time, why Result) []Effect {
	r := &m.phase
	r.state, r.verdict = told, why
	r.end = now.Add(m.plan().UnwindWindow(m.left(now)))
	return []Effect{{Kind: TermPhase, Hook: r.current}}
}

// phaseOver: the running phase has ended by itself or could not be started.
func (m *Machine) phaseOver(now time.Time, ev Event) []Effect {
	r := &m.phase
	if !r.running() || ev.Hook != r.current {
		return nil // a late word of one that was abandoned
	}
	result := Succeeded
	switch {
	case r.state == told:
		result = r.verdict
	case ev.Kind == PhaseRefused || !ev.OK:
		result = Failed
	}
	return m.endPhase(now, result)
}

// endPhase records the result and goes on.
func (m *Machine) endPhase(now time.Time, result Result) []Effect {
	r := &m.phase
	out := []Effect{{Kind: PhaseDone, Hook: r.current, Result: result, Took: now.Sub(r.since)}}
	r.state, r.end = idle, time.Time{}
	r.bad = r.bad || result != Succeeded
	return append(out, m.nextPhase(now)...)
}

// interruptPhases tells the running phase to stop and starts no further one.
func (m *Machine) interruptPhases(now time.Time) []Effect {
	r := &m.phase
	var out []Effect
	if r.state == busy {
		out = m.tellPhase(now, Interrupted)
	}
	for ; r.next < len(m.cfg.Phases); r.next++ {
		out = append(out, m.skip(r.next))
	}
	return out
}
