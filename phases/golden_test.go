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

// preface stands above the table.
const preface = `What the machine does: situation, event => next stage, effects. An event that a
situation does not list does nothing there.

Two phases, announce 5s, drain budget 10s, drain timeout 20s, grace 60s, unless it
says otherwise. Where there are steps: step 1, then steps 2 and 3 together, and two
companions; step timeout 10s, grace 90s.
`

// beyond is longer than the time in which two INTs count as one.
const beyond = debounce + 100*time.Millisecond

// happening is one event of the table, with what has to come before it.
type happening struct {
	name string
	kind EventKind
	do   func(*rig)
}

func one(name string, ev Event) happening {
	return happening{name, ev.Kind, func(r *rig) { r.do(ev) }}
}

func twice(name string, ev Event, apart time.Duration) happening {
	return happening{name, ev.Kind, func(r *rig) { r.do(ev); r.pass(apart); r.lines = nil; r.do(ev) }}
}

func happenings() []happening {
	all := []happening{
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
		one("everything is ready for the start", Event{Kind: Begin}),
		one("the workload is started", started),
		one("the workload can't be started", failedStart(127)),
		one("TERM", sigTERM),
		twice("TERM again", sigTERM, 10*ms),
		one("INT", sigINT),
		twice("INT again, at once", sigINT, 10*ms),
		twice("INT again, later", sigINT, beyond),
		one("the workload exits, the last", exitLast),
		one("the workload exits, some are left", exitSome),
		one("all are gone", allGone),
	}
	all = append(all, hookHappenings()...)
	return append(all,
		one("a client asks for announce", client(AskAnnounce, 9)),
		one("a client asks for drain", asks(9)),
		one("a client asks for undrain", client(AskUndrain, 9)),
		one("a client that waits leaves", client(ClientLeft, 1)),
		one("the final figures are read", Event{Kind: Scraped}),
	)
}

// hookHappenings are of the hook that runs, the first of several.
func hookHappenings() []happening {
	phase := func(name string, make func(int) Event) happening {
		return happening{name, make(0).Kind, func(r *rig) { r.do(make(r.m.phase.current)) }}
	}
	step := func(name string, make func(int) Event) happening {
		return happening{name, make(0).Kind, func(r *rig) { r.do(make(r.m.calledStep())) }}
	}
	return []happening{
		phase("the phase ends well", func(i int) Event { return phaseEnds(i, true) }),
		phase("the phase fails", func(i int) Event { return phaseEnds(i, false) }),
		phase("the phase can't be started", phaseRefused),
		one("another phase ends", phaseEnds(99, true)),
		step("the step ends well", func(i int) Event { return stepEnds(i, true) }),
		step("the step ends well, some are left", func(i int) Event { return stepLeaves(i, true) }),
		step("the step fails", func(i int) Event { return stepEnds(i, false) }),
		step("the step can't be called", func(i int) Event { return Event{Kind: StepRefused, Hook: i, Last: true} }),
		step("nothing is left of the step", stepGone),
		happeningIfAny("companion 1 ends", companionEnds(0)),
		happeningIfAny("companion 1 can't be started", Event{Kind: CompanionRefused}),
	}
}

// happeningIfAny is of a companion, where there is one.
func happeningIfAny(name string, ev Event) happening {
	return happening{name, ev.Kind, func(r *rig) {
		if len(r.m.companions) > 0 {
			r.do(ev)
		}
	}}
}

// calledStep is the first step whose call is under way or whose rest is waited
// for; the first where there is none.
func (m *Machine) calledStep() int {
	for i, s := range m.steps {
		if s.state != waiting && s.state != standing && s.state != broken && s.state != stopped {
			return i
		}
	}
	return 0
}

// TestTransitions holds every pair of situation and event to the golden file,
// which the documentation points to.
func TestTransitions(t *testing.T) {
	kinds, stages := map[EventKind]bool{}, map[Stage]bool{}
	var b strings.Builder
	b.WriteString(preface)
	for _, s := range situations() {
		stages[s.stage] = true
		fmt.Fprintf(&b, "\n%s\n", s.name)
		for _, h := range happenings() {
			kinds[h.kind] = true
			b.WriteString(transition(t, s, h))
		}
	}
	for k := Tick; k <= Scraped; k++ {
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

// transition writes one line, none where nothing comes of it.
func transition(t *testing.T, s situation, h happening) string {
	t.Helper()
	r := bare(t, s.config)
	if !s.unborn {
		r.do(Event{Kind: Begin})
	}
	s.reach(r)
	if r.m.Stage() != s.stage {
		t.Fatalf("%s: the stage is %v, want %v", s.name, r.m.Stage(), s.stage)
	}
	r.pass(min(beyond, r.room()/2))
	r.lines = nil
	if steps := strings.Contains(h.name, "step"); !steps || len(s.config.Steps) > 0 {
		h.do(r)
	}
	var effects []string
	for _, l := range r.lines {
		_, text, _ := strings.Cut(l, " ")
		effects = append(effects, text)
	}
	switch {
	case effects != nil:
	case r.m.Stage() == s.stage:
		return ""
	default:
		effects = []string{"-"}
	}
	return fmt.Sprintf("  %-35s => %-10s %s\n", h.name, r.m.Stage(), strings.Join(effects, ", "))
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
