package supervise

import (
	"syscall"
	"time"

	"drainit/hooks"
	"drainit/phases"
	"drainit/probe"
	"drainit/signals"
)

// telling is what the log, the metrics, the report and the control socket say
// about the run.
type telling struct {
	base      probe.Snapshot // what never changes
	readiness probe.Status
	signals   [signals.Max + 1]uint64
	refused   [signals.Max + 1]bool // a signal that could not be sent is logged once
	begunAt   time.Time             // of the shutdown, or of a drain that was asked for; zero: not yet
	closing   bool                  // a stop signal or the workload's own end has come
	stoppedAt time.Time             // zero: no stop signal yet
	endedAt   time.Time             // zero: the run goes on

	stage      phases.Stage
	stageSince time.Time
	stages     []probe.Timed // that are over, in order

	phases     []hookTold
	steps      []hookTold
	companions []companionTold
	clearing   int // steps whose leftovers are being waited for

	killed    uint64 // processes of the workload that got KILL
	blindSaid bool
	killSaid  bool
	err       error // why nothing could be started
}

// hookTold is what is told of a phase or a step.
type hookTold struct {
	name     string
	state    string // as status says it
	result   string // as the metrics say it; "": none yet
	seconds  float64
	since    time.Time // when the running call began
	clearing bool
	last     phases.Result // of its latest call
	took     time.Duration // by that
}

// run notes that a call has begun.
func (h *hookTold) run(state string) { h.state, h.since = state, time.Now() }

// done notes its end.
func (h *hookTold) done(state string, took time.Duration) {
	h.state, h.result, h.since, h.seconds = state, state, time.Time{}, took.Seconds()
	h.took = took
}

type companionTold struct {
	name   string
	state  string
	starts int
}

// States of hooks that are not results.
const (
	stateWaiting = "waiting"
	stateRunning = "running"
)

func newTelling(job Job, version string) telling {
	t := telling{
		base: probe.Snapshot{
			Service: job.Config.Service, Version: version, States: phases.Stages(),
			Grace: job.Plan.Grace.Seconds(), GraceKnown: !job.Plan.Unlimited,
		},
		phases: hooksTold(job.Hooks.Phases), steps: hooksTold(job.Hooks.Steps),
	}
	for _, f := range job.Plan.Figures() {
		t.base.Budget = append(t.base.Budget, probe.Timed{Name: f.Name, Seconds: f.D.Seconds()})
	}
	for _, h := range job.Hooks.Companions.Hooks {
		t.companions = append(t.companions, companionTold{name: h.Name, state: stateWaiting})
	}
	return t
}

func hooksTold(set hooks.Set) []hookTold {
	var all []hookTold
	for _, h := range set.Hooks {
		all = append(all, hookTold{name: h.Name, state: stateWaiting})
	}
	return all
}

// begin notes when readiness was withdrawn.
func (t *telling) begin(now time.Time) {
	if t.begunAt.IsZero() {
		t.begunAt = now
	}
}

// close notes when the shutdown began: by the first stop signal, or the workload's
// own end.
func (t *telling) close(now time.Time) {
	if !t.closing {
		t.closing, t.begunAt = true, now
	}
}

// stop notes when the first stop signal came.
func (t *telling) stop(now time.Time) {
	t.close(now)
	if t.stoppedAt.IsZero() {
		t.stoppedAt = now
	}
}

func (t *telling) stopped() bool { return !t.stoppedAt.IsZero() }

// enter closes the figures of the running stage and opens the next one's. A stage
// that is entered again, since a drain was called off, has the latter's.
func (t *telling) enter(now time.Time, e phases.Effect) {
	if t.stage.Timed() {
		done := probe.Timed{Name: t.stage.String(), Seconds: now.Sub(t.stageSince).Seconds()}
		for i, s := range t.stages {
			if s.Name == done.Name {
				t.stages = append(t.stages[:i:i], t.stages[i+1:]...)
				break
			}
		}
		t.stages = append(t.stages, done)
	}
	t.stage, t.stageSince = e.Stage, now
}

func (t *telling) phaseDone(i int, r phases.Result, took time.Duration) {
	t.phases[i].done(r.String(), took)
	t.phases[i].last = r
}

// clear notes that what a step left is waited for.
func (t *telling) clear(i int) {
	t.steps[i].clearing = true
	t.clearing++
}

// stepDone notes what a step's call came to. What is told in seconds is its start.
func (t *telling) stepDone(i int, e phases.Effect) {
	s := &t.steps[i]
	if s.clearing {
		s.clearing = false
		t.clearing--
	}
	state, took := "stop_failed", time.Duration(s.seconds*float64(time.Second))
	switch {
	case e.Kind == phases.StepStarted:
		state, took = "started", e.Took
	case e.Kind == phases.StepFailed:
		state, took = "failed", e.Took
	case e.Result == phases.Succeeded:
		state = "stopped"
	}
	s.done(state, took)
	s.last, s.took = e.Result, e.Took
}

func (t *telling) finish(now time.Time) { t.endedAt = now }

// total is how long the shutdown took.
func (t *telling) total() time.Duration { return t.endedAt.Sub(t.begunAt) }

// sinceStop is the same from the stop signal on; 0 where none came, or the
// shutdown goes on.
func (t *telling) sinceStop() time.Duration {
	if !t.stopped() || t.endedAt.IsZero() {
		return 0
	}
	return t.endedAt.Sub(t.stoppedAt)
}

// snapshot is the state for /metrics.
func (t *telling) snapshot() *probe.Snapshot {
	s := t.base
	s.State = t.stage.String()
	s.StoppedAt = t.stoppedAt
	s.Shutdown, s.Done = t.sinceStop(), !t.endedAt.IsZero()
	s.Stages = append([]probe.Timed(nil), t.stages...)
	if t.stage.Timed() {
		s.RunningStage, s.StageSince = t.stage.String(), t.stageSince
	}
	for _, p := range t.phases {
		if p.result != "" {
			s.Phases = append(s.Phases, probe.PhaseResult{Name: p.name, Seconds: p.seconds, Result: p.result})
		}
	}
	for _, p := range t.steps {
		if p.result != "" {
			s.Steps = append(s.Steps, probe.StepResult{Name: p.name, Seconds: p.seconds, Result: p.result})
		}
	}
	for _, c := range t.companions {
		s.Companions = append(s.Companions, probe.Companion{
			Name: c.name, Restarts: uint64(max(c.starts-1, 0)), Running: c.state == stateRunning,
		})
	}
	s.KilledWorkload = t.killed
	s.Signals = make(map[string]uint64)
	for sig, n := range t.signals {
		if n > 0 {
			s.Signals[signals.Name(syscall.Signal(sig))] = n
		}
	}
	return &s
}

// publish makes the state visible to /metrics.
func (l *loop) publish() {
	if l.Probe != nil {
		l.Probe.Publish(l.tell.snapshot())
	}
}
