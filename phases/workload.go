package phases

import "time"

// started: a stop signal that came before goes straight to the phases, since
// nobody has been told that the workload is ready.
func (m *Machine) started(now time.Time) []Effect {
	switch {
	case m.stage > Starting && m.work == absent: // it was given up, and comes too late
		m.work, m.late = alive, true
		return m.kill(now)
	case m.stage > Starting || m.work != asked:
		return nil
	}
	m.work = alive
	if m.stopped {
		return m.enterPhases(now)
	}
	return m.run(now)
}

// startFailed: without a workload nothing is drained. Where a stop signal had
// come, that is what ended the container.
func (m *Machine) startFailed(now time.Time, ev Event) []Effect {
	if m.stage != Starting || m.work != asked {
		return nil
	}
	m.work, m.status = absent, ev.Status
	if m.stopped {
		m.status = 128 + m.signal
	}
	return m.tearDown(now)
}

// exited: the workload's own end, asked for or not.
func (m *Machine) exited(now time.Time, ev Event) []Effect {
	if m.work != alive {
		return nil
	}
	m.work = ended
	if !m.late && m.stage < Linger { // the figures are final then
		m.status, m.own = ev.Status, !m.killing || ev.Status != 128+killed
	}
	out := m.withdraw(now)
	if ev.Last {
		out = append(out, m.vanished(now)...)
	} else {
		out = append(out, m.tellRest(now)...)
	}
	if m.stage == Running || m.stage == Announce || m.stage == Drained {
		out = append(out, m.enterPhases(now)...)
	}
	return out
}

// tellRest passes the stop signal to what the workload left behind. In the
// gate they share the window that is running.
func (m *Machine) tellRest(now time.Time) []Effect {
	until := now.Add(m.cfg.Plan.LeftoverWindow(m.left(now)))
	switch {
	case m.stage >= Cancel: // it has KILL already
		return nil
	case m.stage != Gate:
		m.toldEnd = until
	case m.end.IsZero():
		// An assumed grace period costs the workload nothing; but it has ended,
		// and what it left may not keep the container for ever.
		m.end = until
	}
	return []Effect{{Kind: TellRest, Signal: m.stopSignal()}}
}

// vanished: nothing is left of the workload.
func (m *Machine) vanished(now time.Time) []Effect {
	if m.work != ended {
		return nil
	}
	m.work, m.toldEnd, m.sweepAt = gone, time.Time{}, time.Time{}
	if m.stage == Gate || m.stage == Cancel {
		return m.tearDown(now)
	}
	return nil
}

// leftover is when the time of what an ended workload left is over; in the
// gate that is the stage's own end.
func (m *Machine) leftover() time.Time {
	if m.stage >= Gate || m.work != ended {
		return time.Time{}
	}
	return m.toldEnd
}

// withdraw makes readiness fail, if it does not yet.
func (m *Machine) withdraw(now time.Time) []Effect {
	if !m.withdrawn.IsZero() {
		return nil
	}
	m.withdrawn = now
	return []Effect{{Kind: Withdraw}}
}
