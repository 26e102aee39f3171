package budget

import "time"

// Unbounded stands for the time left when there is no hard deadline. It is far
// from overflowing when windows are subtracted from it.
const Unbounded = time.Duration(1 << 62)

// The windows of the stages, from what is left to the hard deadline when the
// stage begins. A stage keeps back what the later ones want, so that the
// workload always has its window: the announcement gives way first, then the
// phases. None returns less than 0.

// AnnounceWindow is how long readiness fails before the first phase.
func (p Plan) AnnounceWindow(left time.Duration) time.Duration {
	return clamp(left-p.Phases-p.Unwind-p.fromGate(), p.Announce)
}

// PhasesWindow is the budget that the phases share. Where the gate has what is
// left, it also bears that the announcement ended a little late.
func (p Plan) PhasesWindow(left time.Duration) time.Duration {
	if p.flexible() {
		left += min(p.Gate, Last) / 2
	}
	return clamp(left-p.Unwind-p.fromGate(), p.Phases)
}

// GateWindow is how long the workload has from its stop signal to its KILL.
// It gets its whole window where the later stages still fit behind it, and
// where they don't, at least half of what is left or its window, whichever is
// less. Where nobody set it, it is all that is left, which is more than the
// plan says when the stages before took less.
func (p Plan) GateWindow(left time.Duration) time.Duration {
	if p.flexible() && left < Unbounded {
		return p.told(left, max(p.Gate, left-p.Cancel))
	}
	return p.told(left, p.Gate)
}

// UnwindWindow is what a hook has between TERM and KILL.
func (p Plan) UnwindWindow(left time.Duration) time.Duration {
	return clamp(left-p.told(left, p.Gate)-p.Cancel, p.Unwind)
}

// flexible tells that the gate's window is what the grace period leaves.
func (p Plan) flexible() bool { return p.GraceSet && !p.GateSet }

// LeftoverWindow is what the descendants of a workload that ended by itself
// have: the drain timeout, GateWish where nobody set it.
func (p Plan) LeftoverWindow(left time.Duration) time.Duration {
	if !p.GateSet {
		return p.told(left, GateWish)
	}
	return p.told(left, p.Gate)
}

// StartWindow is how long a start that is under way is waited for after the
// stop signal, before the init exits without it. It does not depend on what
// the workload gets once it runs: a fork takes its time even where the drain
// timeout is 0, and one that hangs has no life to lose.
func (p Plan) StartWindow(left time.Duration) time.Duration { return p.told(left, GateWish) }

// told is the window of what the KILL comes behind.
func (p Plan) told(left, want time.Duration) time.Duration {
	return max(clamp(left-p.Cancel, want), clamp(left/2, want))
}

// CancelWindow is how long the init waits for what it killed. Where the
// deadline is close it ends a little before it: what follows, the last flush
// of the log, takes its time too.
func (p Plan) CancelWindow(left time.Duration) time.Duration {
	return clamp(left-min(Last, left/2), p.Cancel)
}

// Last is kept free before the hard deadline for the end itself: the log's
// last flush, closing the listener.
const Last = 100 * time.Millisecond

// fromGate is what the workload and the stages behind it want.
func (p Plan) fromGate() time.Duration { return p.Gate + p.Cancel }

// clamp holds a window between nothing and what it wants.
func clamp(have, want time.Duration) time.Duration {
	return max(min(have, want), 0)
}
