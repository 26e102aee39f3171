package budget

import (
	"testing"
	"time"
)

// TestWindows: announce, phases, gate and cancel as they are when each stage
// before has used up its own.
func TestWindows(t *testing.T) {
	full := Make(all(40 * sec)) // 5 + 10 + 1 + 20 + 1 from the signal on
	for _, c := range []struct {
		name                           string
		left                           time.Duration
		announce, phases, gate, cancel time.Duration
	}{
		{"all fits", 37 * sec, 5 * sec, 10 * sec, 20 * sec, sec},
		{"no deadline", Unbounded, 5 * sec, 10 * sec, 20 * sec, sec},
		{"the announcement gives way first", 34 * sec, 2 * sec, 10 * sec, 20 * sec, sec},
		{"then the phases", 25 * sec, 0, 3 * sec, 20 * sec, sec},
		{"the workload keeps its window", 21 * sec, 0, 0, 20 * sec, 900 * ms},
		{"less where it has to", 15 * sec, 0, 0, 14 * sec, 900 * ms},
		{"half of very little", sec, 0, 0, 500 * ms, 400 * ms},
		{"nothing", 0, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			left := c.left
			use := func(name string, got, want time.Duration) {
				if got != want {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
				left -= got
			}
			use("announce", full.AnnounceWindow(left), c.announce)
			use("phases", full.PhasesWindow(left), c.phases)
			use("gate", full.GateWindow(left), c.gate)
			use("cancel", full.CancelWindow(min(left, c.left)), c.cancel)
		})
	}
}

// TestLeftoverWindow: the drain timeout, 10 s where nobody set it.
func TestLeftoverWindow(t *testing.T) {
	for _, c := range []struct {
		timeout    Value
		left, want time.Duration
	}{
		{Value{}, Unbounded, 10 * sec}, {Value{}, 30 * sec, 10 * sec}, {Value{}, 5 * sec, 4 * sec}, {Value{}, sec, 500 * ms},
		{set(0), Unbounded, 0}, {set(25 * sec), Unbounded, 25 * sec}, {set(25 * sec), 20 * sec, 19 * sec},
	} {
		p := Make(Input{Grace: set(30 * sec), DrainTimeout: c.timeout})
		if got := p.LeftoverWindow(c.left); got != c.want {
			t.Errorf("%v, %v left: %v, want %v", c.timeout, c.left, got, c.want)
		}
	}
}

// TestStartWindow: it does not hang on the drain timeout.
func TestStartWindow(t *testing.T) {
	p := Make(Input{Grace: set(30 * sec), DrainTimeout: set(0)})
	for left, want := range map[time.Duration]time.Duration{
		Unbounded: 10 * sec, 30 * sec: 10 * sec, 5 * sec: 4 * sec, sec: 500 * ms, 0: 0,
	} {
		if got := p.StartWindow(left); got != want {
			t.Errorf("%v left: %v, want %v", left, got, want)
		}
	}
}

// TestGateHasWhatIsLeft: where nobody set the drain timeout it is what the grace
// period leaves, so time that the stages before did not use is the workload's.
func TestGateHasWhatIsLeft(t *testing.T) {
	p := Make(Input{Grace: set(15 * sec), DrainBudget: fallback(10 * sec), Headroom: fallback(sec), Phases: 1})
	for left, want := range map[time.Duration]time.Duration{
		14 * sec: 13 * sec, 10 * sec: 9 * sec, Unbounded: p.Gate,
	} {
		if got := p.GateWindow(left); got != want {
			t.Errorf("%v left: %v, want %v", left, got, want)
		}
	}
	p = Make(Input{Grace: set(15 * sec), DrainTimeout: set(5 * sec)})
	if got := p.GateWindow(14 * sec); got != 5*sec {
		t.Errorf("a set one became %v", got)
	}
}

// TestLatePhases: an announcement that ended a little late costs no phase its
// last 100 ms.
func TestLatePhases(t *testing.T) {
	p := Make(Input{Grace: set(4200 * ms), DrainBudget: fallback(100 * ms), Headroom: fallback(sec), Announce: set(sec), Phases: 1})
	left := p.Grace - p.Headroom - p.Announce
	if got := p.PhasesWindow(left - 5*ms); got != p.Phases {
		t.Errorf("5ms late: %v of %v", got, p.Phases)
	}
}
