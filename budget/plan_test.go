package budget

import (
	"slices"
	"testing"
	"time"
)

const (
	sec = time.Second
	ms  = time.Millisecond
)

func set(d time.Duration) Value      { return Value{D: d, Set: true} }
func fallback(d time.Duration) Value { return Value{D: d} }

// nobody is what a platform gives where nobody set anything.
func nobody(grace, announce time.Duration, phases int) Input {
	return Input{
		Grace: fallback(grace), Unlimited: grace == 0, Announce: fallback(announce),
		DrainBudget: fallback(DefaultDrainBudget), Headroom: fallback(DefaultHeadroom), Phases: phases,
	}
}

// all has every figure set (conformance 43): they add up to 40 s.
func all(grace time.Duration) Input {
	return Input{
		Grace: set(grace), Prestop: set(2 * sec), Announce: set(5 * sec), DrainBudget: set(10 * sec),
		DrainTimeout: set(20 * sec), Headroom: set(sec), Phases: 3,
	}
}

func with(in Input, change func(*Input)) Input {
	change(&in)
	return in
}

// figures in the order of the sum: prestop, announce, phases, unwind, gate,
// cancel, headroom.
type figures [7]time.Duration

// plans are the cases of TestMake.
var plans = []struct {
	name      string
	in        Input
	want      figures
	shortfall time.Duration
}{
	// 43, 47
	{"every figure set, fits", all(40 * sec), figures{2 * sec, 5 * sec, 10 * sec, sec, 20 * sec, sec, sec}, 0},
	{"every figure 0", Input{Grace: set(30 * sec), Prestop: set(0), Announce: set(0), DrainBudget: set(0),
		DrainTimeout: set(0), Headroom: set(0), Phases: 1}, figures{0, 0, 0, sec, 0, sec, 0}, 0},
	// 44
	{"51 s set, grace 30 s", with(all(30*sec), func(in *Input) {
		in.Prestop, in.DrainTimeout = set(3*sec), set(30*sec)
	}), figures{3 * sec, 5 * sec, 10 * sec, sec, 30 * sec, sec, sec}, 21 * sec},
	{"the same, not set", with(all(30*sec), func(in *Input) {
		in.Prestop, in.Announce, in.DrainBudget, in.DrainTimeout = set(3*sec), fallback(5*sec), fallback(10*sec), Value{}
	}), figures{3 * sec, 5 * sec, 9 * sec, sec, 10 * sec, sec, sec}, 0},

	{"kubernetes, no phase", nobody(30*sec, 5*sec, 0), figures{0, 5 * sec, 0, 0, 23 * sec, sec, sec}, 0},
	{"kubernetes, phases", nobody(30*sec, 5*sec, 2), figures{0, 5 * sec, 10 * sec, sec, 12 * sec, sec, sec}, 0},
	{"docker, no phase", nobody(10*sec, 0, 0), figures{0, 0, 0, 0, 8 * sec, sec, sec}, 0},
	{"docker, phases", nobody(10*sec, 0, 1), figures{0, 0, 1750 * ms, sec, 5250 * ms, sec, sec}, 0},
	{"fly, phases", nobody(5*sec, 0, 1), figures{0, 0, 500 * ms, sec, 1500 * ms, sec, sec}, 0},
	{"systemd, phases", nobody(90*sec, 0, 1), figures{0, 0, 10 * sec, sec, 77 * sec, sec, sec}, 0},
	{"none", nobody(0, 0, 1), figures{0, 0, 10 * sec, sec, 0, sec, sec}, 0},
	{"none, drain timeout set", with(nobody(0, 0, 0), func(in *Input) { in.DrainTimeout = set(7 * sec) }),
		figures{0, 0, 0, 0, 7 * sec, sec, sec}, 0},

	// in the order of giving way
	{"the gate gives way to its wish", with(nobody(25*sec, 2*sec, 1), func(in *Input) { in.Grace.Set = true }),
		figures{0, 2 * sec, 10 * sec, sec, 10 * sec, sec, sec}, 0},
	{"then the phases", nobody(20*sec, 2*sec, 1), figures{0, 2 * sec, 5 * sec, sec, 10 * sec, sec, sec}, 0},
	{"which keep a quarter of what both have", nobody(17*sec, 2*sec, 1), figures{0, 2 * sec, 3 * sec, sec, 9 * sec, sec, sec}, 0},
	{"then the gate below its wish", nobody(12*sec, 2*sec, 1), figures{0, 2 * sec, 1750 * ms, sec, 5250 * ms, sec, sec}, 0},
	{"to what the announcement has", nobody(6100*ms, 2*sec, 1), figures{0, 1500 * ms, Floor, sec, 1500 * ms, sec, sec}, 0},
	{"to its floor where that was set", with(nobody(5200*ms, 0, 1), func(in *Input) { in.Announce = set(2 * sec) }),
		figures{0, 2 * sec, Floor, sec, Floor, sec, sec}, 0},
	{"at last the announcement", nobody(3200*ms, 2*sec, 1), figures{0, 0, Floor, sec, Floor, sec, sec}, 0},
	{"and the headroom", nobody(3*sec, 2*sec, 1), figures{0, 0, Floor, sec, Floor, sec, 800 * ms}, 0},
	{"what has floors does not fit", nobody(2*sec, 2*sec, 1), figures{0, 0, Floor, sec, Floor, sec, Floor}, 300 * ms},
	{"a set headroom stays", with(nobody(3*sec, 2*sec, 1), func(in *Input) { in.Headroom = set(sec) }),
		figures{0, 0, Floor, sec, Floor, sec, sec}, 200 * ms},
	{"a set budget keeps the gate down", with(nobody(20*sec, 0, 1), func(in *Input) { in.DrainBudget = set(15 * sec) }),
		figures{0, 0, 15 * sec, sec, 2 * sec, sec, sec}, 0},
	{"a set budget without a phase counts nothing", with(nobody(20*sec, 0, 0), func(in *Input) { in.DrainBudget = set(15 * sec) }),
		figures{0, 0, 0, 0, 18 * sec, sec, sec}, 0},
	{"a set gate, the others give way", with(nobody(30*sec, 5*sec, 1), func(in *Input) { in.DrainTimeout = set(25 * sec) }),
		figures{0, 1900 * ms, Floor, sec, 25 * sec, sec, sec}, 0},
	{"a default below the floor stays", with(nobody(3*sec, 0, 1), func(in *Input) { in.DrainBudget = fallback(50 * ms) }),
		figures{0, 0, 50 * ms, sec, Floor, sec, 850 * ms}, 0},
	{"prestop longer than the grace period", with(all(10*sec), func(in *Input) { in.Prestop = set(20 * sec) }),
		figures{20 * sec, 5 * sec, 10 * sec, sec, 20 * sec, sec, sec}, 48 * sec},
	{"a grace period of 0", with(nobody(0, 0, 0), func(in *Input) { in.Grace, in.Unlimited = set(0), false }),
		figures{0, 0, 0, 0, Floor, sec, Floor}, 1200 * ms},
	{"a default of the gate is nobody's", with(nobody(30*sec, 0, 0), func(in *Input) { in.DrainTimeout = fallback(3 * sec) }),
		figures{0, 0, 0, 0, 28 * sec, sec, sec}, 0},
}

func TestMake(t *testing.T) {
	for _, c := range plans {
		t.Run(c.name, func(t *testing.T) {
			p := Make(c.in)
			var sum time.Duration
			for i, f := range without(p.Figures(), "companions", "waves", "linger") {
				if f.D != c.want[i] {
					t.Errorf("%s = %v, want %v", f.Name, f.D, c.want[i])
				}
				sum += f.D
			}
			if p.Sum() != sum {
				t.Errorf("sum %v, the figures' is %v", p.Sum(), sum)
			}
			if p.Shortfall() != c.shortfall {
				t.Errorf("shortfall %v, want %v", p.Shortfall(), c.shortfall)
			}
		})
	}
}

// without leaves figures out, which must be 0.
func without(all []Figure, names ...string) []Figure {
	return slices.DeleteFunc(all, func(f Figure) bool { return slices.Contains(names, f.Name) && f.D == 0 })
}

// stops has hooks of all kinds, and nothing set but what is said.
func stops(grace time.Duration, phases, companions, waves int) Input {
	in := nobody(grace, 5*sec, phases)
	in.StepTimeout, in.Companions, in.Waves = fallback(DefaultStepTimeout), companions, waves
	return in
}

// TestMakeStops: what the companions and the steps add, and how it gives way.
func TestMakeStops(t *testing.T) {
	for _, c := range []struct {
		name                          string
		in                            Input
		phases, gate, companions, all time.Duration // all: of the waves together
		announce, linger, shortfall   time.Duration
	}{
		{"room for all", stops(90*sec, 1, 2, 3), 10 * sec, 32 * sec, 10 * sec, 30 * sec, 5 * sec, 0, 0},
		{"many companions count once", stops(90*sec, 0, 9, 0), 0, 73 * sec, 10 * sec, 0, 5 * sec, 0, 0},
		{"they give way to the gate's wish", stops(25*sec, 0, 1, 0), 0, 10 * sec, 8 * sec, 0, 5 * sec, 0, 0},
		{"each kind keeps a quarter", with(stops(20*sec, 1, 0, 2), func(in *Input) { in.Announce.D = 0 }),
			4250 * ms, 8500 * ms, 0, 4250 * ms, 0, 0, 0},
		{"a set one stays", with(stops(30*sec, 1, 1, 0), func(in *Input) { in.StepTimeout = set(8 * sec) }),
			4 * sec, 10 * sec, 8 * sec, 0, 5 * sec, 0, 0},
		{"four steps of 10 s, grace 30 s", with(stops(30*sec, 0, 0, 4), func(in *Input) { in.StepTimeout = set(10 * sec) }),
			0, Floor, 0, 40 * sec, 0, 0, 11200 * ms},
		{"the floor is each one's", with(stops(30*sec, 0, 1, 2), func(in *Input) { in.DrainTimeout = set(40 * sec) }),
			0, 40 * sec, Floor, 2 * Floor, 0, 0, 12300 * ms},
		{"a linger is part of it", with(stops(30*sec, 0, 0, 0), func(in *Input) { in.Linger = set(3 * sec) }),
			0, 20 * sec, 0, 0, 5 * sec, 3 * sec, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Make(c.in)
			near := func(name string, got, want time.Duration) {
				if got < want-10 || got > want+10 { // nanoseconds that a division leaves
					t.Errorf("%s: %v, want %v", name, got, want)
				}
			}
			near("phases", p.Phases, c.phases)
			near("gate", p.Gate, c.gate)
			near("companions", p.Companions, c.companions)
			near("waves", p.waves(p.WaveCount), c.all)
			near("announce", p.Announce, c.announce)
			near("linger", p.Linger, c.linger)
			near("shortfall", p.Shortfall(), c.shortfall)
		})
	}
}

func TestFigureNames(t *testing.T) {
	want := []string{"prestop", "announce", "phases", "unwind", "drain_timeout", "kill", "companions", "waves", "linger", "headroom"}
	for i, f := range (Plan{}).Figures() {
		if f.Name != want[i] {
			t.Errorf("figure %d is %s, want %s", i, f.Name, want[i])
		}
	}
}

func TestDeadline(t *testing.T) {
	stop := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name           string
		in             Input
		after          time.Duration
		hard, presumed bool
	}{
		{"set", all(40 * sec), 37 * sec, true, false},
		{"assumed", nobody(10*sec, 0, 0), 9 * sec, false, true},
		{"none", nobody(0, 0, 0), 0, false, false},
		{"used up before the signal", with(all(2*sec), func(*Input) {}), 0, true, false},
	} {
		p := Make(c.in)
		at, ok := p.Deadline(stop)
		if ok != c.hard || (ok && at.Sub(stop) != c.after) {
			t.Errorf("%s: deadline %v, %v", c.name, at.Sub(stop), ok)
		}
		at, ok = p.Assumed(stop)
		if ok != c.presumed || (ok && at.Sub(stop) != c.after) {
			t.Errorf("%s: assumed %v, %v", c.name, at.Sub(stop), ok)
		}
	}
}

// TestPrestopDeadline: the grace period counts from the start of the drain that a
// preStop hook began.
func TestPrestopDeadline(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Make(with(all(20*sec), func(in *Input) { in.Headroom = set(0) }))
	for stop, want := range map[time.Duration]time.Duration{
		9 * sec: 20 * sec, 19 * sec: 20 * sec, 19500 * ms: 20500 * ms, 30 * sec: 31 * sec,
	} {
		at, ok := p.PrestopDeadline(began, began.Add(stop))
		if !ok || at.Sub(began) != want {
			t.Errorf("a stop after %v: %v, %v, want %v", stop, at.Sub(began), ok, want)
		}
	}
}

func TestGateEndless(t *testing.T) {
	for _, c := range []struct {
		grace, timeout, want bool
	}{{false, false, true}, {true, false, false}, {false, true, false}, {true, true, false}} {
		p := Make(Input{Grace: Value{10 * sec, c.grace}, DrainTimeout: Value{sec, c.timeout}})
		if p.GateEndless() != c.want {
			t.Errorf("grace set %v, timeout set %v: %v", c.grace, c.timeout, p.GateEndless())
		}
	}
	p := Make(stops(30*sec, 0, 1, 0))
	if p.GateEndless() {
		t.Error("a companion must be stopped afterwards")
	}
	if got := p.AssumedGateWindow(24 * sec); got != 24*sec-p.Cancel-p.Companions {
		t.Errorf("window %v", got)
	}
	if got := p.AssumedGateWindow(sec); got != GateWish {
		t.Errorf("window %v", got)
	}
	if p := Make(stops(0, 0, 1, 1)); !p.GateEndless() {
		t.Error("there is no grace period to save anything from")
	}
}
