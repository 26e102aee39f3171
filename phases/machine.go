package phases

import (
	"time"

	"drainit/budget"
)

// Phase is what the machine knows of a phase hook.
type Phase struct {
	Name string
	Max  time.Duration // 0: bounded by the shared budget alone
}

// Config is fixed for the machine's life.
type Config struct {
	Plan   budget.Plan
	Phases []Phase
	// StopSignal tells the workload to stop; 0: the signal that began the
	// drain, Term where none did.
	StopSignal, Term int
}

// debounce: two INTs within it count as one (a terminal and make both send it).
const debounce = 500 * time.Millisecond

// minSlice is the least that a phase is started with.
const minSlice = 100 * time.Millisecond

// sweep is how often KILL is sent again to what is left: a workload that forks
// faster than its processes are found leaves some over each time.
const sweep = 50 * time.Millisecond

// workload is how far the workload has come.
type workload int

const (
	absent workload = iota // not started yet, or never
	alive
	ended // exited; descendants may be left
	gone  // nothing is left
)

// Machine decides. It is not safe for concurrent use, and never sleeps: the
// caller passes the time.
type Machine struct {
	cfg Config
	state
}

// state is all that changes in a machine. It is comparable: two machines of one
// configuration whose states are equal have the same future.
type state struct {
	stage Stage
	work  workload

	status    int       // what the init exits with
	own       bool      // status is the workload's own end
	killing   bool      // KILL was sent while the workload lived
	withdrawn bool      // readiness is
	stopped   bool      // a stop signal has come
	signal    int       // the first one
	said      uint64    // signals that were logged as ignored
	interrupt time.Time // the latest INT that counted
	hard      time.Time // the hard deadline; zero: none
	assumed   time.Time // when the assumed grace period is over; zero: none, or said

	since   time.Time // when the running stage began
	end     time.Time // of the running stage; zero: none
	toldEnd time.Time // until when what an ended workload left may take; zero: no end
	sweepAt time.Time // when KILL is sent again; zero: it was not sent

	phase runner
}

// New returns the machine of a container whose workload is about to start.
func New(c Config) *Machine { return &Machine{cfg: c} }

// Stage returns the current stage.
func (m *Machine) Stage() Stage { return m.stage }

// Deadline is when Step wants to be called with a Tick at the latest; false
// while only an event can change anything.
func (m *Machine) Deadline() (time.Time, bool) {
	var at time.Time
	for _, t := range [...]time.Time{m.end, m.phase.end, m.leftover(), m.sweepAt, m.assumed} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at, !at.IsZero() && m.stage != End
}

// Step takes in what has happened since the last call, in order, and then what
// the time demands: of two processes that are found to have ended at once,
// neither has overrun because the other was looked at first. now never goes
// back. After its Exit effect Step returns nothing any more.
func (m *Machine) Step(now time.Time, events ...Event) []Effect {
	var out []Effect
	for _, ev := range events {
		if m.stage != End {
			out = append(out, m.take(now, ev)...)
		}
	}
	return append(out, m.tick(now)...)
}

// take takes in one event.
func (m *Machine) take(now time.Time, ev Event) []Effect {
	switch ev.Kind {
	case Started:
		return m.started(now)
	case StartFailed:
		return m.startFailed(ev)
	case Stop:
		return m.stop(now, ev)
	case Exited:
		return m.exited(now, ev)
	case Gone:
		return m.vanished()
	case PhaseEnded, PhaseRefused:
		return m.phaseOver(now, ev)
	}
	return nil
}

// started: a stop signal that came before goes straight to the phases, since
// nobody has been told that the workload is ready.
func (m *Machine) started(now time.Time) []Effect {
	if m.stage != Starting {
		return nil
	}
	m.work = alive
	if m.stopped {
		return m.enterPhases(now)
	}
	m.stage = Running
	return []Effect{{Kind: BeReady}, {Kind: Enter, Stage: Running, NoEnd: true}}
}

// startFailed: without a workload nothing is drained. Where a stop signal had
// come, that is what ended the container.
func (m *Machine) startFailed(ev Event) []Effect {
	if m.stage != Starting {
		return nil
	}
	m.status = ev.Status
	if m.stopped {
		m.status = 128 + m.signal
	}
	return m.exit()
}

// exited: the workload's own end, asked for or not.
func (m *Machine) exited(now time.Time, ev Event) []Effect {
	if m.work != alive {
		return nil
	}
	m.work, m.status = ended, ev.Status
	m.own = !m.killing || ev.Status != 128+killed
	out := m.withdraw()
	if ev.Last {
		out = append(out, m.vanished()...)
	} else {
		out = append(out, m.tellRest(now)...)
	}
	if m.stage == Running || m.stage == Announce {
		out = append(out, m.enterPhases(now)...)
	}
	return out
}

// withdraw makes readiness fail, once.
func (m *Machine) withdraw() []Effect {
	if m.withdrawn {
		return nil
	}
	m.withdrawn = true
	return []Effect{{Kind: Withdraw}}
}

// tellRest passes the stop signal to what the workload left behind. In the
// gate they share the window that is running.
func (m *Machine) tellRest(now time.Time) []Effect {
	until := now.Add(m.cfg.Plan.LeftoverWindow(m.left(now)))
	switch {
	case m.stage == Cancel: // it has KILL already
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
func (m *Machine) vanished() []Effect {
	if m.work != ended {
		return nil
	}
	m.work, m.toldEnd, m.sweepAt = gone, time.Time{}, time.Time{}
	if m.stage == Gate || m.stage == Cancel {
		return m.exit()
	}
	return nil
}

// leftover is when the time of what an ended workload left is over; in the
// gate that is the stage's own end.
func (m *Machine) leftover() time.Time {
	if m.stage == Gate || m.work != ended {
		return time.Time{}
	}
	return m.toldEnd
}

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

// due returns what the first deadline that has passed demands; nil: none has.
func (m *Machine) due(now time.Time) []Effect {
	passed := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch {
	case passed(m.assumed):
		m.assumed = time.Time{}
		return []Effect{{Kind: SayAssumed}}
	case passed(m.leftover()):
		m.toldEnd = time.Time{}
		return m.kill(now)
	case passed(m.sweepAt):
		return m.kill(now)
	case passed(m.phase.end):
		return m.phaseDue(now)
	case passed(m.end):
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

// exit ends the machine.
func (m *Machine) exit() []Effect {
	m.stage = End
	return append(m.withdraw(),
		Effect{Kind: Enter, Stage: End},
		Effect{Kind: Exit, Status: m.status, Own: m.own})
}

// left is the time to the hard deadline.
func (m *Machine) left(now time.Time) time.Duration {
	if m.hard.IsZero() {
		return budget.Unbounded
	}
	return max(m.hard.Sub(now), 0)
}

// stopSignal is what tells the workload to stop.
func (m *Machine) stopSignal() int {
	switch {
	case m.cfg.StopSignal != 0:
		return m.cfg.StopSignal
	case m.stopped:
		return m.signal
	}
	return m.cfg.Term
}
