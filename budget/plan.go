// Package budget adds up what a shutdown may take, figure by figure, fits the
// sum into the orchestrator's grace period, and divides what is left at run
// time. It is pure, and does not know what a stage does.
package budget

import "time"

// Defaults, floors and fixed figures.
const (
	DefaultDrainBudget = 10 * time.Second // shared by all phases
	DefaultStepTimeout = 10 * time.Second // of the companions together, and of each wave of lifecycle stops
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
	StepTimeout  Value // of the companions together, and of each wave
	Linger       Value
	Headroom     Value

	// Phases, Companions and Waves are how many of each there are: what there is
	// nothing of counts nothing.
	Phases, Companions, Waves int
}

// stops is how often the step timeout counts.
func (in Input) stops() int { return min(in.Companions, 1) + in.Waves }

// Plan is the worst case of a shutdown. Every figure is final: what nobody set
// has already given way.
type Plan struct {
	Prestop, Announce, Phases, Unwind, Gate, Cancel time.Duration
	Companions                                      time.Duration // of all together
	Wave                                            time.Duration // of one
	WaveCount                                       int
	Linger, Headroom                                time.Duration

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
// this order: the gate down to GateWish; the phases' budget and the step timeout,
// in proportion, each down to a quarter of what they and the gate have; the gate
// down to what the announcement would have (half of what those two have left) or,
// where somebody set that, down to Floor; the phases' budget and the step timeout
// down to Floor; the announcement down to nothing; and where nobody set the gate
// either, the headroom down to Floor.
func Make(in Input) Plan {
	p := Plan{
		Prestop: in.Prestop.D, Announce: in.Announce.D, Cancel: Cancel,
		WaveCount: in.Waves, Linger: in.Linger.D, Headroom: in.Headroom.D,
		Grace: in.Grace.D, GraceSet: in.Grace.Set,
		Unlimited: in.Unlimited, GateSet: in.DrainTimeout.Set,
	}
	if p.GateSet {
		p.Gate = in.DrainTimeout.D
	}
	if in.Phases > 0 {
		p.Phases, p.Unwind = in.DrainBudget.D, Unwind
	}
	p.setStep(in, in.StepTimeout.D)
	if !in.Unlimited {
		p.fit(in)
	}
	return p
}

// setStep sets the step timeout where there is something that it bounds.
func (p *Plan) setStep(in Input, d time.Duration) {
	if in.Companions > 0 {
		p.Companions = d
	}
	if in.Waves > 0 {
		p.Wave = d
	}
}

// fit shrinks what nobody set.
func (p *Plan) fit(in Input) {
	if !p.GateSet {
		p.Gate = max(p.Grace-p.Sum(), GateWish)
	}
	p.shrinkWork(in, p.share(in))
	if !p.GateSet {
		least := Floor
		if !in.Announce.Set {
			least = max(Floor, (p.Gate+p.Announce-p.Shortfall()+p.spare(in))/2)
		}
		p.Gate = shrink(p.Gate, p.Shortfall(), least)
	}
	p.shrinkWork(in, Floor)
	if !in.Announce.Set {
		p.Announce = shrink(p.Announce, p.Shortfall(), 0)
	}
	if !in.Headroom.Set && !p.GateSet {
		p.Headroom = shrink(p.Headroom, p.Shortfall(), Floor)
	}
}

// work is what hooks have and nobody set: a figure, and how often it counts.
type work struct {
	d     time.Duration
	times int
	set   func(time.Duration)
}

// work lists it.
func (p *Plan) work(in Input) []work {
	var all []work
	if in.Phases > 0 && !in.DrainBudget.Set {
		all = append(all, work{p.Phases, 1, func(d time.Duration) { p.Phases = d }})
	}
	if n := in.stops(); n > 0 && !in.StepTimeout.Set {
		all = append(all, work{max(p.Companions, p.Wave), n, func(d time.Duration) { p.setStep(in, d) }})
	}
	return all
}

// all is what w has in all its times together.
func (w work) all() time.Duration { return w.d * time.Duration(w.times) }

// over is what it has beyond a floor of that.
func (w work) over(floor time.Duration) time.Duration {
	return max(w.all()-w.floor(floor)*time.Duration(w.times), 0)
}

// floor is the least of one time.
func (w work) floor(all time.Duration) time.Duration {
	return max(all/time.Duration(w.times), Floor)
}

// shrinkWork takes the shortfall off what hooks have and nobody set, each in
// proportion to what it has beyond its floor.
func (p *Plan) shrinkWork(in Input, floor time.Duration) {
	all, short := p.work(in), p.Shortfall()
	var have time.Duration
	for _, w := range all {
		have += w.over(floor)
	}
	if have == 0 || short == 0 {
		return
	}
	part, rest := min(float64(short)/float64(have), 1), short
	for i, w := range all {
		give := min(time.Duration(float64(w.over(floor))*part), rest)
		if i == len(all)-1 {
			give = rest
		}
		rest -= give
		n := time.Duration(w.times)
		w.set(shrink(w.d, (give+n-1)/n, w.floor(floor)))
	}
}

// share is what each kind of hooks keeps of what they and the gate have, before
// the gate shrinks below its wish: hooks that are given nothing hand nothing
// over.
func (p *Plan) share(in Input) time.Duration {
	if p.GateSet {
		return Floor
	}
	all := p.Gate - p.Shortfall()
	for _, w := range p.work(in) {
		all += w.all()
	}
	return max(all/4, Floor)
}

// spare is what the hooks could still give.
func (p *Plan) spare(in Input) time.Duration {
	var all time.Duration
	for _, w := range p.work(in) {
		all += w.over(Floor)
	}
	return all
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
		{"companions", p.Companions},
		{"waves", p.waves(p.WaveCount)},
		{"linger", p.Linger},
		{"headroom", p.Headroom},
	}
}

// Sum is what the shutdown takes at the worst, prestop and headroom included.
// It says nothing where GateEndless holds.
func (p Plan) Sum() time.Duration {
	return p.Prestop + p.Announce + p.Phases + p.Unwind + p.fromGate() + p.Headroom
}

// waves is what n waves of stops may take.
func (p Plan) waves(n int) time.Duration { return p.Wave * time.Duration(n) }

// Shortfall is by how much the sum is longer than the grace period; 0 when it
// fits or when there is none.
func (p Plan) Shortfall() time.Duration {
	if p.Unlimited {
		return 0
	}
	return max(p.Sum()-p.Grace, 0)
}

// GateEndless tells that stage 3 has no end of its own: neither the grace
// period nor the drain timeout was set, an assumption kills nobody, and nothing
// that must be stopped comes behind (or there is no grace period to save it
// from).
func (p Plan) GateEndless() bool {
	return !p.GraceSet && !p.GateSet && (p.Unlimited || p.Companions == 0 && p.WaveCount == 0)
}

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

// PrestopDeadline is Deadline where a preStop hook began the drain: the grace
// period counts from there, since the orchestrator counts it from the hook's
// start (Kubernetes: Pod Lifecycle, Termination of Pods). At least a second is
// left after the stop signal.
func (p Plan) PrestopDeadline(began, stop time.Time) (time.Time, bool) {
	at, least := began.Add(max(p.Grace-p.Headroom, 0)), stop.Add(time.Second)
	if at.Before(least) {
		at = least
	}
	return at, p.GraceSet
}

// end never lies before the stop signal itself.
func (p Plan) end(stop time.Time) time.Time {
	return stop.Add(max(p.Grace-p.Prestop-p.Headroom, 0))
}
