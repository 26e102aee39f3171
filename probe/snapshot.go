package probe

import "time"

// Timed is a name and a length of time in seconds.
type Timed struct {
	Name    string
	Seconds float64
}

// PhaseResult is a phase of the drain that has ended, or was never run.
type PhaseResult struct {
	Name    string
	Seconds float64 // that it took
	Result  string  // ok, failed, overran, killed, skipped, interrupted
}

// StepResult is a lifecycle step that was called.
type StepResult struct {
	Name    string
	Result  string  // started, failed, stopped, stop_failed
	Seconds float64 // that its start took
}

// Companion is a program that is kept running beside the workload.
type Companion struct {
	Name     string
	Restarts uint64 // since the init's start, the first start not among them
	Running  bool
}

// Snapshot is what /metrics tells, beside the readiness and the Counters. It is
// immutable once it was published, with all that it refers to. The zero value
// is a container of which nothing is known yet.
//
// Names are unique within each list: a second sample of the same labels makes a
// collector refuse it. Any string is good for a name, it is escaped.
type Snapshot struct {
	Service, Version string
	// States lists all states; State is the present one.
	States []string
	State  string
	// StoppedAt is when the stop signal came, zero before. It must come from
	// time.Now: the figure rises with the monotonic clock at each scrape, until
	// the shutdown is Done; then it is Shutdown.
	StoppedAt time.Time
	Shutdown  time.Duration
	Done      bool
	// Stages lists the stages that have ended. RunningStage, if there is one,
	// has run since StageSince; its figure rises at each scrape, and replaces
	// the one that Stages may have for it.
	Stages       []Timed
	RunningStage string
	StageSince   time.Time
	Phases       []PhaseResult
	// Steps lists the lifecycle steps whose start has ended, Companions all
	// companions from the start on, so that their restarts are counted from 0.
	Steps      []StepResult
	Companions []Companion
	// KilledWorkload is how many of the workload's processes got KILL.
	KilledWorkload uint64
	// Signals counts the received ones by name, without SIG.
	Signals map[string]uint64
	// Budget is the plan, figure by figure; Grace is the grace period in
	// seconds, left out unless GraceKnown.
	Budget     []Timed
	Grace      float64
	GraceKnown bool
}

// shutdown is the seconds since the stop signal, or those of the whole shutdown.
func (s *Snapshot) shutdown(now time.Time) float64 {
	if s.Done {
		return s.Shutdown.Seconds()
	}
	return since(s.StoppedAt, now)
}

// since is never negative; a zero start has not happened.
func since(start, now time.Time) float64 {
	if start.IsZero() {
		return 0
	}
	return max(now.Sub(start), 0).Seconds()
}
