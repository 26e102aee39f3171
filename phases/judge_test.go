package phases

import (
	"time"

	"drainit/budget"
)

// see holds one effect against what has to be true of it.
func (w *watcher) see(e Effect) {
	w.seeOrder(e)
	switch e.Kind {
	case BeReady:
		w.require(!w.ready && w.stop == 0 && !w.failed && !w.announced && w.work == alive, e)
		w.ready, w.withdrawn = true, false
	case Withdraw:
		w.require(!w.withdrawn, e)
		w.ready, w.withdrawn = false, true
	case Enter:
		w.seeEnter(e)
	case StartPhase, TermPhase, KillPhase, PhaseDone:
		w.seePhase(e)
	case StartStep, StopStep, TermStep, KillStep, TermLeft, KillLeft, StepStarted, StepFailed, StepStopped:
		w.seeStep(e, &w.steps[e.Hook])
	case StartCompanion, CompanionRests, TermCompanion, KillCompanion:
		w.seeCompanion(e, &w.companions[e.Hook])
	case Reply, Share, Answer, SayCancelled:
		w.seeClient(e)
	default:
		w.seeEnd(e)
	}
}

// seeOrder: nothing of the shutdown happens before readiness is withdrawn, and
// nothing changes any more once the figures are final.
func (w *watcher) seeOrder(e Effect) {
	switch e.Kind {
	case StartPhase, PhaseDone, Tell, TellRest, KillRest, TermCompanion, StopStep, SayJoined, Final, Exit:
		w.require(w.withdrawn || w.last == Starting && e.Kind == PhaseDone, e)
	}
	if w.finals == 0 {
		return
	}
	switch e.Kind {
	case Enter, Exit, KillRest, Reply, SayIgnored, SayJoined, SayHurried, SayAssumed:
	default:
		w.require(false, e)
	}
}

// seeEnter: the stages follow each other, but for a drain that is called off.
func (w *watcher) seeEnter(e Effect) {
	switch e.Stage {
	case Running:
		w.require(w.work == alive && w.stop == 0 && w.started == 0 && w.last <= Drained, e)
	case Drained:
		w.require(w.work == alive && w.stop == 0 && !w.running && w.last < Drained, e)
	default:
		w.require(e.Stage > w.last, e)
	}
	endless := e.Stage == Gate && w.m.cfg.Plan.GateEndless() && w.work == alive
	w.require(e.Window >= 0 && e.NoEnd == (endless || e.Stage == Running || e.Stage == Drained), e)
	w.last, w.gate = e.Stage, w.gate || e.Stage >= Gate
}

// seePhase: each runs once, one at a time, and none where the start has failed.
func (w *watcher) seePhase(e Effect) {
	bit := uint8(1) << e.Hook
	switch e.Kind {
	case StartPhase:
		w.require(!w.gate && !w.running && w.started&bit == 0 && e.Window >= min(minSlice, w.m.cfg.Phases[e.Hook].own()), e)
		w.require(!w.failed && (w.work != absent || w.stop != 0 && w.allStarted()), e)
		w.started |= bit
		w.running, w.current = true, e.Hook
	case PhaseDone:
		w.require(w.finished&bit == 0 && !w.gate, e)
		w.require(e.Result == Skipped == (w.started&bit == 0), e)
		w.finished |= bit
		if e.Result != Succeeded {
			w.bad |= bit
		}
		w.running = w.running && e.Result == Skipped
	default:
		w.require(w.running && e.Hook == w.current, e)
	}
}

// own is the most that a phase takes by its own word.
func (p Phase) own() time.Duration {
	if p.Max == 0 {
		return time.Hour
	}
	return p.Max
}

func (w *watcher) allStarted() bool {
	for i := range w.m.cfg.Steps {
		if !w.steps[i].started {
			return false
		}
	}
	return true
}

// seeStep: started once at the most, and stopped once if it was, wave by wave.
func (w *watcher) seeStep(e Effect, s *seenStep) {
	switch e.Kind {
	case StartStep:
		w.require(w.begun && w.stop == 0 && !w.failed && *s == seenStep{} && w.reached(e.Hook), e)
		s.call = startCall
	case StepStarted, StepFailed:
		w.require(s.call == startCall && !s.started && !s.failed, e)
		s.started, s.failed, s.call, s.termed = e.Kind == StepStarted, e.Kind == StepFailed, noCall, false
		if s.failed && w.stop == 0 {
			w.failed, w.status = true, refused
		}
	case StopStep:
		w.require(s.started && !s.called && w.last == Lifecycle && w.unwound(e.Hook), e)
		w.require(w.work != alive || w.m.killing, e)
		w.require(e.Window <= w.m.cfg.Plan.Wave, e)
		s.called, s.call, s.at = true, stopCall, w.now
	case TermStep:
		w.require(s.call != noCall && !s.termed, e)
		s.termed = true
	case KillStep:
		w.require(s.call != noCall && s.termed, e)
	case TermLeft:
		ended, pressed := s.call == noCall && s.left, s.call == stopCall && s.termed
		w.require(s.called && !s.stopped && !s.told && (ended || pressed), e)
		s.told = true
	case KillLeft:
		w.require(s.called && !s.stopped, e)
	case StepStopped:
		w.require(s.called && !s.stopped, e)
		w.require(w.now.Sub(s.at) <= w.m.cfg.Plan.Wave, e)
		s.stopped, s.call = true, noCall
	}
}

// reached tells that all waves before that of step i have started.
func (w *watcher) reached(i int) bool {
	for j, s := range w.m.cfg.Steps {
		if s.Wave < w.m.cfg.Steps[i].Wave && !w.steps[j].started {
			return false
		}
	}
	return true
}

// unwound tells that the companions are over, and all waves behind that of step i.
func (w *watcher) unwound(i int) bool {
	for j, s := range w.m.cfg.Steps {
		if s.Wave > w.m.cfg.Steps[i].Wave && w.steps[j].started && !w.steps[j].stopped {
			return false
		}
	}
	return w.companionsOver()
}

func (w *watcher) companionsOver() bool {
	for _, c := range w.companions {
		if c.up && !c.killed {
			return false
		}
	}
	return true
}

// seeCompanion: told once, if it runs then, and not started any more.
func (w *watcher) seeCompanion(e Effect, c *seenCompanion) {
	switch e.Kind {
	case StartCompanion:
		w.require(!c.up && !c.told && w.last < Companions, e)
		w.require(c.ever || w.stop == 0 && !w.failed && w.allStarted(), e)
		c.ever, c.up = true, true
	case CompanionRests:
		w.require(!c.up && !c.told && e.Window >= time.Second && e.Window < 36*time.Second, e)
	case TermCompanion:
		w.require(c.up && !c.told && w.last == Companions, e)
		c.told = true
	case KillCompanion:
		w.require(c.up && c.told && !c.killed, e)
		c.killed = true
	}
}

// seeClient: each is answered once.
func (w *watcher) seeClient(e Effect) {
	switch e.Kind {
	case Share:
		w.require(w.clients[e.Client] == waits, e)
		return
	case Reply:
		if w.clients[e.Client] == waits {
			w.clients[e.Client] = answered
			w.outcome(e)
			return
		}
		w.replies--
		w.require(w.replies == 0 && e.Outcome == w.reply, e)
		return
	case SayCancelled:
		w.require(w.stop == 0 && w.started == 0, e)
	case Answer:
		w.require(w.waiting() > 0, e)
		w.outcome(e)
	}
	for i, c := range w.clients {
		if c == waits {
			w.clients[i] = answered
		}
	}
}

// outcome: a drain was good when all phases have come to a good end.
func (w *watcher) outcome(e Effect) {
	good := int(w.finished) == 1<<len(w.m.cfg.Phases)-1 && w.bad == 0
	w.require(good == (e.Outcome == Done) && e.Outcome <= Incomplete && !w.running, e)
}

// seeEnd: the workload is told before it is killed, and there is one exit, with
// nothing left behind.
func (w *watcher) seeEnd(e Effect) {
	switch e.Kind {
	case StartWorkload:
		w.require(w.work == absent && w.stop == 0 && !w.failed && w.allStarted(), e)
		w.work = asked
	case Tell:
		w.require(!w.told && w.last == Gate && w.work == alive && !w.late && w.stop != 0, e)
		w.told, w.toldAt = true, w.now
		w.promised = min(w.m.cfg.Plan.Gate, w.m.left(w.now)/2)
		if p := w.m.cfg.Plan; !p.GraceSet && !p.GateSet {
			w.promised = budget.GateWish
		}
	case TellRest:
		w.require(!w.toldRest && w.work >= ended, e)
		w.toldRest = true
	case KillRest:
		w.require(w.told || w.toldRest || w.late, e)
		if w.m.killing && !w.late { // the workload itself
			hurried := w.interrupts > 0
			w.require(w.told && (hurried || w.now.Sub(w.toldAt) >= w.promised && !w.m.cfg.Plan.GateEndless()), e)
		}
	case Final:
		w.finals++
		w.require(w.finals == 1 && e.Status == w.m.status && e.Own == w.m.own, e)
		w.seeStatus(e)
	case Exit:
		w.exits++
		w.require(w.exits == 1 && w.finals == 1 && !w.running, e)
		w.require(!w.told && !w.toldRest || int(w.finished) == 1<<len(w.m.cfg.Phases)-1, e)
		w.require(w.m.hard.IsZero() || !w.now.After(w.m.hard), e)
		w.seeStatus(e)
		w.seeNothingLeft(e)
	}
}

// seeStatus: whose end was it?
func (w *watcher) seeStatus(e Effect) {
	switch {
	case w.exits == 1: // as it was said
	case w.work == asked, w.late: // it was given up
		w.status = 128 + w.stop
	case w.work == alive:
		w.status = 128 + killed
	}
	w.require(e.Status == w.status && e.Own == w.own, e)
}

// seeNothingLeft: what has started was stopped, what runs was told and killed.
func (w *watcher) seeNothingLeft(e Effect) {
	for _, s := range w.steps {
		w.require(s.started == s.called && s.called == s.stopped && s.call == noCall, e)
	}
	w.require(w.companionsOver(), e)
}
