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

// Step is what it knows of a lifecycle step. Steps stand in the order of their
// waves.
type Step struct {
	Name string
	Max  time.Duration // bounds its start; 0: does not
	Wave int           // steps of one wave are run together
}

// Config is fixed for the machine's life.
type Config struct {
	Plan       budget.Plan
	Phases     []Phase
	Steps      []Step
	Companions int
	// StartTimeout bounds each step's start; 0: does not.
	StartTimeout time.Duration
	// StopSignal tells the workload to stop; 0: the signal that began the
	// drain, Term where none did.
	StopSignal, Term int
	// Seed is of the jitter of restarts.
	Seed uint64
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
	asked                  // its start is under way
	alive
	ended // exited; descendants may be left
	gone  // nothing is left
)

// refused is the exit status when a step's start failed: the init's own.
const refused = 125

// Machine decides. It is not safe for concurrent use, and never sleeps: the
// caller passes the time.
type Machine struct {
	cfg        Config
	steps      []step
	companions []companion
	state
}

// state is what changes in a machine, but for the steps and the companions. It
// is comparable: two machines of one configuration that are equal in all have the
// same future.
type state struct {
	stage Stage
	work  workload

	status    int       // what the init exits with
	own       bool      // status is the workload's own end
	failed    bool      // a step's start has: nothing more is started
	killing   bool      // KILL was sent while the workload lived
	late      bool      // it was started after it had been given up: its end is nobody's
	withdrawn time.Time // when readiness was; zero: it is not
	stopped   bool      // a stop signal has come
	signal    int       // the first one
	said      uint64    // signals that were logged as ignored
	interrupt time.Time // the latest INT that counted
	hard      time.Time // the hard deadline; zero: none
	assumed   time.Time // when the assumed grace period is over; zero: there is none
	assuming  bool      // that was not said yet

	since   time.Time // when the running stage began
	end     time.Time // of the running stage; zero: none
	toldEnd time.Time // until when what an ended workload left may take; zero: no end
	sweepAt time.Time // when KILL is sent again; zero: it was not sent

	phase runner
	drain request
	rand  uint64
}

// New returns the machine of a container in which nothing has been started.
func New(c Config) *Machine {
	m := &Machine{cfg: c, steps: make([]step, len(c.Steps)), companions: make([]companion, c.Companions)}
	m.rand = c.Seed
	return m
}

// Stage returns the current stage.
func (m *Machine) Stage() Stage { return m.stage }

// Since is when the current stage began; zero before the first has.
func (m *Machine) Since() time.Time { return m.since }

// Ends is when the current stage's window is over; false where it has none.
func (m *Machine) Ends() (time.Time, bool) { return m.end, !m.end.IsZero() }

// Hard is the hard deadline; false where there is none.
func (m *Machine) Hard() (time.Time, bool) { return m.hard, !m.hard.IsZero() }

// Deadline is when Step wants to be called with a Tick at the latest; false
// while only an event can change anything.
func (m *Machine) Deadline() (time.Time, bool) {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, t := range [...]time.Time{m.end, m.phase.end, m.leftover(), m.sweepAt, m.warning()} {
		sooner(t)
	}
	for i := range m.steps {
		sooner(m.steps[i].end)
	}
	for i := range m.companions {
		sooner(m.companions[i].again)
	}
	return at, !at.IsZero() && m.stage != End
}

// warning is when the assumed grace period is over, until that was said.
func (m *Machine) warning() time.Time {
	if !m.assuming {
		return time.Time{}
	}
	return m.assumed
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
	case Begin:
		return m.launch(now)
	case Started:
		return m.started(now)
	case StartFailed:
		return m.startFailed(now, ev)
	case Stop:
		return m.stop(now, ev)
	case Exited:
		return m.exited(now, ev)
	case Gone:
		return m.vanished(now)
	case PhaseEnded, PhaseRefused:
		return m.phaseOver(now, ev)
	case StepEnded, StepRefused, StepGone:
		return m.stepOver(now, ev)
	case CompanionEnded, CompanionRefused:
		return m.companionOver(now, ev)
	case AskAnnounce, AskDrain, AskUndrain, ClientLeft:
		return m.asked(now, ev)
	case Scraped:
		return m.scraped()
	}
	return nil
}

// left is the time to the hard deadline.
func (m *Machine) left(now time.Time) time.Duration {
	if m.hard.IsZero() {
		return budget.Unbounded
	}
	return max(m.hard.Sub(now), 0)
}

// plan is the plan as it now applies: with what the running drain asked for, and
// without what a workload, and the companions, that are not there need.
func (m *Machine) plan() budget.Plan {
	p := m.cfg.Plan
	if m.drain.budget.Set {
		p.Phases = m.drain.budget.D
	}
	if m.drain.delay.Set {
		p.Announce = m.drain.delay.D
	}
	if m.work == absent {
		p = p.WithoutWorkload()
	}
	if m.work == absent && m.stage < Companions { // they start with it
		p.Companions = 0
	}
	return p
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
