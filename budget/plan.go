// Package budget adds up what a shutdown may take, figure by figure, fits the
// sum into the orchestrator's grace period, and divides what is left at run
// time. It is pure, and does not know what a stage does.
package budget

import "time"

// Defaults, floors and fixed figures.
const (
	DefaultDrainBudget = 10 * time.Second // shared by all phases
	DefaultHeadroom    = time.Second      // kept free before the grace period ends
	// Unwind is what a hook gets between being told to stop and being killed.
	Unwind = time.Second
	// Cancel is how long the init waits for what it has killed.
	Cancel = time.Second
	// GateWish is what the workload keeps, where it can be had, before the
	// figures that nobody set begin to shrink.
	GateWish = 10 * time.Second
	// Floor is the least that a shrinking figure is left with.
	Floor = 100 * time.Millisecond
)

// Value is a duration that somebody set, or a default.
type Value struct {
	D   time.Duration
	Set bool
}

// Input is what a plan is made of. Durations are not negative.
type Input struct {
	// Grace is the time from the stop signal to the orchestrator's KILL; not
	// Set means that it is assumed. Unlimited (then D is 0): no orchestrator.
	Grace     Value
	Unlimited bool

	Prestop      Value
	Announce     Value
	DrainBudget  Value
	DrainTimeout Value // not Set: what the others leave
	Headroom     Value

	// Phases is how many phases there are to run: without one the stage counts
	// nothing.
	Phases int
}

// Plan is the worst case of a shutdown. Every figure is final: what nobody set
// has already given way.
type Plan struct {
	Prestop, Announce, Phases, Unwind, Gate, Cancel, Headroom time.Duration

	Grace    time.Duration // 0 when Unlimited
	GraceSet bool          // somebody declared it: the hard deadline holds
	// Unlimited: no grace period is known at all.
	Unlimited bool
	// GateSet: somebody declared the drain timeout.
	GateSet bool
}

// Figure is one line of the sum.
type Figure struct {
	Name string // as in the log, the metrics and the documentation
	D    time.Duration
}

// Make computes the plan. Figures that nobody set give way, quietly and in
// this order: the gate down to GateWish, the phases' budget down to a quarter of
// what the two have, the gate down to what the announcement would have (half of
// what those two have left) or, where somebody set that, down to Floor, the
// phases' budget down to Floor, the announcement down to nothing, and where
// nobody set the gate either, the headroom down to Floor.
func Make(in Input) Plan {
	p := Plan{
		Prestop: in.Prestop.D, Announce: in.Announce.D, Cancel: Cancel, Headroom: in.Headroom.D,
		Grace: in.Grace.D, GraceSet: in.Grace.Set,
		Unlimited: in.Unlimited, GateSet: in.DrainTimeout.Set,
	}
	if p.GateSet {
		p.Gate = in.DrainTimeout.D
	}
	if in.Phases > 0 {
		p.Phases, p.Unwind = in.DrainBudget.D, Unwind
	}
	if in.Unlimited {
		return p
	}
	flexible := in.Phases > 0 && !in.DrainBudget.Set
	if !p.GateSet {
		p.Gate = max(p.Grace-p.Sum(), GateWish)
	}
	if flexible {
		p.Phases = shrink(p.Phases, p.Shortfall(), p.share(in))
	}
	if !p.GateSet {
		least := Floor
		if !in.Announce.Set {
			give := time.Duration(0) // what the phases could still give
			if flexible {
				give = max(p.Phases-Floor, 0)
			}
			least = max(Floor, (p.Gate+p.Announce-p.Shortfall()+give)/2)
		}
		p.Gate = shrink(p.Gate, p.Shortfall(), least)
	}
	if flexible {
		p.Phases = shrink(p.Phases, p.Shortfall(), Floor)
	}
	if !in.Announce.Set {
		p.Announce = shrink(p.Announce, p.Shortfall(), 0)
	}
	if !in.Headroom.Set && !p.GateSet {
		p.Headroom = shrink(p.Headroom, p.Shortfall(), Floor)
	}
	return p
}

// share is what the phases keep of what they and the gate have, before the gate
// shrinks below its wish: hooks that are given nothing hand nothing over.
func (p Plan) share(in Input) time.Duration {
	if p.GateSet {
		return Floor
	}
	both := p.Phases + p.Gate - p.Shortfall()
	return max(both/4, Floor)
}

// shrink takes by off d, but leaves at least floor, or d where that is less.
func shrink(d, by, floor time.Duration) time.Duration {
	return min(d, max(d-by, floor))
}

// Figures returns every figure of the sum in the order of the shutdown, those
// of 0 too.
func (p Plan) Figures() []Figure {
	return []Figure{
		{"prestop", p.Prestop},
		{"announce", p.Announce},
		{"phases", p.Phases},
		{"unwind", p.Unwind},
		{"drain_timeout", p.Gate},
		{"kill", p.Cancel},
		{"headroom", p.Headroom},
	}
}

// Sum is what the shutdown takes at the worst, prestop and headroom included.
// It says nothing where GateEndless holds.
func (p Plan) Sum() time.Duration {
	return p.Prestop + p.Announce + p.Phases + p.Unwind + p.Gate + p.Cancel + p.Headroom
}

// Shortfall is by how much the sum is longer than the grace period; 0 when it
// fits or when there is none.
func (p Plan) Shortfall() time.Duration {
	if p.Unlimited {
		return 0
	}
	return max(p.Sum()-p.Grace, 0)
}

// GateEndless tells that stage 3 has no end of its own: neither the grace
// period nor the drain timeout was set, and an assumption kills nobody.
func (p Plan) GateEndless() bool { return !p.GraceSet && !p.GateSet }

// Deadline is the time by which the init is gone when the stop signal arrived
// at stop; false where the grace period was not set.
func (p Plan) Deadline(stop time.Time) (time.Time, bool) {
	return p.end(stop), p.GraceSet
}

// Assumed is the same for an assumed grace period, which costs nobody anything
// but a warning; false where there is none.
func (p Plan) Assumed(stop time.Time) (time.Time, bool) {
	return p.end(stop), !p.GraceSet && !p.Unlimited
}

// end never lies before the stop signal itself.
func (p Plan) end(stop time.Time) time.Time {
	return stop.Add(max(p.Grace-p.Prestop-p.Headroom, 0))
}
