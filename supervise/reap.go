package supervise

import (
	"slices"
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
		} else if i := l.phaseOf(e.Proc); i >= 0 {
			events = append(events, l.phaseEnded(i, e))
		}
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
	if l.reason == "" {
		l.reason = reasonExited
	}
	l.logExit(e)
	return phases.Event{Kind: phases.Exited, Status: e.Status, Last: l.gone}
}

func (l *loop) phaseEnded(i int, e child.Exit) phases.Event {
	l.phase[i].proc = nil
	l.tell.phaseExit(i, e)
	return phases.Event{Kind: phases.PhaseEnded, Phase: i, OK: e.Status == 0}
}

// phaseOf returns the index of the phase that p runs; -1: p is none's.
func (l *loop) phaseOf(p *child.Proc) int {
	return slices.IndexFunc(l.phase, func(s phaseState) bool { return s.proc == p })
}

// reasonExited is DRAINIT_REASON when the workload ended by itself.
const reasonExited = "exited"

// lookAgain is how soon /proc is read again for what an ended workload left,
// while hooks run and the end of a child alone does not tell.
const lookAgain = 100 * time.Millisecond

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
	l.rescan = time.Now().Add(lookAgain)
	n, known := l.Procs.Remains()
	return !known || n > 0
}
