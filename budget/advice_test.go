package budget

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		name string
		in   Input
		want Advice
	}{
		{"the longest one", with(all(30*sec), func(in *Input) { in.DrainTimeout = set(30 * sec) }),
			Advice{"drain_timeout", "drain-timeout", 30 * sec, 10 * sec}},
		{"one that suffices", with(all(30*sec), func(in *Input) { in.DrainTimeout = Value{} }),
			Advice{}},
		{"a step timeout counts for each wave", with(stops(30*sec, 0, 1, 3), func(in *Input) { in.StepTimeout = set(10 * sec) }),
			Advice{"waves", "step-timeout", 10 * sec, 4725 * ms}},
		{"not what counts nothing", with(all(30*sec), func(in *Input) { in.Phases, in.DrainBudget = 0, set(60*sec) }),
			Advice{}},
		{"no single one suffices", with(all(5*sec), func(in *Input) { in.Headroom = set(5 * sec) }),
			Advice{"grace", "grace-period", 5 * sec, 44 * sec}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, short := Advise(c.in)
			if got != c.want || short != (c.want != Advice{}) {
				t.Errorf("%+v, %v; want %+v", got, short, c.want)
			}
		})
	}
}

// TestAdviceHolds: who follows it has a plan that fits.
func TestAdviceHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	given := 0
	for range 50_000 {
		value := func() Value { return Value{time.Duration(figure(r)), r.IntN(2) == 0} }
		in := Input{
			Grace: value(), Prestop: value(), Announce: value(), DrainBudget: value(), DrainTimeout: value(),
			StepTimeout: value(), Linger: value(), Headroom: value(), Phases: r.IntN(2), Companions: r.IntN(2), Waves: r.IntN(4),
		}
		a, short := Advise(in)
		if !short {
			continue
		}
		given++
		shrunk := map[string]*Value{
			"grace-period": &in.Grace, "drain-timeout": &in.DrainTimeout, "drain-budget": &in.DrainBudget,
			"step-timeout": &in.StepTimeout, "announce-delay": &in.Announce, "linger": &in.Linger, "prestop": &in.Prestop,
		}
		before := in
		*shrunk[a.Flag] = set(a.To)
		if left := Make(in).Shortfall(); left > 0 {
			t.Fatalf("%+v leaves %v short of %+v", a, left, before)
		}
	}
	if given < 1000 {
		t.Errorf("only %d cases", given)
	}
}
