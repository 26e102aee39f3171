package phases

import (
	"fmt"
	"testing"
	"time"

	"drainit/budget"
)

// depth is how many events in a row are tried, in every order.
const depth = 7

// moves are the letters of the walk. Those that pass time wake the machine
// whenever it wants to be woken, as the loop does.
var moves = [...]struct {
	name string
	do   func(*walker)
}{
	{"started", func(w *walker) { w.step(started) }},
	{"start failed", func(w *walker) { w.step(failedStart(127)) }},
	{"TERM", func(w *walker) { w.step(sigTERM) }},
	{"INT", func(w *walker) { w.interrupted = true; w.step(sigINT) }},
	{"exit, last", func(w *walker) { w.step(exitLast) }},
	{"exit, some left", func(w *walker) { w.step(exitSome) }},
	{"gone", func(w *walker) { w.step(allGone) }},
	{"phase ends", func(w *walker) { w.step(phaseEnds(w.m.phase.current, true)) }},
	{"phase refused", func(w *walker) { w.step(phaseRefused(w.m.phase.current)) }},
	{"0.6 s", func(w *walker) { w.pass(600 * time.Millisecond) }},
	{"next deadline", func(w *walker) { w.pass(w.room()) }},
	{"both end at the deadline", func(w *walker) {
		w.now = w.now.Add(w.room())
		w.step(exitSome, phaseEnds(w.m.phase.current, true), Event{Kind: Tick})
	}},
}

// walker is a machine with what has been seen of it. It is copied at each fork
// of the walk.
type walker struct {
	m Machine
	seen
	path   [depth]uint8
	length int
	broken string
}

// seen is what the invariants have to know of the past.
type seen struct {
	now               time.Time
	interrupted       bool
	withdrawn, exits  int
	told, toldRest    bool
	toldAt            time.Time
	promised          time.Duration
	gate              bool
	started, finished uint8 // phases, a bit each
	running, ready    bool
	current           int
	last              Stage
}

// key is what the future depends on.
type key struct {
	seen
	state
}

func (w *walker) room() time.Duration {
	if at, ok := w.m.Deadline(); ok {
		return at.Sub(w.now)
	}
	return 0
}

func (w *walker) pass(d time.Duration) {
	until := w.now.Add(d)
	for range 100_000 {
		at, ok := w.m.Deadline()
		if !ok || at.After(until) {
			w.now = until
			return
		}
		w.now = at
		w.step(Event{Kind: Tick})
		if w.broken != "" {
			return
		}
	}
	w.fail("time does not pass")
}

func (w *walker) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

func (w *walker) step(events ...Event) {
	over := w.m.Stage() == End
	out := w.m.Step(w.now, events...)
	if over && len(out) > 0 {
		w.fail("%d effects after the end", len(out))
	}
	for _, e := range out {
		w.see(e)
	}
	at, ok := w.m.Deadline()
	if ok && !at.After(w.now) {
		w.fail("the deadline does not lie ahead")
	}
	if !w.m.hard.IsZero() && w.m.Stage() != End && (!ok || at.After(w.m.hard)) {
		w.fail("in %v nothing is due before the hard deadline", w.m.Stage())
	}
}

// see holds one effect against the invariants.
func (w *walker) see(e Effect) {
	if e.Kind != BeReady && e.Kind != Withdraw && w.withdrawn == 0 && (e.Kind != Enter || e.Stage != Running) {
		w.fail("%s before readiness was withdrawn", describe(e))
	}
	switch e.Kind {
	case BeReady:
		w.require(!w.ready && w.withdrawn == 0, e)
		w.ready = true
	case Withdraw:
		w.withdrawn++
		w.require(w.withdrawn == 1, e)
	case Enter:
		w.require(e.Stage > w.last && e.Window >= 0, e)
		w.last, w.gate = e.Stage, w.gate || e.Stage >= Gate
	case StartPhase:
		w.require(!w.gate && !w.running && w.started&(1<<e.Phase) == 0 && e.Window > 0, e)
		w.started |= 1 << e.Phase
		w.running, w.current = true, e.Phase
	case TermPhase, KillPhase:
		w.require(w.running && e.Phase == w.current, e)
	case PhaseDone:
		w.require(w.finished&(1<<e.Phase) == 0 && !w.gate, e)
		w.require(e.Result == Skipped == (w.started&(1<<e.Phase) == 0), e)
		w.finished |= 1 << e.Phase
		w.running = w.running && e.Result == Skipped
	default:
		w.seeEnd(e)
	}
}

func (w *walker) seeEnd(e Effect) {
	switch e.Kind {
	case Tell:
		w.require(!w.told && w.m.stage >= Gate, e)
		w.told, w.toldAt = true, w.now
		left := w.m.left(w.now)
		w.promised = min(w.m.cfg.Plan.Gate, left/2)
	case TellRest:
		w.require(!w.toldRest, e)
		w.toldRest = true
	case KillRest:
		w.require(w.told || w.toldRest, e)
		if w.m.killing { // the workload itself
			w.require(w.told, e)
			w.require(w.interrupted || w.now.Sub(w.toldAt) >= w.promised, e)
			w.require(w.interrupted || !w.m.cfg.Plan.GateEndless(), e)
		}
	case Exit:
		w.exits++
		w.require(w.exits == 1 && !w.running, e)
		w.require(!w.told && !w.toldRest || int(w.finished) == 1<<len(w.m.cfg.Phases)-1, e)
	}
}

func (w *walker) require(ok bool, e Effect) {
	if !ok {
		w.fail("%s in %v", describe(e), w.m.Stage())
	}
}

func (w *walker) String() string {
	text := ""
	for _, i := range w.path[:w.length] {
		text += moves[i].name + "; "
	}
	return text
}

// runOut lets the time pass to the end; the workload dies when it was killed,
// or at last by itself.
func (w *walker) runOut() {
	for range 4 {
		w.pass(time.Hour)
		if w.m.Stage() == End || w.broken != "" {
			break
		}
		w.step(started)
		w.step(exitLast)
		w.step(allGone)
	}
	if w.exits != 1 {
		w.fail("%d exits in the end", w.exits)
	}
}

// TestWalk tries every sequence of events.
func TestWalk(t *testing.T) {
	tight := roomy()
	tight.Grace, tight.Prestop = set(8*sec), set(2*sec)
	zero := roomy()
	zero.Announce, zero.DrainBudget, zero.DrainTimeout = set(0), set(0), set(0)
	none := budget.Input{Unlimited: true, Headroom: set(sec), DrainBudget: set(2 * sec)}
	for name, c := range map[string]Config{
		"roomy":   config(roomy(), named("a", "b")...),
		"tight":   config(tight, Phase{"a", 300 * ms}, Phase{"b", 0}),
		"assumed": config(assumed(), named("a")...),
		"zero":    config(zero, named("a")...),
		"none":    config(none, named("a", "b")...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := walker{m: *New(c), seen: seen{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
			states := map[key]int{}
			walk(t, w, states)
			t.Logf("%d states", len(states))
		})
	}
}

// walk tries every move from here on. Where the same state was reached before by
// as few moves, what follows has been seen; so has what follows the end.
func walk(t *testing.T, w walker, states map[key]int) {
	k := key{w.seen, w.m.state}
	if length, ok := states[k]; ok && length <= w.length {
		return
	}
	states[k] = w.length
	ended := w.m.Stage() == End
	if w.length == depth {
		w.runOut()
		w.complain(t)
		return
	}
	for i := range moves {
		next := w
		next.path[next.length] = uint8(i)
		next.length++
		moves[i].do(&next)
		next.complain(t)
		if !ended {
			walk(t, next, states)
		}
	}
}

func (w *walker) complain(t *testing.T) {
	if w.broken != "" {
		t.Fatalf("%s\nafter %v", w.broken, w)
	}
}
