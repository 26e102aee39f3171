// Package phases is the shutdown as a pure machine: given the time and an
// event it says what is to be done now, and until when it may sleep. It starts
// nothing, waits for nothing and reads no clock. This is the file to open, with
// its neighbours, when the behaviour should change.
package phases

import (
	"time"

	"drainit/budget"
)

// Stage is where the container's life stands.
type Stage int

// The stages in their order. Starting and Running are the life before the
// shutdown. Drained is a drain that was asked for and has run: the workload goes
// on until the stop signal. The others are the stages of the shutdown.
const (
	Starting Stage = iota
	Running
	Announce
	Phases
	Drained
	Gate
	Cancel
	Companions
	Lifecycle
	Linger
	End
)

var stageNames = [...]string{
	"starting", "running", "announce", "phases", "drained", "gate", "cancel", "companions", "lifecycle", "linger", "end",
}

// String returns the stage's name in the log and the metrics.
func (s Stage) String() string { return stageNames[s] }

// Stages returns all names in order.
func Stages() []string { return append([]string(nil), stageNames[:]...) }

// Timed tells that the stage is part of the shutdown, with a time of its own.
func (s Stage) Timed() bool { return s > Running && s != Drained && s != End }

// EventKind says what happened.
type EventKind int

// The events. What an event carries beside its kind stands behind it.
const (
	Tick             EventKind = iota // the deadline has passed, or somebody looks
	Begin                             // everything is ready to be started
	Started                           // the workload runs
	StartFailed                       // Status: the init's exit status
	Stop                              // Signal began the drain or came during it; Interrupt: it is INT
	Exited                            // Status: the workload's own end; Last: it left nothing behind
	Gone                              // nothing is left of an ended workload
	PhaseEnded                        // Hook; OK: it succeeded
	PhaseRefused                      // Hook could not be started
	StepEnded                         // Hook's call (its start or its stop) has ended; OK; Last: nothing of the step is left
	StepRefused                       // Hook's call could not be started; Last
	StepGone                          // nothing is left of Hook, whose stop has ended
	CompanionEnded                    // Hook
	CompanionRefused                  // Hook could not be started
	AskAnnounce                       // Client wants readiness withdrawn
	AskDrain                          // Client wants the drain, and waits for its end; Budget, Delay in place of the plan's
	AskUndrain                        // Client wants readiness back
	ClientLeft                        // Client has hung up before the drain that it waited for was over
	Scraped                           // the final figures have been read
)

// Event is something that happened to the container.
type Event struct {
	Kind          EventKind
	Signal        int
	Interrupt     bool
	Status        int
	Hook          int // the index of a phase, a step or a companion
	OK            bool
	Last          bool
	Client        uint64
	Budget, Delay budget.Value
}

// EffectKind says what is to be done.
type EffectKind int

// The effects, performed in the order in which they are returned.
const (
	BeReady        EffectKind = iota // readiness may be given
	Withdraw                         // readiness is withdrawn
	Enter                            // Stage begins; Window: how long it may take, NoEnd: no bound
	StartStep                        // Hook is called with start; Window or NoEnd
	StopStep                         // Hook is called with stop; Window
	TermStep                         // Hook's call is told to hurry: TERM to its session
	KillStep                         // Hook's call did not end: KILL to its session
	TermLeft                         // Hook's start left processes behind: TERM to them
	KillLeft                         // KILL to them
	StepStarted                      // Hook has started after Took
	StepFailed                       // Hook's start came to Result after Took
	StepStopped                      // Hook's stop came to Result after Took
	StartCompanion                   // Hook
	CompanionRests                   // Hook has ended after Took, and is started again after Window
	TermCompanion                    // Hook
	KillCompanion                    // Hook
	StartWorkload                    // everything before it has started
	StartPhase                       // Hook, Window
	TermPhase                        // Hook overran (or is told to hurry): TERM to its session
	KillPhase                        // Hook did not end: KILL to its session
	PhaseDone                        // Hook has its Result after Took
	Tell                             // Signal to the workload, CONT if it is stopped
	TellRest                         // Signal to what is left of the ended workload
	KillRest                         // KILL to whatever is left of the workload
	SayIgnored                       // Signal came during the shutdown and does nothing
	SayJoined                        // Signal came while a drain or the shutdown was under way for another reason
	SayHurried                       // Signal cuts the running stage short
	SayAssumed                       // the assumed grace period has passed
	SayOverran                       // Stage used up its Window
	SayCancelled                     // the drain was called off; who waited for it is answered Cancelled
	Reply                            // Client has its Outcome
	Share                            // Client waits for a drain that was under way; nobody is answered yet
	Answer                           // everybody who waits for the drain has its Outcome
	Final                            // Status, Own and the figures of the shutdown will not change any more
	Exit                             // the init exits with Status; Own: it is the workload's own
)

// Effect is one thing to do.
type Effect struct {
	Kind    EffectKind
	Stage   Stage
	Hook    int
	Signal  int
	Status  int
	Window  time.Duration
	NoEnd   bool
	Took    time.Duration
	Result  Result
	Own     bool
	Client  uint64
	Outcome Outcome
}

// Outcome is what a client's request came to.
type Outcome int

// The outcomes. Incomplete: the drain is over, but a phase failed, overran or was
// skipped. Refused: it is too late for that.
const (
	Done Outcome = iota
	Incomplete
	Cancelled
	Refused
)

var outcomeNames = [...]string{"done", "incomplete", "cancelled", "refused"}

// String returns the outcome's name in the log.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is how a hook ended.
type Result int

// The results. Overran: it was told to stop at the end of its time and did;
// Killed: it did not; Interrupted: it was told to stop by a signal; Skipped: never
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
