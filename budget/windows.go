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
		return p.told(left, max(p.Gate, left-p.afterGate()))
	}
	return p.told(left, p.Gate)
}

// AssumedGateWindow is the same where the grace period is assumed and something
// must be stopped afterwards: until what that needs before the assumed deadline,
// and GateWish at the least, since an assumption costs nobody his life.
func (p Plan) AssumedGateWindow(left time.Duration) time.Duration {
	return max(left-p.afterGate(), GateWish)
}

// UnwindWindow is what a hook has between TERM and KILL.
func (p Plan) UnwindWindow(left time.Duration) time.Duration {
	return clamp(left-p.told(left, p.Gate)-p.afterGate(), p.Unwind)
}

// WithoutWorkload is the plan where no workload will be started any more: what
// that would have had is free.
func (p Plan) WithoutWorkload() Plan {
	p.Gate, p.Cancel, p.GateSet = 0, 0, true
	return p
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

// StartWindow is how long the workload's start, when it is under way, is waited
// for after the stop signal, before the init goes on without it. It does not
// depend on what the workload gets once it runs: a fork takes its time even where
// the drain timeout is 0, and one that hangs has no life to lose.
func (p Plan) StartWindow(left time.Duration) time.Duration { return p.told(left, GateWish) }

// StepStartWindow is how long the running starts of lifecycle steps have after
// the stop signal until they are told to stop too: what must come after is kept
// back: their own unwinding, the phases where these are the last starts, and the
// stops of so many waves. Where there is no deadline it is GateWish.
func (p Plan) StepStartWindow(left time.Duration, waves int, last bool) time.Duration {
	if left >= Unbounded {
		return GateWish
	}
	if last {
		left -= p.Phases + p.Unwind
	}
	return max(left-Unwind-p.waves(waves)-p.Linger, 0)
}

// told is the window of what the KILL comes behind.
func (p Plan) told(left, want time.Duration) time.Duration {
	return max(clamp(left-p.afterGate(), want), clamp(left/2, want))
}

// CancelWindow is how long the init waits for what it killed.
func (p Plan) CancelWindow(left time.Duration) time.Duration {
	return part(left, p.Cancel, p.afterGate())
}

// CompanionsWindow is how long the companions have, all together, from TERM to
// KILL.
func (p Plan) CompanionsWindow(left time.Duration) time.Duration {
	return part(left, p.Companions, p.Companions+p.waves(p.WaveCount)+p.Linger)
}

// WaveWindow is how long the stops of one wave have, when waves are left with it.
func (p Plan) WaveWindow(left time.Duration, waves int) time.Duration {
	return part(left, p.Wave, p.waves(waves)+p.Linger)
}

// LingerWindow is how long the probe listener stays for a last scrape.
func (p Plan) LingerWindow(left time.Duration) time.Duration {
	return part(left, p.Linger, p.Linger)
}

// part is a stage's window when it and all behind it want together so much:
// all of it where that can be had, else a share of what is left in proportion.
// Where the deadline is close it ends a little before it: what follows, the last
// flush of the log, takes its time too.
func part(left, want, together time.Duration) time.Duration {
	have := left - min(Last, left/2)
	if have >= together || together == 0 {
		return max(want, 0)
	}
	return clamp(time.Duration(float64(have)*(float64(want)/float64(together))), want)
}

// Last is kept free before the hard deadline for the end itself: the log's
// last flush, closing the listener.
const Last = 100 * time.Millisecond

// fromGate is what the workload and the stages behind it want.
func (p Plan) fromGate() time.Duration { return p.Gate + p.afterGate() }

// afterGate is what the stages behind the gate want.
func (p Plan) afterGate() time.Duration {
	return p.Cancel + p.Companions + p.waves(p.WaveCount) + p.Linger
}

// clamp holds a window between nothing and what it wants.
func clamp(have, want time.Duration) time.Duration {
	return max(min(have, want), 0)
}
