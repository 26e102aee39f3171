package supervise

import (
	"time"

	"drainit/child"
	"drainit/phases"
)

// reap takes in every process that has ended.
func (l *loop) reap() {
	if l.over {
		return
	}
	r := l.Procs.Reap()
	var events []phases.Event
	for _, e := range r.Exits {
		if e.Proc == l.workload {
			events = append(events, l.workloadEnded(e, r.Left))
		} else if c := l.callOf(e.Proc); c != nil {
			events = append(events, l.callEnded(c, e))
		}
	}
	events = append(events, l.cleared()...)
	if r.Orphans > 0 {
		l.hasten()
	}
	if l.exit != nil && !l.gone && !l.remains(r.Left) {
		l.gone = true
		events = append(events, phases.Event{Kind: phases.Gone})
	}
	if events != nil {
		l.step(events...)
	}
}

func (l *loop) workloadEnded(e child.Exit, left bool) phases.Event {
	l.exit = &e
	l.gone = !l.remains(left)
	if l.reason == "" || l.reason == reasonDrain {
		l.reason = reasonExited
	}
	l.tell.close(time.Now())
	l.logExit(e)
	return phases.Event{Kind: phases.Exited, Status: e.Status, Last: l.gone}
}

// What DRAINIT_REASON says beside the names of signals: the workload ended by
// itself, a client asked for the drain, a step's start failed.
const (
	reasonExited = "exited"
	reasonDrain  = "drain"
	reasonFailed = "failed"
)

// How soon /proc is read again for what an ended workload, or a step, left, while
// hooks run and the end of a child alone does not tell: the pauses double from
// the first to the longest, and begin anew when an orphan has ended.
const (
	lookSoon  = 5 * time.Millisecond
	lookAgain = 100 * time.Millisecond
)

// looked says when to look again.
func (l *loop) looked() {
	l.pause = min(max(2*l.pause, lookSoon), lookAgain)
	l.rescan = time.Now().Add(l.pause)
}

// hasten: what has ended may have been the last.
func (l *loop) hasten() {
	if l.pause > lookSoon {
		l.pause = 0
		if soon := time.Now().Add(lookSoon); !l.rescan.IsZero() && soon.Before(l.rescan) {
			l.rescan = soon
		}
	}
}

// remains finds out whether anything is left of an ended workload. Without a
// child there is nothing: whatever it started would have become ours. With one
// there is, unless hooks are running, or about to, whose processes those may be.
func (l *loop) remains(left bool) bool {
	switch {
	case !left:
		return false
	case !l.Procs.Hooks() && l.asked == 0:
		l.rescan = time.Time{}
		return true
	case time.Now().Before(l.rescan):
		return true
	}
	l.looked()
	n, known := l.Procs.Remains()
	return !known || n > 0
}
