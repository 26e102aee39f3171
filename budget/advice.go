package budget

import "time"

// Advice is the one figure to change where a plan does not fit.
type Advice struct {
	Figure   string // as in Figures, or grace
	Flag     string // that sets it, without dashes
	From, To time.Duration
}

// Advise says which single setting, shrunk, makes the plan of in fit, and to what:
// the longest of those that suffice alone, so far that the workload has GateWish
// where that can be had. Shrinking what is to be done beats a
// longer grace period, since the orchestrator waits for nobody while a node goes
// away; only where no single figure suffices it is the grace period that has to
// grow. False: the plan fits.
func Advise(in Input) (Advice, bool) {
	p := Make(in)
	short := p.Shortfall()
	if short == 0 {
		return Advice{}, false
	}
	best := Advice{Figure: "grace", Flag: "grace-period", From: p.Grace, To: p.Sum()}
	best.To += p.lost()
	var most time.Duration
	for _, s := range settings(in) {
		if s.times == 0 || !s.value.Set {
			continue
		}
		n := time.Duration(s.times)
		all := s.value.D * n
		for _, more := range [...]time.Duration{p.lost(), 0} {
			if to := s.value.D - (short+more+n-1)/n; to >= s.floor && all > most {
				most = all
				best = Advice{Figure: s.figure, Flag: s.flag, From: s.value.D, To: to}
			}
		}
	}
	return best, true
}

// lost is what the workload lacks of its wish, where nobody set its window: a
// plan that leaves it the floor fits, but who is advised should have more.
func (p Plan) lost() time.Duration {
	if p.GateSet {
		return 0
	}
	return GateWish - min(p.Gate, GateWish)
}

// settable is a figure that somebody may set.
type settable struct {
	figure, flag string
	value        Value
	times        int // how often it counts
	floor        time.Duration
}

func settings(in Input) []settable {
	steps := "companions"
	if in.Waves > 0 {
		steps = "waves"
	}
	return []settable{
		{"drain_timeout", "drain-timeout", in.DrainTimeout, 1, Floor},
		{"phases", "drain-budget", in.DrainBudget, min(in.Phases, 1), Floor},
		{steps, "step-timeout", in.StepTimeout, in.stops(), Floor},
		{"announce", "announce-delay", in.Announce, 1, 0},
		{"linger", "linger", in.Linger, 1, 0},
		{"prestop", "prestop", in.Prestop, 1, 0},
	}
}
