package phases

// The letters of the walk.

// always is an event that may come at any time.
func always(name string, events ...Event) move {
	return move{name, func(w *walker) bool { w.step(events...); return true }}
}

// only is one that may come under a condition.
func only(name string, when func(*walker) bool, make func(*walker) Event) move {
	return move{name, func(w *walker) bool {
		if !when(w) {
			return false
		}
		w.step(make(w))
		return true
	}}
}

func fixed(ev Event) func(*walker) Event { return func(*walker) Event { return ev } }

func beingStarted(w *walker) bool { return w.work == asked }

// common are those of every walk.
func common() []move {
	return []move{
		only("started", beingStarted, fixed(started)),
		only("start failed", beingStarted, fixed(failedStart(127))),
		always("TERM", sigTERM),
		always("INT", sigINT),
		{"next deadline", func(w *walker) bool { w.pass(w.room()); return true }},
		{"the stage's end", func(w *walker) bool {
			ends, ok := w.m.Ends()
			if ok && w.m.Stage() != End {
				w.pass(ends.Sub(w.now))
			}
			return ok
		}},
		{"0.6 s", func(w *walker) bool { w.pass(600 * ms); return true }},
	}
}

func phaseEnding(name string, make func(int) Event) move {
	return move{name, func(w *walker) bool { w.step(make(w.m.phase.current)); return true }}
}

func goodPhase() move {
	return phaseEnding("phase ends", func(i int) Event { return phaseEnds(i, true) })
}

// workloadMoves are about the workload and the phases.
func workloadMoves() []move {
	return append(common(),
		always("exit, last", exitLast), always("exit, some left", exitSome), always("gone", allGone),
		goodPhase(), phaseEnding("phase refused", phaseRefused),
		move{"both end at the deadline", func(w *walker) bool {
			w.now = w.now.Add(w.room())
			w.step(exitSome, phaseEnds(w.m.phase.current, true), Event{Kind: Tick})
			return true
		}},
	)
}

// called returns the step whose call runs, the first or the last of several; the
// first step of all where there is none, which is a late word then.
func (w *walker) called(last bool) int {
	found := 0
	for i, s := range w.seen.steps {
		if s.call != noCall {
			found = i
			if !last {
				break
			}
		}
	}
	return found
}

// cleared is a step of which something is left.
func (w *walker) cleared() int {
	for i, s := range w.seen.steps {
		if s.left {
			return i
		}
	}
	return -1
}

func begun(w *walker) bool { return w.begun && len(w.m.cfg.Steps) > 0 }

// stepEvents are about the calls of steps.
func stepEvents() []move {
	first := func(w *walker) int { return w.called(false) }
	return []move{
		only("step ends", begun, func(w *walker) Event { return stepEnds(first(w), true) }),
		only("last step ends", begun, func(w *walker) Event { return stepEnds(w.called(true), true) }),
		only("step ends, some left", begun, func(w *walker) Event { return stepLeaves(first(w), true) }),
		only("step fails", begun, func(w *walker) Event { return stepEnds(first(w), false) }),
		only("step refused", begun, func(w *walker) Event { return Event{Kind: StepRefused, Hook: first(w), Last: true} }),
		only("step gone", func(w *walker) bool { return w.cleared() >= 0 }, func(w *walker) Event { return stepGone(w.cleared()) }),
	}
}

func beginning() move {
	return only("begin", func(w *walker) bool { return !w.begun }, fixed(Event{Kind: Begin}))
}

func stepMoves() []move {
	return append(append(common(), stepEvents()...), always("exit, last", exitLast), goodPhase(), beginning(),
		always("scraped", Event{Kind: Scraped}), move{"both steps end at the deadline", bothSteps})
}

// bothSteps has two calls end when the machine wants to be woken.
func bothSteps(w *walker) bool {
	first, last := w.called(false), w.called(true)
	if first == last {
		return false
	}
	w.now = w.now.Add(w.room())
	w.step(stepEnds(first, true), stepLeaves(last, true), Event{Kind: Tick})
	return true
}

// runs tells that a companion runs.
func runs(i int) func(*walker) bool {
	return func(w *walker) bool { return w.seen.companions[i].up }
}

func companionEvents() []move {
	return []move{
		only("companion 1 ends", runs(0), fixed(companionEnds(0))),
		only("companion 2 ends", runs(1), fixed(companionEnds(1))),
	}
}

func companionMoves() []move {
	return append(append(common(), companionEvents()...), stepEvents()[0], stepEvents()[3],
		always("exit, last", exitLast), always("exit, some left", exitSome), always("gone", allGone),
		always("scraped", Event{Kind: Scraped}))
}

// client is the first who is so far, -1: none is.
func (w *walker) client(is seenClient) int {
	for i, c := range w.clients[:mostClients-1] {
		if c == is {
			return i
		}
	}
	return -1
}

// other is a client that asks for anything but the drain.
const other = mostClients - 1

func clientEvents() []move {
	comes := func(w *walker) bool { return w.client(nobody) >= 0 }
	waiting := func(w *walker) bool { return w.client(waits) >= 0 }
	return []move{
		only("drain", comes, func(w *walker) Event { return asks(uint64(w.client(nobody))) }),
		only("drain of 3 s", comes, func(w *walker) Event { return asksFor(uint64(w.client(nobody)), set(3*sec), set(sec)) }),
		only("client leaves", waiting, func(w *walker) Event { return client(ClientLeft, uint64(w.client(waits))) }),
		always("announce", client(AskAnnounce, other)),
		always("undrain", client(AskUndrain, other)),
	}
}

func clientMoves() []move {
	return append(append(common(), clientEvents()...), always("exit, last", exitLast), always("exit, some left", exitSome),
		goodPhase(), beginning())
}

func allMoves() []move {
	all := append(common(), stepEvents()...)
	all = append(all, companionEvents()...)
	all = append(all, clientEvents()...)
	return append(all, always("exit, last", exitLast), always("exit, some left", exitSome), always("gone", allGone),
		goodPhase(), beginning(), always("scraped", Event{Kind: Scraped}))
}
