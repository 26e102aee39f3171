// Package phases is the shutdown as a pure machine: given the time and an
// event it says what is to be done now, and until when it may sleep. It starts
// nothing, waits for nothing and reads no clock. This is the file to open, with
// its neighbours, when the behaviour should change.
package phases

import "time"

// Stage is where the container's life stands.
type Stage int

// The stages in their order. Starting and Running are the life before the
// shutdown; the others are its stages.
const (
	Starting Stage = iota
	Running
	Announce
	Phases
	Gate
	Cancel
	End
)

var stageNames = [...]string{"starting", "running", "announce", "phases", "gate", "cancel", "end"}

// String returns the stage's name in the log and the metrics.
func (s Stage) String() string { return stageNames[s] }

// Stages returns all names in order.
func Stages() []string { return append([]string(nil), stageNames[:]...) }

// EventKind says what happened.
type EventKind int

// The events. What an event carries beside its kind stands behind it.
const (
	Tick         EventKind = iota // the deadline has passed, or somebody looks
	Started                       // the workload runs
	StartFailed                   // Status: the init's exit status
	Stop                          // Signal began the drain or came during it; Interrupt: it is INT
	Exited                        // Status: the workload's own end; Last: it left nothing behind
	Gone                          // nothing is left of an ended workload
	PhaseEnded                    // Phase; OK: it succeeded
	PhaseRefused                  // Phase could not be started
)

// Event is something that happened to the container.
type Event struct {
	Kind      EventKind
	Signal    int
	Interrupt bool
	Status    int
	Phase     int
	OK        bool
	Last      bool
}

// EffectKind says what is to be done.
type EffectKind int

// The effects, performed in the order in which they are returned.
const (
	BeReady    EffectKind = iota // readiness may be given
	Withdraw                     // readiness is withdrawn, for good
	Enter                        // Stage begins; Window: how long it may take, NoEnd: no bound
	StartPhase                   // Phase, Window
	TermPhase                    // Phase overran (or is told to hurry): TERM to its session
	KillPhase                    // Phase did not end: KILL to its session
	PhaseDone                    // Phase has its Result after Took
	Tell                         // Signal to the workload, CONT if it is stopped
	TellRest                     // Signal to what is left of the ended workload
	KillRest                     // KILL to whatever is left of the workload
	SayIgnored                   // Signal came during the shutdown and does nothing
	SayJoined                    // Signal came while the shutdown was under way for another reason
	SayHurried                   // Signal cuts the running stage short
	SayAssumed                   // the assumed grace period has passed
	SayOverran                   // Stage used up its Window
	Exit                         // the init exits with Status; Own: it is the workload's own
)

// Effect is one thing to do.
type Effect struct {
	Kind   EffectKind
	Stage  Stage
	Phase  int
	Signal int
	Status int
	Window time.Duration
	NoEnd  bool
	Took   time.Duration
	Result Result
	Own    bool
}

// Result is how a phase ended.
type Result int

// The results. Overran: it was told to stop at the end of its time and did;
// Killed: it did not; Interrupted: it was told to stop by INT; Skipped: never
// started.
const (
	Succeeded Result = iota
	Failed
	Overran
	Killed
	Interrupted
	Skipped
)

var resultNames = [...]string{"ok", "failed", "overran", "killed", "interrupted", "skipped"}

// String returns the result's name in the log and the metrics.
func (r Result) String() string { return resultNames[r] }

// Results returns all names in order.
func Results() []string { return append([]string(nil), resultNames[:]...) }
