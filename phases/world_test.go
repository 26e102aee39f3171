package phases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// world is a container with all that runs in it, in virtual time.
type world struct {
	watcher
	r          *rand.Rand
	began      time.Time
	agenda     []appointment
	calls      int // of hooks, so far: each has a number
	latest     map[string]int
	owed       promise
	phasesKept bool
	visited    map[Stage]bool
	lines      []string
}

// appointment is something that will happen.
type appointment struct {
	at   time.Time
	what func() (Event, bool) // false: it does not happen after all
}

// horizon is when somebody has enough of a container that does not end.
const horizon = 4 * time.Hour

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{r: r, began: start, latest: map[string]int{}, visited: map[Stage]bool{}}
	w.m, w.now = *New(anyConfig(r)), start
	return w
}

// after has an event happen, d from now.
func (w *world) after(d time.Duration, ev Event) {
	w.whether(d, func() (Event, bool) { return ev, true })
}

func (w *world) whether(d time.Duration, what func() (Event, bool)) {
	w.agenda = append(w.agenda, appointment{w.now.Add(d), what})
}

// chance is true in one of n cases.
func (w *world) chance(n int) bool { return w.r.IntN(n) == 0 }

// live goes from the start to the exit.
func (w *world) live() {
	w.outside()
	w.whether(horizon, func() (Event, bool) { return sigTERM, true })
	w.whether(2*horizon, func() (Event, bool) { return exitLast, w.work == alive })
	w.whether(2*horizon+1, func() (Event, bool) { return allGone, w.work == ended })
	w.after(0, Event{Kind: Begin})
	for range 500_000 {
		if w.m.Stage() == End || w.broken != "" {
			return
		}
		w.next()
	}
	w.fail("it does not end")
}

// outside is what comes from there: signals, and clients.
func (w *world) outside() {
	for range w.r.IntN(5) {
		w.after(figure(w.r)+figure(w.r), []Event{sigTERM, sigINT, sigINT, {Kind: Stop, Signal: quit}}[w.r.IntN(4)])
	}
	for n := range uint64(other) {
		if !w.chance(3) {
			continue
		}
		at := figure(w.r) / time.Duration(1+w.r.IntN(8))
		ev := asks(n)
		if w.chance(2) {
			ev.Budget, ev.Delay = value(w.r), value(w.r)
		}
		w.after(at, ev)
		if w.chance(2) {
			w.whether(at+figure(w.r), func() (Event, bool) { return client(ClientLeft, n), w.clients[n] == waits })
		}
	}
	for range w.r.IntN(3) {
		w.after(figure(w.r)/8, client([]EventKind{AskAnnounce, AskUndrain}[w.r.IntN(2)], other))
	}
}

// next lets time pass until something happens, or the machine wants to be woken.
func (w *world) next() {
	slices.SortStableFunc(w.agenda, func(a, b appointment) int { return a.at.Compare(b.at) })
	at, ok := w.m.Deadline()
	if len(w.agenda) == 0 || ok && at.Before(w.agenda[0].at) {
		if !ok {
			w.fail("nothing will ever happen")
			return
		}
		w.now = at
		w.happen(Event{Kind: Tick})
		return
	}
	w.now = w.agenda[0].at
	for len(w.agenda) > 0 && w.agenda[0].at.Equal(w.now) {
		what := w.agenda[0].what
		w.agenda = w.agenda[1:]
		if ev, ok := what(); ok {
			w.happen(ev)
			return
		}
	}
}

// happen passes an event, and has the world react.
func (w *world) happen(ev Event) {
	if ev.Kind == AskDrain && w.m.Stage() == End {
		return
	}
	if ev.Kind != Tick {
		w.note(fmt.Sprintf("  %+v", ev))
	}
	w.phasesKept = w.keepsPhases(ev)
	for _, e := range w.step(ev) {
		w.note(describe(e))
		w.hold(e)
		w.react(e)
	}
}

func (w *world) note(line string) {
	if len(w.lines) < 400 && !strings.HasSuffix(line, "kill rest") && !strings.Contains(line, "companion") {
		w.lines = append(w.lines, fmt.Sprintf("%v %s", w.now.Sub(w.began), line))
	}
}

func (w *world) trace() string { return strings.Join(w.lines, "\n") }

// react is what processes do about an effect.
func (w *world) react(e Effect) {
	hook := e.Hook
	end := func(kind EventKind) Event { return Event{Kind: kind, Hook: hook, OK: !w.chance(6), Last: !w.chance(3)} }
	switch e.Kind {
	case Enter:
		w.enter(e.Stage)
	case StartWorkload, Tell, TellRest, KillRest:
		w.workload(e.Kind)
	case StartPhase:
		w.run("phase", hook, end(PhaseEnded))
	case TermPhase:
		w.hurry("phase", hook, end(PhaseEnded))
	case StartStep:
		ev := end(StepEnded)
		ev.OK = !w.chance(20)
		w.run("start", hook, ev)
	case StopStep:
		w.run("stop", hook, end(StepEnded))
	case TermStep:
		w.hurry(w.stepCall(hook), hook, end(StepEnded))
	case KillPhase:
		w.die("phase", hook, Event{Kind: PhaseEnded, Hook: hook})
	case KillStep:
		w.die(w.stepCall(hook), hook, Event{Kind: StepEnded, Hook: hook, Last: true})
	case TermLeft:
		if !w.chance(3) {
			w.whether(figure(w.r)/8, func() (Event, bool) { return stepGone(hook), true })
		}
	case StartCompanion:
		w.run("companion", hook, companionEnds(hook))
	case TermCompanion:
		w.hurry("companion", hook, companionEnds(hook))
	case KillCompanion:
		w.die("companion", hook, companionEnds(hook))
	}
}

func (w *world) stepCall(i int) string {
	if w.steps[i].called {
		return "stop"
	}
	return "start"
}

// run begins a call, which ends by itself, can't be started, or hangs. A start does
// not do so often, or nothing would ever come of it.
func (w *world) run(what string, i int, ev Event) {
	w.calls++
	w.latest[fmt.Sprint(what, i)] = w.calls
	rare, took := 1, figure(w.r)
	if what == "start" {
		rare, took = 5, took/20
	}
	switch {
	case w.chance(4 * rare): // it hangs
	case w.chance(8 * rare):
		ev.Kind, ev.OK = ev.Kind+1, false // the refusals stand behind the ends
		w.ending(figure(w.r)/100, what, i, ev)
	default:
		w.ending(took, what, i, ev)
	}
}

// ending ends the call that now is, if nothing else has by then.
func (w *world) ending(d time.Duration, what string, i int, ev Event) {
	name := fmt.Sprint(what, i)
	call := w.latest[name]
	w.whether(d, func() (Event, bool) {
		if w.latest[name] != call {
			return ev, false
		}
		w.latest[name] = 0
		return ev, true
	})
}

// hurry is TERM: most obey.
func (w *world) hurry(what string, i int, ev Event) {
	if !w.chance(3) {
		w.ending(time.Duration(w.r.Int64N(int64(3*sec))), what, i, ev)
	}
}

// die is KILL: it works, but for a process that can't be reached, and the word of
// it comes late.
func (w *world) die(what string, i int, ev Event) {
	if !w.chance(8) {
		w.ending(time.Duration(w.r.Int64N(int64(200*ms))), what, i, ev)
	}
}

// workload is what that does.
func (w *world) workload(kind EffectKind) {
	exit := func(d time.Duration, status int) {
		ev := Event{Kind: Exited, Status: status, Last: !w.chance(3)}
		w.whether(d, func() (Event, bool) { return ev, w.work == alive })
	}
	vanish := func(d time.Duration) {
		w.whether(d, func() (Event, bool) { return allGone, w.work == ended })
	}
	obeys := !w.chance(3)
	switch {
	case kind == StartWorkload && w.chance(12):
		w.after(figure(w.r)/100, failedStart(127))
	case kind == StartWorkload && !w.chance(12):
		w.after(figure(w.r)/100, started)
		if w.chance(3) {
			exit(figure(w.r), w.r.IntN(3))
		}
	case kind == StartWorkload: // the fork hangs, a while or for ever
		w.whether(time.Duration(w.r.IntN(60))*sec, func() (Event, bool) { return started, obeys })
	case kind == Tell && obeys:
		exit(figure(w.r)/2, 143)
	case kind == TellRest && obeys:
		vanish(figure(w.r) / 2)
	case kind == KillRest && !w.chance(8):
		exit(time.Duration(w.r.Int64N(int64(100*ms))), 137)
		vanish(time.Duration(w.r.Int64N(int64(200 * ms))))
	}
}

// enter keeps account of the stages.
func (w *world) enter(s Stage) {
	w.visited[s] = true
	if s == Linger && w.chance(2) {
		w.after(figure(w.r), Event{Kind: Scraped})
	}
}
