package phases

import "time"

// situation is a point of the container's life and how it is reached.
type situation struct {
	name   string
	stage  Stage
	config Config
	reach  func(*rig)
	unborn bool // the start has not even begun
}

// play passes events and lets time go by.
func play(moves ...any) func(*rig) {
	return func(r *rig) {
		for _, m := range moves {
			switch m := m.(type) {
			case Event:
				r.do(m)
			case time.Duration:
				r.pass(m)
			}
		}
	}
}

// situations are those of the table.
func situations() []situation {
	all := beginnings()
	all = append(all, lives()...)
	all = append(all, drains()...)
	all = append(all, gates()...)
	return append(all, teardowns()...)
}

// phased has two phases.
func phased() Config { return config(roomy(), named("one", "two")...) }

// whole has two phases, steps in two waves, of which the second has two, and two
// companions.
func whole() Config { return withSteps(phased(), long(), 2, 1, 2, 2) }

// beginnings are those before readiness.
func beginnings() []situation {
	first, second, third := stepEnds(0, true), stepEnds(1, true), stepEnds(2, true)
	whole := whole()
	return []situation{
		{"before the start", Starting, whole, play(), true},
		{"before the start, TERM has come", Starting, whole, play(sigTERM), true},
		{"starting: step 1 starts, steps 2 and 3 wait", Starting, whole, play(), false},
		{"starting: step 1 starts, steps 2 and 3 wait, TERM has come", Starting, whole, play(sigTERM), false},
		{"starting: steps 2 and 3 start", Starting, whole, play(first), false},
		{"starting: step 3 starts, step 2 has failed", Starting, whole, play(first, stepEnds(1, false)), false},
		{"starting: step 3 starts, step 2 has failed, TERM has come", Starting, whole, play(first, stepEnds(1, false), sigTERM), false},
		{"starting: step 3, the last, starts, TERM has come", Starting, whole, play(first, second, sigTERM), false},
		{"starting: step 3, the last, was told to stop", Starting, whole, play(first, second, sigINT), false},
		{"starting: the workload starts, steps and companions have", Starting, whole, play(first, second, third), false},
		{"starting: the workload starts, steps and companions have, TERM has come", Starting, whole, play(first, second, third, sigTERM), false},
		{"starting", Starting, phased(), play(), false},
		{"starting, TERM has come", Starting, phased(), play(sigTERM), false},
		{"starting, announced", Starting, phased(), play(client(AskAnnounce, 7)), false},
		{"starting, a drain was asked for", Starting, phased(), play(asks(1)), false},
	}
}

// aloft brings a whole container up.
func aloft(moves ...any) func(*rig) {
	return func(r *rig) {
		play(stepEnds(0, true), stepEnds(1, true), stepEnds(2, true), started)(r)
		play(moves...)(r)
	}
}

// lives are those of a workload that runs and is told nothing, but for drains.
func lives() []situation {
	return []situation{
		{"running", Running, phased(), play(started), false},
		{"running, announced", Running, phased(), play(started, client(AskAnnounce, 7)), false},
		{"running, with steps and companions", Running, whole(), aloft(), false},
		{"running, companion 1 rests", Running, whole(), aloft(companionEnds(0)), false},
		{"announce", Announce, phased(), play(started, sigTERM), false},
		{"phases: phase 1 runs, the workload runs", Phases, phased(), play(started, sigTERM, 5*sec), false},
		{"phases: phase 1 runs, the workload has ended", Phases, phased(), play(started, sigTERM, exitSome), false},
		{"phases: phase 1 runs, the workload is gone", Phases, phased(), play(started, sigTERM, exitLast), false},
		{"phases: phase 2 was told to stop, the workload runs", Phases, phased(),
			play(started, sigTERM, 5*sec, phaseEnds(0, true), 10*sec), false},
		{"phases: phase 1 was interrupted, the workload has ended", Phases, phased(), play(started, sigTERM, exitSome, beyond, sigINT), false},
		{"phases: phase 1 was interrupted, the workload is gone", Phases, phased(), play(started, sigTERM, exitLast, beyond, sigINT), false},
		{"phases: phase 1 runs, the workload's rest has got KILL (drain timeout 2s)", Phases, hasty(), play(started, sigTERM, exitSome, 3*sec), false},
		{"phases: phase 1 runs, the workload ended by itself, no signal has come", Phases, phased(), play(started, exitSome), false},
		{"phases: phase 1 runs, there is no workload: TERM came while the last step started", Phases, whole(),
			play(stepEnds(0, true), stepEnds(1, true), sigTERM, stepEnds(2, true)), false},
	}
}

// hasty gives the workload 2 s.
func hasty() Config {
	in := roomy()
	in.DrainTimeout = set(2 * sec)
	return config(in, named("one", "two")...)
}

// drains are those that a client asked for.
func drains() []situation {
	ran := []any{started, asks(1), 5 * sec, phaseEnds(0, true), phaseEnds(1, true)}
	return []situation{
		{"announce: a client waits for the drain", Announce, phased(), play(started, asks(1)), false},
		{"announce: two clients wait for the drain", Announce, phased(), play(started, asks(1), asks(2)), false},
		{"announce: a client waits for the drain, announced before", Announce, phased(), play(started, client(AskAnnounce, 7), asks(1)), false},
		{"announce: a client waits for the drain, TERM has come", Announce, phased(), play(started, asks(1), sigTERM), false},
		{"phases: a client waits, phase 1 runs", Phases, phased(), play(started, asks(1), 5*sec), false},
		{"drained", Drained, phased(), play(ran...), false},
		{"drained, not all was well", Drained, phased(), play(started, asks(1), 5*sec, phaseEnds(0, false), phaseEnds(1, true)), false},
		{"drained, there is no phase", Drained, config(roomy()), play(started, asks(1), 5*sec), false},
	}
}

// loose has neither a grace period nor a drain timeout set.
func loose() Config { return config(assumed()) }

// gates are those of a workload that was told, or has ended.
func gates() []situation {
	ran := []any{started, sigTERM, 5 * sec, phaseEnds(0, true), phaseEnds(1, true)}
	killed := append(ran[:5:5], 20*sec)
	return []situation{
		{"gate: the workload runs", Gate, phased(), play(ran...), false},
		{"gate without an end: the workload runs (grace 10s assumed, no drain timeout)", Gate, loose(), play(started, sigTERM), false},
		{"gate: the workload has ended", Gate, phased(), play(started, sigTERM, exitSome, phaseEnds(0, true), phaseEnds(1, true)), false},
		{"gate: the workload ended by itself, no signal has come", Gate, loose(), play(started, exitSome), false},
		{"cancel: the workload runs", Cancel, phased(), play(killed...), false},
		{"cancel: the workload has ended", Cancel, loose(), play(started, exitSome, 10*sec), false},
	}
}

// teardowns are those behind the workload.
func teardowns() []situation {
	down := []any{sigTERM, 5 * sec, phaseEnds(0, true), phaseEnds(1, true), exitLast}
	stops := append(down[:5:5], companionEnds(0), companionEnds(1))
	in := long()
	in.Linger = set(3 * sec)
	lingers := withSteps(phased(), in, 0)
	return []situation{
		{"companions: both were told", Companions, whole(), aloft(down...), false},
		{"companions: companion 2 was told, the other has ended", Companions, whole(), aloft(append(down[:5:5], companionEnds(0))...), false},
		{"companions: both were told, the workload's start failed, no signal has come", Companions, whole(),
			play(stepEnds(0, true), stepEnds(1, true), stepEnds(2, true), failedStart(127)), false},
		{"companions: both were told, the workload's start was given up", Companions, whole(),
			play(stepEnds(0, true), stepEnds(1, true), stepEnds(2, true), sigTERM, 10*sec), false},
		{"lifecycle: steps 2 and 3 stop", Lifecycle, whole(), aloft(stops...), false},
		{"lifecycle: steps 2 and 3 were told to hurry", Lifecycle, whole(), aloft(append(stops[:7:7], 9*sec)...), false},
		{"lifecycle: step 2 has stopped, what its start left was told, step 3 stops", Lifecycle, whole(),
			aloft(append(stops[:7:7], stepLeaves(1, true))...), false},
		{"lifecycle: what step 1's start left was told", Lifecycle, whole(),
			aloft(append(stops[:7:7], stepEnds(1, true), stepEnds(2, true), stepLeaves(0, true))...), false},
		{"lifecycle: step 1 stops, step 2 has failed to start, no signal has come", Lifecycle, whole(),
			play(stepEnds(0, true), stepEnds(1, false), stepEnds(2, false)), false},
		{"linger (3s)", Linger, lingers, play(started, sigTERM, 5*sec, phaseEnds(0, true), phaseEnds(1, true), exitLast), false},
		{"linger, no signal has come", Linger, lingers, play(started, exitLast, phaseEnds(0, true), phaseEnds(1, true)), false},
		{"end", End, loose(), play(started, exitLast), false},
	}
}
