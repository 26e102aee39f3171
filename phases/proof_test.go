package phases

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"drainit/budget"
)

// containers is how many random ones are tried.
const containers = 25_000

// TestProof lives through random containers: any plan, steps, companions and
// clients, and processes that obey, fail, hang, ignore what they are told, leave
// others behind or survive KILL. What has to be true of every machine is, and the
// exit comes by the hard deadline.
func TestProof(t *testing.T) {
	visits := map[Stage]int{}
	for seed := range uint64(containers) {
		w := newWorld(seed)
		w.live()
		if w.broken != "" {
			t.Fatalf("%s\nrun %d, %+v\n%s", w.broken, seed, w.m.cfg, w.trace())
		}
		for s := range w.visited {
			visits[s]++
		}
	}
	t.Log(visits)
	for s := Running; s <= End; s++ {
		if visits[s] < containers/100 { // else it proves nothing about that
			t.Errorf("%v was reached by %d", s, visits[s])
		}
	}
}

// figure is of any size, often 0.
func figure(r *rand.Rand) time.Duration {
	switch r.IntN(5) {
	case 0:
		return 0
	case 1:
		return time.Duration(r.Int64N(int64(sec)))
	case 2:
		return time.Duration(r.Int64N(int64(time.Hour)))
	}
	return time.Duration(r.IntN(30)) * sec
}

func value(r *rand.Rand) budget.Value { return budget.Value{D: figure(r), Set: r.IntN(3) > 0} }

// anyConfig is one that could be asked for.
func anyConfig(r *rand.Rand) Config {
	in := budget.Input{
		Grace: value(r), Prestop: value(r), Announce: value(r), DrainBudget: value(r),
		DrainTimeout: value(r), StepTimeout: value(r), Linger: budget.Value{Set: true}, Headroom: value(r),
	}
	in.Unlimited = !in.Grace.Set && r.IntN(4) == 0
	if in.Grace.D *= 2; in.Unlimited {
		in.Grace.D = 0
	}
	if r.IntN(3) == 0 {
		in.Linger.D = figure(r)
	}
	c := Config{Term: term, Seed: r.Uint64(), Companions: r.IntN(mostCompanions + 1)}
	if r.IntN(6) == 0 {
		c.StartTimeout = figure(r)
	}
	for i := range r.IntN(4) {
		c.Phases = append(c.Phases, Phase{fmt.Sprint(i), figure(r) * time.Duration(r.IntN(2))})
	}
	wave := 0
	for i := range r.IntN(mostSteps + 1) {
		if wave += r.IntN(2); i == 0 || c.Steps[i-1].Wave != wave {
			in.Waves++
		}
		c.Steps = append(c.Steps, Step{fmt.Sprint(i), figure(r) * time.Duration(r.IntN(4)/3), wave})
	}
	in.Phases, in.Companions = len(c.Phases), c.Companions
	c.Plan = budget.Make(in)
	return c
}

// promise is what the stages behind the gate are owed, since it began.
type promise struct {
	made bool
	part float64 // of what each wants
}

// owe notes, when the workload is told, what the plan leaves for the rest: their
// windows, or in proportion what the gate does not need.
func (w *world) owe(window time.Duration) {
	p, left := w.m.cfg.Plan, w.m.left(w.now)
	if window < min(p.Gate, left/2) {
		w.fail("the gate has %v of %v, its window is %v", window, left, p.Gate)
	}
	rest := left - window
	all := p.Cancel + p.Companions + p.Wave*time.Duration(p.WaveCount) + p.Linger
	if most := max(left-all, min(p.Gate, left/2)); window > most {
		w.fail("the gate has %v of %v, and %v is wanted behind it", window, left, all)
	}
	rest -= min(budget.Last, rest/2)
	w.owed = promise{made: true, part: min(float64(rest)/float64(all), 1)}
}

// paid holds a later window against that.
func (w *world) paid(e Effect, window, want time.Duration) {
	if !w.owed.made {
		return
	}
	if least := time.Duration(w.owed.part*float64(want)) - time.Microsecond; window < least {
		w.fail("%s: %v was owed", describe(e), least)
	}
}

// keepsPhases tells, when the first stop signal is about to come while steps
// start, that there is time for them, for the phases behind them, and for the stops.
func (w *world) keepsPhases(ev Event) bool {
	p := w.m.cfg.Plan
	at, set := p.Deadline(w.now)
	if ev.Kind != Stop || w.stop != 0 || w.m.Stage() != Starting || w.work != absent || w.m.drain.budget.Set || !set {
		return w.phasesKept
	}
	return at.Sub(w.now) > 2*budget.Unwind+p.Phases+p.Wave*time.Duration(p.WaveCount)+p.Linger+budget.Last
}

// hold checks the windows of the phases behind such a start, and of the stages
// behind the gate.
func (w *world) hold(e Effect) {
	p := w.m.cfg.Plan
	switch {
	case e.Kind == Enter && e.Stage == Phases && w.work == absent:
		if w.phasesKept && e.Window < p.Phases {
			w.fail("%s: there was time for %v", describe(e), p.Phases)
		}
	case e.Kind == Enter && e.Stage == Gate && w.work == alive && !w.m.hard.IsZero():
		w.owe(e.Window)
	case e.Kind == Enter && e.Stage == Cancel:
		w.paid(e, e.Window, p.Cancel)
	case e.Kind == Enter && e.Stage == Companions:
		w.paid(e, e.Window, p.Companions)
	case e.Kind == Enter && e.Stage == Linger:
		w.paid(e, e.Window, p.Linger)
	case e.Kind == StopStep: // what it is told leaves a second, or half, for its end
		w.paid(e, e.Window+min(budget.Unwind, e.Window), p.Wave)
	}
}
