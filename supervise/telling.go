package supervise

import (
	"syscall"
	"time"

	"drainit/child"
	"drainit/phases"
	"drainit/probe"
	"drainit/signals"
)

// telling is what the log and the metrics say about the run.
type telling struct {
	base      probe.Snapshot // what never changes
	ready     bool
	signals   [signals.Max + 1]uint64
	refused   [signals.Max + 1]bool // a signal that could not be sent is logged once
	begunAt   time.Time             // of the shutdown, by a signal or the workload's own end; zero: not yet
	stoppedAt time.Time             // zero: no stop signal yet
	endedAt   time.Time             // zero: the run goes on

	stage       phases.Stage
	stageSince  time.Time
	stages      []probe.Timed // that are over, in order
	phaseResult []probe.PhaseResult
	phaseStatus []*int // nil: it has not ended by itself
	blindSaid   bool
	killSaid    bool
	startError  error
}

func newTelling(job Job, version string) telling {
	t := telling{
		base: probe.Snapshot{
			Service: job.Config.Service, Version: version, States: phases.Stages(),
			Grace: job.Plan.Grace.Seconds(), GraceKnown: !job.Plan.Unlimited,
		},
		phaseStatus: make([]*int, len(job.Phases.Hooks)),
	}
	for _, f := range job.Plan.Figures() {
		t.base.Budget = append(t.base.Budget, probe.Timed{Name: f.Name, Seconds: f.D.Seconds()})
	}
	for _, h := range job.Phases.Hooks {
		t.phaseResult = append(t.phaseResult, probe.PhaseResult{Name: h.Name})
	}
	return t
}

// begin notes when the shutdown began.
func (t *telling) begin(now time.Time) {
	if t.begunAt.IsZero() {
		t.begunAt = now
	}
}

// stop notes when the first stop signal came.
func (t *telling) stop(now time.Time) {
	t.begin(now)
	if t.stoppedAt.IsZero() {
		t.stoppedAt = now
	}
}

func (t *telling) stopped() bool { return !t.stoppedAt.IsZero() }

// enter closes the figures of the running stage and opens the next one's.
func (t *telling) enter(now time.Time, e phases.Effect) {
	if t.stage > phases.Running {
		t.stages = append(t.stages, probe.Timed{Name: t.stage.String(), Seconds: now.Sub(t.stageSince).Seconds()})
	}
	t.stage, t.stageSince = e.Stage, now
}

func (t *telling) phaseExit(i int, e child.Exit) { t.phaseStatus[i] = &e.Status }

func (t *telling) phaseDone(i int, r phases.Result, took time.Duration) {
	t.phaseResult[i].Result = r.String()
	t.phaseResult[i].Seconds = took.Seconds()
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
	if t.stage > phases.Running && t.stage != phases.End {
		s.RunningStage, s.StageSince = t.stage.String(), t.stageSince
	}
	for _, p := range t.phaseResult {
		if p.Result != "" {
			s.Phases = append(s.Phases, p)
		}
	}
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
