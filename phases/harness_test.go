package phases

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"drainit/budget"
)

const (
	term = int(syscall.SIGTERM)
	intr = int(syscall.SIGINT)
	quit = int(syscall.SIGQUIT)
	sec  = time.Second
	ms   = time.Millisecond
)

// set is a figure that somebody gave.
func set(d time.Duration) budget.Value { return budget.Value{D: d, Set: true} }

// config makes a machine's configuration out of figures and phases.
func config(in budget.Input, list ...Phase) Config {
	in.Phases = len(list)
	return Config{Plan: budget.Make(in), Phases: list, Term: term}
}

// roomy is a plan with every figure set and room to spare.
func roomy() budget.Input {
	return budget.Input{
		Grace: set(60 * sec), Announce: set(5 * sec), DrainBudget: set(10 * sec),
		DrainTimeout: set(20 * sec), Headroom: set(sec),
	}
}

// assumed is what docker gives when nothing is set.
func assumed() budget.Input {
	return budget.Input{
		Grace: budget.Value{D: 10 * sec}, DrainBudget: budget.Value{D: 10 * sec}, Headroom: budget.Value{D: sec},
	}
}

func named(names ...string) []Phase {
	var list []Phase
	for _, n := range names {
		list = append(list, Phase{Name: n})
	}
	return list
}

// The events by name.
var (
	started  = Event{Kind: Started}
	sigTERM  = Event{Kind: Stop, Signal: term}
	sigINT   = Event{Kind: Stop, Signal: intr, Interrupt: true}
	exitLast = Event{Kind: Exited, Status: 3, Last: true}
	exitSome = Event{Kind: Exited, Status: 3}
	allGone  = Event{Kind: Gone}
)

func phaseEnds(i int, ok bool) Event { return Event{Kind: PhaseEnded, Hook: i, OK: ok} }
func phaseRefused(i int) Event       { return Event{Kind: PhaseRefused, Hook: i} }
func failedStart(status int) Event   { return Event{Kind: StartFailed, Status: status} }

func stepEnds(i int, ok bool) Event   { return Event{Kind: StepEnded, Hook: i, OK: ok, Last: true} }
func stepLeaves(i int, ok bool) Event { return Event{Kind: StepEnded, Hook: i, OK: ok} }
func stepGone(i int) Event            { return Event{Kind: StepGone, Hook: i} }
func companionEnds(i int) Event       { return Event{Kind: CompanionEnded, Hook: i} }
func client(kind EventKind, n uint64) Event {
	return Event{Kind: kind, Client: n}
}

// withSteps adds steps, one a wave number, and companions, and makes the plan
// anew.
func withSteps(c Config, in budget.Input, companions int, waves ...int) Config {
	distinct := map[int]bool{}
	for i, w := range waves {
		c.Steps = append(c.Steps, Step{Name: fmt.Sprintf("step %d", i+1), Wave: w})
		distinct[w] = true
	}
	c.Companions, in.Companions, in.Waves, in.Phases = companions, companions, len(distinct), len(c.Phases)
	if in.StepTimeout == (budget.Value{}) {
		in.StepTimeout = budget.Value{D: budget.DefaultStepTimeout}
	}
	c.Plan = budget.Make(in)
	return c
}

// rig drives a machine in virtual time by its own deadlines.
type rig struct {
	t     *testing.T
	m     *Machine
	start time.Time
	now   time.Time
	ended time.Time
	lines []string // each effect with its time
	all   []Effect
}

// bare is one in which nothing has begun.
func bare(t *testing.T, c Config) *rig {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &rig{t: t, m: New(c), start: start, now: start}
}

// newRig begins the start. Where that is the workload's alone, nothing of it is
// told of.
func newRig(t *testing.T, c Config) *rig {
	r := bare(t, c)
	r.do(Event{Kind: Begin})
	if len(c.Steps) == 0 {
		r.lines, r.all = nil, nil
	}
	return r
}

// do passes events at the present time.
func (r *rig) do(events ...Event) []Effect {
	r.t.Helper()
	out := r.m.Step(r.now, events...)
	for _, e := range out {
		switch e.Kind {
		case Final:
			continue
		case Exit:
			r.ended = r.now
		}
		r.lines = append(r.lines, fmt.Sprintf("%v %s", r.now.Sub(r.start), describe(e)))
	}
	r.all = append(r.all, out...)
	if at, ok := r.m.Deadline(); ok && !at.After(r.now) {
		r.t.Fatalf("deadline %v is not after %v, and nothing was due", at.Sub(r.start), r.now.Sub(r.start))
	}
	return out
}

// pass lets time go by, waking the machine whenever it wants to be.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	until := r.now.Add(d)
	for {
		at, ok := r.m.Deadline()
		if !ok || at.After(until) {
			break
		}
		r.now = at
		r.do(Event{Kind: Tick})
	}
	r.now = until
}

// at passes time until that long after the start.
func (r *rig) at(d time.Duration, events ...Event) {
	r.t.Helper()
	r.pass(r.start.Add(d).Sub(r.now))
	r.do(events...)
}

// running starts the workload at 0.
func running(t *testing.T, c Config) *rig {
	t.Helper()
	r := newRig(t, c)
	r.do(started)
	r.lines = nil
	return r
}

// want compares all that happened since the workload ran, sweeps after the
// first left out.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	got := strings.Join(sweepsOnce(r.lines), "\n")
	if want := strings.Join(lines, "\n"); got != want {
		r.t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func sweepsOnce(lines []string) []string {
	var out []string
	swept := false
	for _, l := range lines {
		if strings.HasSuffix(l, " kill rest") {
			if swept {
				continue
			}
			swept = true
		}
		out = append(out, l)
	}
	return out
}

// count tells how often an effect was asked for.
func (r *rig) count(kind EffectKind) int {
	n := 0
	for _, e := range r.all {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// describe writes an effect as a person would say it.
func describe(e Effect) string {
	hook := fmt.Sprintf("%d", e.Hook+1)
	sig := map[int]string{term: "TERM", intr: "INT", quit: "QUIT"}[e.Signal]
	phase := fmt.Sprintf("phase %d", e.Hook+1)
	window := e.Window.String()
	if e.NoEnd {
		window = "no end"
	}
	switch e.Kind {
	case BeReady:
		return "ready"
	case Withdraw:
		return "withdraw"
	case Enter:
		if e.Stage == Running || e.Stage == End {
			return "enter " + e.Stage.String()
		}
		return "enter " + e.Stage.String() + " (" + window + ")"
	case StartPhase:
		return "start " + phase + " (" + window + ")"
	case TermPhase:
		return "TERM to " + phase
	case KillPhase:
		return "KILL to " + phase
	case PhaseDone:
		return fmt.Sprintf("%s %s (%v)", phase, e.Result, e.Took)
	case StartStep:
		return "start step " + hook + " (" + window + ")"
	case StopStep:
		return "stop step " + hook + " (" + window + ")"
	case TermStep:
		return "TERM to step " + hook
	case KillStep:
		return "KILL to step " + hook
	case TermLeft:
		return "TERM to what step " + hook + " left"
	case KillLeft:
		return "KILL to what step " + hook + " left"
	case StepStarted:
		return fmt.Sprintf("step %s started (%v)", hook, e.Took)
	case StepFailed:
		return fmt.Sprintf("step %s did not start: %s (%v)", hook, e.Result, e.Took)
	case StepStopped:
		return fmt.Sprintf("step %s stopped: %s (%v)", hook, e.Result, e.Took)
	case StartCompanion:
		return "start companion " + hook
	case CompanionRests:
		return fmt.Sprintf("companion %s rests after %v", hook, e.Took)
	case TermCompanion:
		return "TERM to companion " + hook
	case KillCompanion:
		return "KILL to companion " + hook
	case StartWorkload:
		return "start workload"
	case SayCancelled:
		return "say cancelled"
	case Reply:
		return fmt.Sprintf("reply %v to %d", e.Outcome, e.Client)
	case Share:
		return fmt.Sprintf("share with %d", e.Client)
	case Answer:
		return "answer " + e.Outcome.String()
	case Final:
		return "final"
	case Tell:
		return "tell " + sig
	case TellRest:
		return "tell rest " + sig
	case KillRest:
		return "kill rest"
	case SayIgnored:
		return "say ignored " + sig
	case SayJoined:
		return "say joined " + sig
	case SayHurried:
		return "say hurried " + sig + " in " + e.Stage.String()
	case SayAssumed:
		return "say assumed grace passed"
	case SayOverran:
		return "say overran " + e.Stage.String() + " (" + window + ")"
	case Exit:
		if e.Own {
			return fmt.Sprintf("exit %d, the workload's own", e.Status)
		}
		return fmt.Sprintf("exit %d", e.Status)
	}
	return fmt.Sprintf("effect %d", e.Kind)
}
