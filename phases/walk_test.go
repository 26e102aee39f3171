package phases

import (
	"hash/maphash"
	"testing"
	"time"

	"drainit/budget"
)

// move is a letter of the walk; false: it makes no sense there.
type move struct {
	name string
	do   func(*walker) bool
}

// deepest is how many moves in a row are tried at the most.
const deepest = 10

// walker is a machine under watch. It is copied at each fork of the walk, with
// what its slices hold.
type walker struct {
	watcher
	steps      [mostSteps]step
	companions [mostCompanions]companion
	moves      []move
	path       [deepest]uint8
	length     int
}

// key is what the future depends on.
type key struct {
	seen
	state
	steps      [mostSteps]step
	companions [mostCompanions]companion
}

// own makes the machine's slices the walker's.
func (w *walker) own() {
	w.m.steps = w.steps[:len(w.m.cfg.Steps)]
	w.m.companions = w.companions[:w.m.cfg.Companions]
}

func newWalker(c Config, moves []move) *walker {
	w := &walker{watcher: watcher{m: *New(c), seen: seen{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}, moves: moves}
	w.own()
	return w
}

func (w *walker) room() time.Duration {
	if at, ok := w.m.Deadline(); ok {
		return at.Sub(w.now)
	}
	return 0
}

// pass lets time go by. It wakes the machine whenever it wants to be woken, as
// the loop does.
func (w *walker) pass(d time.Duration) {
	until := w.now.Add(d)
	for range 200_000 {
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

func (w *walker) String() string {
	text := ""
	for _, i := range w.path[:w.length] {
		text += w.moves[i].name + "; "
	}
	return text
}

// runOut lets the time pass to the end; starts come to theirs, and the workload
// dies when it was killed, or at last by itself.
func (w *walker) runOut() {
	if !w.begun {
		w.step(Event{Kind: Begin})
	}
	for range 8 {
		w.pass(time.Hour)
		if w.m.Stage() == End || w.broken != "" {
			break
		}
		for i := range w.m.cfg.Steps {
			if w.seen.steps[i].call == startCall {
				w.step(stepEnds(i, true))
			}
		}
		if w.work == asked {
			w.step(started)
		}
		w.step(exitLast)
		w.step(allGone)
	}
	if w.exits != 1 {
		w.fail("%d exits in the end", w.exits)
	}
}

// walked is one configuration, from where, and how far it is walked.
type walked struct {
	config Config
	depth  int
	moves  []move
	from   []any // events, and time that passes
}

// reach begins a walk.
func (w *walker) reach(from []any) {
	for _, f := range from {
		switch f := f.(type) {
		case Event:
			w.step(f)
		case time.Duration:
			w.pass(f)
		}
	}
}

func walks() map[string]walked {
	tight := roomy()
	tight.Grace, tight.Prestop = set(8*sec), set(2*sec)
	zero := roomy()
	zero.Announce, zero.DrainBudget, zero.DrainTimeout = set(0), set(0), set(0)
	none := budget.Input{Unlimited: true, Headroom: set(sec), DrainBudget: set(2 * sec)}
	close := long()
	close.Grace, close.Linger, close.StepTimeout = set(9*sec), set(sec), set(2*sec)
	late := stepped(close, named("a"), 1, 2, 2)
	late.StartTimeout = 3 * sec
	bare := stepped(none, nil, 1, 1)
	bare.Steps[0].Max = sec
	loose := withSteps(config(assumed(), named("a")...), assumed(), 2, 1)
	lingers := withSteps(config(close, named("a")...), close, 2, 1, 2, 2)
	ends := withSteps(config(close), close, 1, 1)
	unborn, begin := []any(nil), []any{Event{Kind: Begin}}
	up := append(begin[:1:1], stepEnds(0, true), stepEnds(1, true), stepEnds(2, true), started)
	return map[string]walked{
		"roomy":                 {config(roomy(), named("a", "b")...), 7, workloadMoves(), begin},
		"tight":                 {config(tight, Phase{"a", 300 * ms}, Phase{"b", 0}), 7, workloadMoves(), begin},
		"assumed":               {config(assumed(), named("a")...), 7, workloadMoves(), begin},
		"zero":                  {config(zero, named("a")...), 7, workloadMoves(), begin},
		"none":                  {config(none, named("a", "b")...), 7, workloadMoves(), begin},
		"steps":                 {stepped(long(), named("a"), 1, 2, 2), 7, stepMoves(), begin},
		"steps, little time":    {late, 7, stepMoves(), begin},
		"steps, no grace":       {bare, 6, stepMoves(), unborn},
		"companions":            {withSteps(config(close), close, 2, 1), 7, companionMoves(), begin},
		"companions, assumed":   {loose, 6, companionMoves(), begin},
		"clients":               {config(roomy(), named("a")...), 6, clientMoves(), begin},
		"clients, no phase":     {config(tight), 7, clientMoves(), begin},
		"clients, assumed":      {config(assumed(), named("a", "b")...), 6, clientMoves(), unborn},
		"all, little time":      {withSteps(config(close, named("a")...), close, 1, 1, 2), 5, allMoves(), unborn},
		"all, everything fails": {withSteps(config(zero, named("a")...), zero, 1, 1), 5, allMoves(), begin},
		"all, from running":     {lingers, 5, allMoves(), up},
		"all, from the gate":    {ends, 5, allMoves(), append(begin[:1:1], stepEnds(0, true), started, sigTERM)},
		"all, from the stops":   {lingers, 5, allMoves(), append(up[:5:5], exitLast, phaseEnds(0, true), companionEnds(0), companionEnds(1))},
	}
}

// TestWalk tries every sequence of events.
func TestWalk(t *testing.T) {
	for name, c := range walks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(c.config, c.moves)
			if w.reach(c.from); w.m.Stage() == End {
				t.Fatal("it begins at the end")
			}
			states, seed := map[uint64]int8{}, maphash.MakeSeed()
			walk(t, w, c.depth, states, seed)
			t.Logf("%d states", len(states))
		})
	}
}

// walk tries every move from here on. Where the same state was reached before by
// as few moves, what follows has been seen; so has what follows the end.
func walk(t *testing.T, w *walker, depth int, states map[uint64]int8, seed maphash.Seed) {
	k := maphash.Comparable(seed, key{w.seen, w.m.state, w.steps, w.companions})
	if length, ok := states[k]; ok && int(length) <= w.length {
		return
	}
	states[k] = int8(w.length)
	ended := w.m.Stage() == End
	if w.length == depth {
		w.runOut()
		w.complain(t)
		return
	}
	for i := range w.moves {
		next := *w
		next.own()
		next.path[next.length] = uint8(i)
		next.length++
		if !w.moves[i].do(&next) {
			continue
		}
		next.complain(t)
		if !ended {
			walk(t, &next, depth, states, seed)
		}
	}
}

func (w *walker) complain(t *testing.T) {
	if w.broken != "" {
		t.Fatalf("%s\nafter %v", w.broken, w)
	}
}
