package supervise

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"drainit/budget"
	"drainit/control"
)

var (
	proofRuns = flag.Int("proof.runs", 3000, "runs with fixed seeds; a tenth as many follow with new ones")
	proofSeed = flag.Uint64("proof.seed", 0, "one seed to look at")
)

// TestProof runs random plans, misbehaviours and signals, and holds each run
// against what the contract promises of every one: no exit later than the hard
// deadline, no workload killed that had not been told and had its time, no hang,
// and nobody killed under an assumed grace period.
func TestProof(t *testing.T) {
	if *proofSeed != 0 {
		prove(t, *proofSeed, true)
		return
	}
	var c census
	for seed := range uint64(*proofRuns) {
		c.add(prove(t, seed+1, false))
	}
	now := uint64(time.Now().UnixNano())
	for i := range uint64(*proofRuns) / 10 {
		c.add(prove(t, now+i, false))
	}
	t.Logf("%+v", c)
	if c.Deadlines == 0 || c.Killed == 0 || c.Spared == 0 || c.Joined == 0 || c.Never == 0 ||
		c.Failed == 0 || c.Stops == 0 || c.Left == 0 || c.Restarts == 0 || c.Drains == 0 {
		t.Errorf("the runs do not show everything: %+v", c)
	}
}

// census counts what the runs have seen, so that a proof of nothing shows.
type census struct {
	Runs, Deadlines, Killed, Spared, Joined, Hurried, Never, Unkillable int
	Failed, Stops, Left, Restarts, Drains                               int
}

func (c *census) add(o census) {
	c.Runs++
	c.Deadlines += o.Deadlines
	c.Killed += o.Killed
	c.Spared += o.Spared
	c.Joined += o.Joined
	c.Hurried += o.Hurried
	c.Never += o.Never
	c.Unkillable += o.Unkillable
	c.Failed += o.Failed
	c.Stops += o.Stops
	c.Left += o.Left
	c.Restarts += o.Restarts
	c.Drains += o.Drains
}

// scenario is one random run.
type scenario struct {
	seed    uint64
	in      budget.Input
	fake    *fake
	job     Job
	stopAt  time.Duration // the first signal that drains; never
	hurried bool          // an INT came after it
	asked   bool          // a client has asked for a drain
}

func prove(t *testing.T, seed uint64, loud bool) (seen census) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		s := randomScenario(seed)
		r := s.fake.run(s.job, s.fake.world())
		seen = s.check(t, r)
		if t.Failed() || loud {
			t.Logf("go test ./supervise -run TestProof -proof.seed %d\nplan %+v\nworkload %+v\nphases %+v\nsteps %+v\nstops %+v\ncompanions %+v\nresult %+v",
				seed, s.job.Plan, s.fake.workload, s.fake.phases, s.fake.steps, s.fake.undo, s.fake.beside, r)
			for _, e := range s.fake.events {
				t.Log(e)
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return seen
}

func randomScenario(seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &scenario{seed: seed, in: randomInput(r), stopAt: never}
	var list []behaviour
	for range r.IntN(4) {
		list = append(list, randomPhase(r))
	}
	s.fake = newFake(randomWorkload(r), list...)
	s.fake.name = fmt.Sprintf("seed %d", seed)
	s.fake.noProc = r.IntN(8) == 0
	if r.IntN(4) == 0 {
		s.fake.chldLate = time.Duration(r.Int64N(int64(300 * ms)))
	}
	s.beside(r)
	s.job = s.fake.job(s.in)
	s.job.Seed = seed
	s.job.Config.StartTimeout = []time.Duration{0, some(r, 10*sec)}[r.IntN(2)]
	for i := range s.job.Hooks.Steps.Hooks {
		h := &s.job.Hooks.Steps.Hooks[i]
		if r.IntN(3) == 0 {
			h.MaxDuration = some(r, 8*sec)
		}
		if i > 0 && r.IntN(2) == 0 {
			h.Order = s.job.Hooks.Steps.Hooks[i-1].Order
		}
	}
	s.in.Phases, s.in.Companions, s.in.Waves = len(list), len(s.fake.beside), s.job.Hooks.Waves()
	s.job.Plan, s.job.Config.Budget = budget.Make(s.in), s.in
	for i := range s.job.Hooks.Phases.Hooks {
		if r.IntN(3) == 0 {
			s.job.Hooks.Phases.Hooks[i].MaxDuration = some(r, 5*sec)
		}
	}
	s.signals(r)
	return s
}

// some is a duration up to a bound, often a round one, sometimes 0.
func some(r *rand.Rand, most time.Duration) time.Duration {
	switch r.IntN(6) {
	case 0:
		return 0
	case 1, 2:
		return time.Duration(r.Int64N(int64(most/sec)+1)) * sec
	}
	return time.Duration(r.Int64N(int64(most)))
}

// orNever is some, or never once in so many.
func orNever(r *rand.Rand, once int, most time.Duration) time.Duration {
	if r.IntN(once) == 0 {
		return never
	}
	return some(r, most)
}

func randomInput(r *rand.Rand) budget.Input {
	value := func(most, otherwise time.Duration) budget.Value {
		if r.IntN(2) == 0 {
			return set(some(r, most))
		}
		return fallback(otherwise)
	}
	in := budget.Input{
		Prestop: value(5*sec, 0), Announce: value(10*sec, []time.Duration{0, 5 * sec}[r.IntN(2)]),
		DrainBudget: value(15*sec, 10*sec), DrainTimeout: value(30*sec, 0), Headroom: value(2*sec, sec),
	}
	switch r.IntN(4) {
	case 0:
		in.Unlimited = true
	case 1:
		in.Grace = fallback([]time.Duration{5 * sec, 10 * sec, 30 * sec, 90 * sec}[r.IntN(4)])
	default:
		in.Grace = set(some(r, 60*sec))
	}
	return in
}

func randomWorkload(r *rand.Rand) behaviour {
	b := behaviour{
		self: never, onStop: orNever(r, 3, 40*sec), onKill: orNever(r, 12, 100*ms),
		status: r.IntN(3),
	}
	if r.IntN(3) == 0 {
		b.self = some(r, 60*sec)
	}
	switch r.IntN(12) {
	case 0:
		b.answer = some(r, 20*sec)
	case 1:
		b.answer = never
	case 2:
		b.refused = errRefused
	}
	if r.IntN(6) == 0 {
		b.stopped = syscall.SIGSTOP
	}
	for range max(r.IntN(6)-2, 0) {
		b.leaves = append(b.leaves, behaviour{
			self: orNever(r, 2, 60*sec), onStop: orNever(r, 3, 30*sec), onKill: orNever(r, 12, 100*ms),
		})
	}
	return b
}

func randomPhase(r *rand.Rand) behaviour {
	b := behaviour{self: orNever(r, 4, 8*sec), onStop: orNever(r, 3, 2*sec), onKill: orNever(r, 8, 50*ms), status: r.IntN(2)}
	switch r.IntN(10) {
	case 0:
		b.answer = some(r, 20*sec)
	case 1:
		b.answer = never
	case 2:
		b.refused = errRefused
	case 3:
		b.changed = errRefused
	}
	return b
}

// beside adds steps and companions to half of the runs, and clients to some.
func (s *scenario) beside(r *rand.Rand) {
	s.in.StepTimeout = fallback(budget.DefaultStepTimeout)
	if r.IntN(2) == 0 {
		return
	}
	if r.IntN(2) == 0 {
		s.in.StepTimeout = set(some(r, 12*sec))
	}
	for range r.IntN(4) {
		start := behaviour{self: some(r, 4*sec), onStop: orNever(r, 3, 2*sec), onKill: orNever(r, 8, 50*ms)}
		switch r.IntN(12) {
		case 0:
			start.status = 1
		case 1:
			start.self = never
		case 2:
			start.refused = errRefused
		case 3:
			start.answer = orNever(r, 2, 10*sec)
		}
		for range max(r.IntN(4)-1, 0) {
			start.leaves = append(start.leaves, behaviour{self: orNever(r, 2, 60*sec), onStop: orNever(r, 3, 8*sec), onKill: orNever(r, 12, 50*ms)})
		}
		s.fake.steps = append(s.fake.steps, start)
		s.fake.undo = append(s.fake.undo, randomPhase(r))
	}
	for range r.IntN(3) {
		b := behaviour{self: orNever(r, 2, 40*sec), onStop: orNever(r, 3, 8*sec), onKill: orNever(r, 8, 50*ms)}
		if r.IntN(8) == 0 {
			b.refused = errRefused
		}
		s.fake.beside = append(s.fake.beside, b)
	}
	if r.IntN(3) == 0 {
		s.clients(r)
	}
}

// clients ask for things, and hang up.
func (s *scenario) clients(r *rand.Rand) {
	s.asked = true
	at := some(r, 20*sec)
	for id := range uint64(1 + r.IntN(4)) {
		verb := []string{control.Announce, control.Drain, control.Drain, control.Undrain, control.Status}[r.IntN(5)]
		req := control.Request{Verb: verb}
		if verb == control.Drain && r.IntN(2) == 0 {
			d := some(r, 20*sec)
			req.Budget = &d
		}
		s.fake.ask(at, control.Call{ID: id + 1, Request: req})
		if r.IntN(3) == 0 {
			s.fake.ask(at+some(r, 8*sec)+1, control.Call{ID: id + 1, Left: true})
		}
		at += some(r, 8*sec) + 2
	}
}

// signals sends random ones at random times. At last come the ones that end a
// run which would wait for ever, as it should.
func (s *scenario) signals(r *rand.Rand) {
	kinds := []syscall.Signal{
		syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT,
		syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGCONT, syscall.SIGWINCH,
	}
	at := some(r, 30*sec)
	for range r.IntN(5) {
		s.send(at, kinds[r.IntN(len(kinds))])
		at += some(r, 10*sec) + 1 // at one instant they have no order
	}
	s.send(at+some(r, 10*sec), syscall.SIGTERM)
	s.fake.kill(lastResort, syscall.SIGINT)
	s.fake.kill(lastResort+sec, syscall.SIGINT)
	s.fake.kill(lastResort+2*sec, syscall.SIGINT)
}

// lastResort is when somebody loses patience.
const lastResort = time.Hour

func (s *scenario) send(at time.Duration, sig syscall.Signal) {
	s.fake.kill(at, sig)
	if !s.job.Config.DrainOn.Has(sig) {
		return
	}
	if s.stopAt == never {
		s.stopAt = at
	} else if sig == syscall.SIGINT {
		s.hurried = true
	}
}
