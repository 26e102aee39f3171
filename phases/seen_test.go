package phases

import (
	"fmt"
	"time"
)

// The most that a machine under watch has of each.
const (
	mostSteps      = 4
	mostCompanions = 3
	mostClients    = 4
)

// seen is what has to be known of the past to judge what a machine does next. It
// is comparable.
type seen struct {
	now        time.Time
	begun      bool
	work       workload // as the events have told it
	late       bool     // it came after it had been given up
	stop       int      // the first stop signal
	interrupts int      // INTs, at most 2
	failed     bool     // a step's start has, before any signal
	status     int      // what the exit has to be, where that is known
	own        bool

	ready, withdrawn, announced bool

	told, toldRest, gate bool
	toldAt               time.Time
	promised             time.Duration
	last                 Stage

	started, finished, bad uint8 // phases, a bit each
	running                bool
	current                int

	steps      [mostSteps]seenStep
	companions [mostCompanions]seenCompanion
	clients    [mostClients]seenClient
	replies    int     // that are owed at once
	reply      Outcome // what it has to be

	finals, exits int
}

// seenStep is a step's past.
type seenStep struct {
	call                  seenCall
	termed                bool // the call was told
	started, failed       bool
	called, left, stopped bool      // with stop; which left some; which is over
	told                  bool      // what its start left was
	at                    time.Time // when it was called with stop
}

type seenCall uint8

const (
	noCall seenCall = iota
	startCall
	stopCall
)

// seenCompanion is a companion's.
type seenCompanion struct{ ever, up, told, killed bool }

// seenClient is what became of one who asked for the drain.
type seenClient uint8

const (
	nobody seenClient = iota
	waits
	answered
)

// watcher holds a machine's effects against what has to be true of all.
type watcher struct {
	m Machine
	seen
	broken string
}

func (w *watcher) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// require fails unless ok.
func (w *watcher) require(ok bool, e Effect) {
	if !ok {
		w.fail("%s in %v", describe(e), w.m.Stage())
	}
}

// step passes events and judges what comes of them.
func (w *watcher) step(events ...Event) []Effect {
	over := w.m.Stage() == End
	if !over {
		for _, ev := range events {
			w.hear(ev)
		}
	}
	out := w.m.Step(w.now, events...)
	if over && len(out) > 0 {
		w.fail("%d effects after the end", len(out))
	}
	for _, e := range out {
		w.see(e)
	}
	w.judge()
	return out
}

// judge is what has to be true between two events.
func (w *watcher) judge() {
	at, ok := w.m.Deadline()
	if ok && !at.After(w.now) {
		w.fail("the deadline does not lie ahead")
	}
	ended := w.m.Stage() == End
	if !w.m.hard.IsZero() && !ended && w.begun && (!ok || at.After(w.m.hard)) {
		w.fail("in %v nothing is due before the hard deadline", w.m.Stage())
	}
	if w.replies != 0 && !ended {
		w.fail("%d replies are owed", w.replies)
	}
	if w.m.Stage() >= Drained && w.waiting() > 0 {
		w.fail("in %v somebody waits", w.m.Stage())
	}
	if w.waiting() != w.m.drain.clients && !ended {
		w.fail("%d wait, the machine counts %d", w.waiting(), w.m.drain.clients)
	}
	if (w.exits == 1) != ended {
		w.fail("%d exits in %v", w.exits, w.m.Stage())
	}
	if w.withdrawn == w.m.withdrawn.IsZero() {
		w.fail("withdrawn: %v", w.withdrawn)
	}
}

func (w *watcher) waiting() int {
	n := 0
	for _, c := range w.clients {
		if c == waits {
			n++
		}
	}
	return n
}

// hear notes what an event says before the machine acts on it.
func (w *watcher) hear(ev Event) {
	switch ev.Kind {
	case Begin:
		w.begun = true
	case Started:
		w.late = w.m.Stage() > Starting
		w.work = alive
	case StartFailed:
		w.work, w.status = absent, ev.Status
		if w.stop != 0 {
			w.status = 128 + w.stop
		}
	case Exited:
		if w.work == alive {
			w.exited(ev)
		}
	case Gone:
		if w.work == ended {
			w.work = gone
		}
	case Stop:
		w.signalled(ev)
	case StepEnded, StepRefused, StepGone:
		w.hearStep(ev)
	case CompanionEnded, CompanionRefused:
		w.companions[ev.Hook].up = false
	default:
		w.hearClient(ev)
	}
}

func (w *watcher) exited(ev Event) {
	w.work = ended
	if ev.Last {
		w.work = gone
	}
	if !w.late && w.finals == 0 {
		w.status, w.own = ev.Status, !w.m.killing || ev.Status != 128+killed
	}
}

func (w *watcher) signalled(ev Event) {
	if w.stop == 0 {
		w.stop = ev.Signal
		if !w.failed && w.work == absent && w.m.work != asked && w.m.Stage() == Starting {
			w.status = 128 + ev.Signal
		}
	}
	if ev.Interrupt {
		w.interrupts = min(w.interrupts+1, 2)
	}
}

func (w *watcher) hearStep(ev Event) {
	s := &w.steps[ev.Hook]
	switch {
	case ev.Kind == StepGone:
		s.left = false
	case s.call == noCall: // a late word
	case s.call == stopCall:
		s.call, s.left = noCall, !ev.Last
	}
}

func (w *watcher) hearClient(ev Event) {
	switch ev.Kind {
	case AskAnnounce:
		w.announced, w.reply = true, Done
		w.replies++
	case AskUndrain:
		w.reply = Refused
		if w.stop == 0 && !w.failed && w.started|w.finished == 0 && w.work <= alive && w.last < Gate {
			w.announced, w.reply = false, Done
		}
		w.replies++
	case AskDrain:
		w.clients[ev.Client] = waits
	case ClientLeft:
		w.clients[ev.Client] = answered
	}
}
