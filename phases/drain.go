package phases

import (
	"time"

	"drainit/budget"
)

// request is what clients have asked for: readiness withdrawn, or a drain.
type request struct {
	announced     bool // readiness stays withdrawn whatever becomes of a drain
	clients       int  // that wait for the drain's end
	budget, delay budget.Value
	began, ended  time.Time // of the drain that was asked for; zero: none, not yet
}

// prestopGap is how long after the end of a drain a stop signal still belongs
// to it: a preStop hook that ran the drain, and the orchestrator behind it.
const prestopGap = 5 * time.Second

// recent tells that the drain is under way, or has just ended, and may so be a
// preStop hook's. One that was given more than the whole grace period is
// somebody's who had another time in mind.
func (r *request) recent(now time.Time, grace time.Duration) bool {
	if r.began.IsZero() || r.budget.Set && r.budget.D >= grace {
		return false
	}
	return r.ended.IsZero() || now.Sub(r.ended) <= prestopGap
}

// asked takes in what a client wants.
func (m *Machine) asked(now time.Time, ev Event) []Effect {
	switch ev.Kind {
	case AskAnnounce:
		return m.askAnnounce(now, ev)
	case AskDrain:
		return m.askDrain(now, ev)
	case AskUndrain:
		return m.askUndrain(now, ev)
	}
	return m.clientLeft(now)
}

// askAnnounce withdraws readiness. During the start it is remembered.
func (m *Machine) askAnnounce(now time.Time, ev Event) []Effect {
	m.drain.announced = true
	out := []Effect{{Kind: Reply, Client: ev.Client, Outcome: Done}}
	if m.stage == Starting {
		return out
	}
	return append(m.withdraw(now), out...)
}

// askDrain runs stages 1 and 2. During the start it waits for the workload;
// while they run it shares them; once they are over there is nothing to run.
func (m *Machine) askDrain(now time.Time, ev Event) []Effect {
	if m.stage >= Drained {
		return []Effect{{Kind: Reply, Client: ev.Client, Outcome: m.outcome()}}
	}
	m.drain.clients++
	first := m.drain.clients == 1 && !m.stopped && (m.stage == Starting || m.stage == Running)
	if !first {
		return []Effect{{Kind: Share, Client: ev.Client}}
	}
	m.drain.budget, m.drain.delay = ev.Budget, ev.Delay
	if m.stage == Starting {
		return []Effect{}
	}
	return m.beginDrain(now)
}

// beginDrain is the first stage, on a client's behalf.
func (m *Machine) beginDrain(now time.Time) []Effect {
	m.drain.began = now
	return m.enterAnnounce(now)
}

// askUndrain brings readiness back, as long as no phase has begun and no stop
// signal has come.
func (m *Machine) askUndrain(now time.Time, ev Event) []Effect {
	reply := Effect{Kind: Reply, Client: ev.Client, Outcome: Done}
	begun := m.phase.next > 0 || m.work == ended || m.work == gone
	if m.stopped || m.failed || begun || m.stage >= Gate {
		reply.Outcome = Refused
		return []Effect{reply}
	}
	m.drain.announced = false
	return append(m.cancelDrain(now), reply)
}

// clientLeft: a drain that nobody waits for any more is called off, unless a
// phase has begun or it is part of the shutdown.
func (m *Machine) clientLeft(now time.Time) []Effect {
	if m.drain.clients == 0 {
		return nil
	}
	m.drain.clients--
	if m.drain.clients > 0 || m.stopped || m.work == ended || m.work == gone {
		return nil
	}
	if m.stage != Announce && m.stage != Starting {
		return nil
	}
	return m.cancelDrain(now)
}

// cancelDrain forgets a drain that has not begun its first phase.
func (m *Machine) cancelDrain(now time.Time) []Effect {
	var out []Effect
	if m.stage == Announce || m.drain.clients > 0 {
		out = append(out, Effect{Kind: SayCancelled})
	}
	m.drain = request{announced: m.drain.announced}
	if m.stage == Starting || m.withdrawn.IsZero() {
		return out
	}
	return append(out, m.run(now)...)
}

// outcome is what the drain has come to, once it is over.
func (m *Machine) outcome() Outcome {
	if m.phase.bad || m.phase.next < len(m.cfg.Phases) {
		return Incomplete
	}
	return Done
}

// answer lets go of everybody who waits for the drain.
func (m *Machine) answer(o Outcome) []Effect {
	if m.drain.clients == 0 {
		return nil
	}
	m.drain.clients = 0
	return []Effect{{Kind: Answer, Outcome: o}}
}
