package budget

import (
	"math/rand/v2"
	"testing"
	"time"
)

// longest is what a setting may be at the most (config refuses more).
const longest = 366 * 24 * time.Hour

// FuzzMake holds a plan, and the windows that come of it, against what has to be
// true of every one.
func FuzzMake(f *testing.F) {
	f.Add(int64(30*sec), int64(0), int64(5*sec), int64(10*sec), int64(0), int64(sec), int64(29*sec), int64(10*sec), int64(0), uint16(0x1240))
	f.Fuzz(func(t *testing.T, grace, prestop, announce, drain, gate, headroom, left, step, linger int64, bits uint16) {
		d := [9]int64{grace, prestop, announce, drain, gate, headroom, left, step, linger}
		for _, d := range d {
			if d < 0 || d > int64(longest) {
				t.Skip()
			}
		}
		holds(t, d, bits)
	})
}

// TestProperties does the same with random figures of every size.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var d [9]int64
		for i := range d {
			d[i] = figure(r)
		}
		bits := uint16(r.Uint32())
		if holds(t, d, bits); t.Failed() {
			t.Fatalf("figures %v, bits %016b", d, bits)
		}
	}
}

// holds: d are grace, prestop, announce, drain budget, drain timeout, headroom,
// what is left, step timeout and linger; a bit each of the first six says that it
// was set, the next that there are phases, then that there is no grace period,
// that the step timeout was set and that there is a companion; the last are how
// many waves there are.
func holds(t *testing.T, d [9]int64, bits uint16) {
	value := func(i int) Value { return Value{time.Duration(d[i]), bits>>i&1 == 1} }
	in := Input{
		Grace: value(0), Prestop: value(1), Announce: value(2),
		DrainBudget: value(3), DrainTimeout: value(4), Headroom: value(5),
		Phases: int(bits >> 6 & 1), Unlimited: bits>>7&1 == 1 && bits&1 == 0,
		StepTimeout: Value{time.Duration(d[7]), bits>>8&1 == 1}, Companions: int(bits >> 9 & 1), Waves: int(bits >> 10 & 7),
		Linger: set(time.Duration(d[8])),
	}
	p := Make(in)
	holdsPlan(t, in, p)
	holdsGiving(t, in, p)
	holdsWindows(t, p, time.Duration(d[6]))
	holdsWindows(t, p, Unbounded)
}

// figure is of any size: 0, a few nanoseconds, seconds, a year.
func figure(r *rand.Rand) int64 {
	switch r.IntN(4) {
	case 0:
		return 0
	case 1:
		return r.Int64N(int64(sec))
	case 2:
		return r.Int64N(60) * int64(sec)
	}
	return r.Int64N(int64(longest))
}

func holdsPlan(t *testing.T, in Input, p Plan) {
	var sum time.Duration
	for _, f := range p.Figures() {
		if f.D < 0 {
			t.Errorf("%s is %v", f.Name, f.D)
		}
		if sum += f.D; sum < 0 {
			t.Errorf("the sum overflows at %s", f.Name)
		}
	}
	if sum != p.Sum() {
		t.Errorf("sum %v, the figures' is %v", p.Sum(), sum)
	}
	if !in.Unlimited && p.Shortfall() != max(sum-in.Grace.D, 0) || in.Unlimited && p.Shortfall() != 0 {
		t.Errorf("shortfall %v of %v - %v", p.Shortfall(), sum, in.Grace.D)
	}
	for _, f := range []struct {
		name      string
		got, from time.Duration
		set       bool
	}{
		{"prestop", p.Prestop, in.Prestop.D, true}, {"headroom", p.Headroom, in.Headroom.D, in.Headroom.Set || p.GateSet},
		{"announce", p.Announce, in.Announce.D, in.Announce.Set},
		{"drain_timeout", p.Gate, in.DrainTimeout.D, in.DrainTimeout.Set},
		{"phases", p.Phases, in.DrainBudget.D, in.DrainBudget.Set && in.Phases > 0},
		{"phases", p.Phases, 0, in.Phases == 0}, {"unwind", p.Unwind, 0, in.Phases == 0},
		{"companions", p.Companions, 0, in.Companions == 0}, {"wave", p.Wave, 0, in.Waves == 0},
		{"companions", p.Companions, in.StepTimeout.D, in.Companions > 0 && in.StepTimeout.Set},
		{"wave", p.Wave, in.StepTimeout.D, in.Waves > 0 && in.StepTimeout.Set},
		{"linger", p.Linger, in.Linger.D, true},
	} {
		if f.set && f.got != f.from {
			t.Errorf("%s was set to %v and is %v", f.name, f.from, f.got)
		}
	}
}

// holdsGiving: nothing gives way without need, a set figure never does, and who
// gave way only stops at the floor.
func holdsGiving(t *testing.T, in Input, p Plan) {
	if in.Unlimited {
		return
	}
	if p.Announce > in.Announce.D || p.Phases > in.DrainBudget.D {
		t.Errorf("announce %v of %v, phases %v of %v", p.Announce, in.Announce.D, p.Phases, in.DrainBudget.D)
	}
	if p.Shortfall() > 0 {
		if !in.DrainTimeout.Set && p.Gate > Floor || !in.Announce.Set && p.Announce > 0 ||
			!in.DrainBudget.Set && p.Phases > Floor || !in.StepTimeout.Set && max(p.Companions, p.Wave) > Floor {
			t.Errorf("short by %v, and there was something to give: %+v", p.Shortfall(), p)
		}
	}
	if !in.DrainTimeout.Set && p.Gate < GateWish-20-p.Grace>>40 && p.Shortfall() == 0 {
		if p.Grace-p.Sum() > 20+p.Grace>>40 {
			t.Errorf("the gate has %v, and %v of %v are used", p.Gate, p.Sum(), p.Grace)
		}
		// some nanoseconds are lost where a quarter is no whole number of them
		both := p.Gate
		for _, w := range p.work(in) {
			both += w.all()
		}
		for _, w := range p.work(in) {
			n := time.Duration(w.times)
			if w.d > max(Floor, both/4/n+20+both>>40) {
				t.Errorf("the gate has %v, %d hooks have %v each", p.Gate, n, w.d)
			}
		}
		if !in.Announce.Set && p.Announce > p.Gate+1 {
			t.Errorf("the gate has %v, the announcement %v", p.Gate, p.Announce)
		}
	}
}

// holdsWindows goes through a shutdown that uses every window to its end.
func holdsWindows(t *testing.T, p Plan, left time.Duration) {
	take := func(name string, window, want time.Duration) {
		if window < 0 || window > want {
			t.Errorf("%s: window %v of %v", name, window, want)
		}
		if left -= window; left < 0 {
			t.Errorf("%s overdraws by %v: %+v", name, -left, p)
		}
	}
	whole := left
	take("announce", p.AnnounceWindow(left), p.Announce)
	take("phases", p.PhasesWindow(left), p.Phases)
	take("unwind", p.UnwindWindow(left), p.Unwind)
	atGate, gate, most := left, p.GateWindow(left), p.Gate
	if p.GraceSet && !p.GateSet && whole < Unbounded {
		most = max(most, atGate-p.afterGate()) // all that is left
	}
	if whole == Unbounded {
		gate = p.GateWindow(Unbounded) // as the machine asks
	}
	if gate < min(p.Gate, atGate/2) {
		t.Errorf("the gate has %v of %v, its window is %v", gate, atGate, p.Gate)
	}
	take("gate", gate, most)
	if fits := whole >= p.Announce+p.Phases+p.Unwind+p.fromGate(); fits && gate < p.Gate-min(p.Gate, Last)/2 {
		// it bears what the phases are late
		t.Errorf("it fits, and the gate has %v of %v", gate, p.Gate)
	}
	cancel := p.CancelWindow(left)
	take("cancel", cancel, p.Cancel)
	if cancel < p.Cancel && left+1 < min(Last, cancel) {
		t.Errorf("%v is left for the end behind a cancel of %v", left, cancel)
	}
	take("companions", p.CompanionsWindow(left), p.Companions)
	for i := range p.WaveCount {
		take("wave", p.WaveWindow(left, p.WaveCount-i), p.Wave)
	}
	take("linger", p.LingerWindow(left), p.Linger)
	for _, window := range []time.Duration{p.LeftoverWindow(whole), p.StartWindow(whole)} {
		if window < 0 || window > whole {
			t.Errorf("window %v of %v", window, whole)
		}
	}
}
