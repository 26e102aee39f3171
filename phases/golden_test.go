package phases

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const golden = "testdata/transitions.golden"

// situation is a point of the container's life and how it is reached.
type situation struct {
	name   string
	stage  Stage
	config Config
	reach  func(*rig)
}

// beyond is longer than the time in which two INTs count as one.
const beyond = debounce + 100*time.Millisecond

func situations() []situation {
	full := config(roomy(), named("one", "two")...)
	loose := config(assumed())
	short := roomy()
	short.DrainTimeout = set(2 * sec)
	hasty := config(short, named("one", "two")...)
	play := func(steps ...any) func(*rig) {
		return func(r *rig) {
			for _, s := range steps {
				switch s := s.(type) {
				case Event:
					r.do(s)
				case time.Duration:
					r.pass(s)
				}
			}
		}
	}
	return []situation{
		{"starting", Starting, full, play()},
		{"starting, TERM has come", Starting, full, play(sigTERM)},
		{"running", Running, full, play(started)},
		{"announce", Announce, full, play(started, sigTERM)},
		{"phases: phase 1 runs, the workload runs", Phases, full, play(started, sigTERM, 5*sec)},
		{"phases: phase 1 runs, the workload has ended", Phases, full, play(started, sigTERM, exitSome)},
		{"phases: phase 1 runs, the workload is gone", Phases, full, play(started, sigTERM, exitLast)},
		{"phases: phase 2 was told to stop, the workload runs", Phases, full, play(started, sigTERM, 5*sec, phaseEnds(0, true), 10*sec)},
		{"phases: phase 1 was interrupted, the workload has ended", Phases, full, play(started, sigTERM, exitSome, beyond, sigINT)},
		{"phases: phase 1 was interrupted, the workload is gone", Phases, full, play(started, sigTERM, exitLast, beyond, sigINT)},
		{"phases: phase 1 runs, the workload's rest has got KILL", Phases, hasty, play(started, sigTERM, exitSome, 3*sec)},
		{"phases: phase 1 runs, the workload ended by itself, no signal has come", Phases, full, play(started, exitSome)},
		{"gate: the workload runs", Gate, full, play(started, sigTERM, 5*sec, phaseEnds(0, true), phaseEnds(1, true))},
		{"gate without an end: the workload runs", Gate, loose, play(started, sigTERM)},
		{"gate: the workload has ended", Gate, full, play(started, sigTERM, exitSome, phaseEnds(0, true), phaseEnds(1, true))},
		{"gate: the workload ended by itself, no signal has come", Gate, loose, play(started, exitSome)},
		{"cancel: the workload runs", Cancel, full, play(started, sigTERM, 5*sec, phaseEnds(0, true), phaseEnds(1, true), 20*sec)},
		{"cancel: the workload has ended", Cancel, loose, play(started, exitSome, 10*sec)},
		{"end", End, loose, play(started, exitLast)},
	}
}

// happening is one event of the table, with what has to come before it.
type happening struct {
	name string
	kind EventKind
	do   func(*rig)
}

func happenings() []happening {
	one := func(name string, ev Event) happening {
		return happening{name, ev.Kind, func(r *rig) { r.do(ev) }}
	}
	twice := func(name string, ev Event, apart time.Duration) happening {
		return happening{name, ev.Kind, func(r *rig) { r.do(ev); r.pass(apart); r.lines = nil; r.do(ev) }}
	}
	running := func(name string, make func(int) Event) happening {
		return happening{name, make(0).Kind, func(r *rig) { r.do(make(r.m.phase.current)) }}
	}
	return []happening{
		one("nothing, time is left", Event{Kind: Tick}),
		{"the next deadline passes", Tick, func(r *rig) {
			if at, ok := r.m.Deadline(); ok {
				r.now = at
			}
			r.do(Event{Kind: Tick})
		}},
		{"the stage's window passes", Tick, func(r *rig) {
			if !r.m.end.IsZero() && r.m.Stage() != End {
				r.now = r.m.end
			}
			r.do(Event{Kind: Tick})
		}},
		one("the workload is started", started),
		one("the start fails", failedStart(127)),
		one("TERM", sigTERM),
		twice("TERM again", sigTERM, 10*ms),
		one("INT", sigINT),
		twice("INT again, at once", sigINT, 10*ms),
		twice("INT again, later", sigINT, beyond),
		one("the workload exits, the last", exitLast),
		one("the workload exits, some are left", exitSome),
		one("all are gone", allGone),
		running("the phase ends well", func(i int) Event { return phaseEnds(i, true) }),
		running("the phase fails", func(i int) Event { return phaseEnds(i, false) }),
		running("the phase can't be started", phaseRefused),
		one("another phase ends", phaseEnds(99, true)),
	}
}

// TestTransitions holds every pair of situation and event to the golden file,
// which the documentation includes.
func TestTransitions(t *testing.T) {
	kinds, stages := map[EventKind]bool{}, map[Stage]bool{}
	var b strings.Builder
	b.WriteString("What the machine does: situation, event, effects, next stage.\n" +
		"Two phases, announce 5s, drain budget 10s, drain timeout 20s, grace 60s, unless it says otherwise.\n")
	for _, s := range situations() {
		stages[s.stage] = true
		fmt.Fprintf(&b, "\n%s\n", s.name)
		for _, h := range happenings() {
			kinds[h.kind] = true
			b.WriteString(transition(t, s, h))
		}
	}
	for k := Tick; k <= PhaseRefused; k++ {
		if !kinds[k] {
			t.Errorf("no event of kind %d", k)
		}
	}
	for s := range Stages() {
		if !stages[Stage(s)] {
			t.Errorf("no situation in %v", Stage(s))
		}
	}
	compare(t, b.String())
}

// transition writes one line.
func transition(t *testing.T, s situation, h happening) string {
	t.Helper()
	r := newRig(t, s.config)
	s.reach(r)
	if r.m.Stage() != s.stage {
		t.Fatalf("%s: the stage is %v, want %v", s.name, r.m.Stage(), s.stage)
	}
	r.pass(min(beyond, r.room()/2))
	r.lines = nil
	h.do(r)
	var effects []string
	for _, l := range r.lines {
		_, text, _ := strings.Cut(l, " ")
		effects = append(effects, text)
	}
	if effects == nil {
		effects = []string{"-"}
	}
	return fmt.Sprintf("  %-34s => %-10s %s\n", h.name, r.m.Stage(), strings.Join(effects, ", "))
}

// room is the time to the deadline.
func (r *rig) room() time.Duration {
	if at, ok := r.m.Deadline(); ok {
		return at.Sub(r.now)
	}
	return time.Hour
}

func compare(t *testing.T, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("%s:%d (rewrite it with -update):\ngot  %s\nwant %s", golden, i+1, gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d lines, %s has %d (rewrite it with -update)", len(gotLines), golden, len(wantLines))
	}
}
