// Package control is the init's control socket: the server in the init, and the
// client of drainit announce, drain, undrain and status. It decides nothing: what
// a client asks reaches the loop as a [Call], and the loop gives the [Answer].
//
// The order of use in the init is [Listen] (binds, before anything is started),
// then [Server.Serve], then [Server.Close]. A client calls [Find] and [Ask].
//
// Both ends look at who the other one is (SO_PEERCRED of unix(7)) before they
// believe a word: root or the own user, in the own PID namespace. An abstract
// socket has no permissions of its own, and its name is visible in the whole
// network namespace, which the containers of a pod share.
package control

import (
	"log/slog"
	"time"
)

// The verbs that a client may ask for.
const (
	Announce = "announce"
	Drain    = "drain"
	Undrain  = "undrain"
	Status   = "status"
)

// Request is what a client asks. A duration that is nil was not given; one that
// reaches the loop is not negative, and comes with Drain alone.
type Request struct {
	Verb          string
	Budget        *time.Duration
	AnnounceDelay *time.Duration
}

// Answer ends a call. Code is the client's exit status: 0 done, 1 refused or not
// all of it, 2 cancelled. Text is one line for a person, without a newline.
type Answer struct {
	Code   int
	Text   string
	Status *State // of a Status call, else nil
}

// Call is one message to the loop: a request, or with Left that the client of ID
// hung up before it was answered. IDs begin at 1 and are never used again. A
// Left comes after its request, and may cross the answer to it on its way.
type Call struct {
	ID      uint64
	Request Request
	Left    bool
}

// Options of a server. The zero value works.
type Options struct {
	// Wake is called after a Call was queued, from any goroutine; nil: nobody is
	// woken.
	Wake func()
	// Log gets a record of each fault, and one a minute of refused clients at
	// most; nil: nobody is told.
	Log *slog.Logger
}

// State is what status tells: the init at one moment.
type State struct {
	State     string `json:"state"`     // starting, running, announce, phases, drained, gate, cancel, companions, lifecycle, linger, end
	Readiness string `json:"readiness"` // unavailable, ready, draining
	Service   string `json:"service,omitempty"`
	Version   string `json:"version,omitempty"`
	Reason    string `json:"reason,omitempty"` // what began the drain or the shutdown: TERM, drain, exited ...

	UptimeSeconds   float64  `json:"uptime_seconds"`
	StageSeconds    float64  `json:"stage_seconds"`              // since the stage began
	LeftSeconds     *float64 `json:"left_seconds,omitempty"`     // of the stage's window; nil: it has no end
	DeadlineSeconds *float64 `json:"deadline_seconds,omitempty"` // to the hard deadline; nil: there is none

	WorkloadPID    int  `json:"workload_pid,omitempty"`    // 0: it has not been started
	WorkloadStatus *int `json:"workload_status,omitempty"` // once it has exited

	Phases     []HookState      `json:"phases,omitempty"` // in order, as the other two
	Steps      []HookState      `json:"steps,omitempty"`
	Companions []CompanionState `json:"companions,omitempty"`
}

// HookState is a phase or a lifecycle step. Phases are waiting, running, ok,
// failed, overran, killed, interrupted or skipped; steps are waiting, starting,
// started, failed, stopping, stopped and so on.
type HookState struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"` // that it took, or has taken so far
}

// CompanionState is a companion; PID 0: it does not run.
type CompanionState struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	PID      int    `json:"pid,omitempty"`
	Restarts int    `json:"restarts"`
}

// Error is an error with what to do about it.
type Error struct {
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
