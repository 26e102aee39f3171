package child

import (
	"syscall"
	"time"
)

// Signal sends sig to one process that was started here, or to its process
// group. The owner has not reaped it yet, so the number is still its own.
// Errors: ESRCH when it has just ended, EPERM when it has changed its user
// (kill(2)).
func (t *Table) Signal(p *Proc, sig syscall.Signal, group bool) error {
	if t.procs[p.PID] != p {
		return syscall.ESRCH
	}
	if group {
		return syscall.Kill(-p.PID, sig)
	}
	return syscall.Kill(p.PID, sig)
}

// SignalHook sends sig to all that belongs to a hook: its group, its session,
// and what left both.
func (t *Table) SignalHook(p *Proc, sig syscall.Signal) {
	if t.procs[p.PID] != p {
		return
	}
	_ = syscall.Kill(-p.PID, sig) // ESRCH: it has just ended
	o, ok := t.look()
	if !ok {
		return
	}
	o.each(owner(p.PID), func(q process) {
		if q.group != p.PID { // the group has it already
			_ = syscall.Kill(q.pid, sig)
		}
	})
}

// killRounds bounds how often one call looks again for what a process forked
// while it was being killed.
const killRounds = 4

// killSession ends what a hook that is a zombie left behind. A process that
// forks meanwhile is found by the next look.
func (t *Table) killSession(p *Proc) {
	_ = syscall.Kill(-p.PID, syscall.SIGKILL)
	for range killRounds {
		o, ok := t.look()
		if !ok {
			return
		}
		found := false
		o.each(owner(p.PID), func(q process) {
			found = syscall.Kill(q.pid, syscall.SIGKILL) == nil || found
		})
		if !found {
			return
		}
	}
}

// Rest is what a look for the remains of the workload found.
type Rest struct {
	Count  int  // processes that were signalled
	Denied int  // that may not be signalled
	Known  bool // false: /proc can't be read, only the group was reached
}

// SignalRest sends sig to every process of the workload that is left, with
// resume CONT behind it, since a stopped one would not act before. All get it:
// one that has just been told to stop does not show it yet (its threads stop one
// after the other), and CONT does nothing to a process that runs. group is the
// workload's process group, for when /proc can't be read.
func (t *Table) SignalRest(group int, sig syscall.Signal, resume bool) Rest {
	rounds, limit := tellRounds, time.Duration(0)
	if sig == syscall.SIGKILL { // sent again and again by the caller
		rounds, limit = 1, killLook
	}
	r := Rest{Known: true}
	told := make(map[int]bool)
	for range rounds {
		o, ok := t.lookFor(limit)
		if !ok {
			return t.signalGroup(group, sig, resume)
		}
		before := len(told)
		o.each(theirs, func(q process) {
			if !told[q.pid] {
				told[q.pid] = true
				r.signal(q.pid, sig, resume)
			}
		})
		if len(told) == before {
			break
		}
	}
	return r
}

// tellRounds is how often what is left is looked at, so that a process that was
// forked during the first look is told too.
const tellRounds = 2

// killLook bounds one look for what is to be killed: with very many processes
// the deadline must not pass over it.
const killLook = 300 * time.Millisecond

// signal signals one process and counts it.
func (r *Rest) signal(pid int, sig syscall.Signal, resume bool) {
	switch syscall.Kill(pid, sig) {
	case nil:
		r.Count++
	case syscall.EPERM:
		r.Denied++
	}
	if resume {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// signalGroup is all that can be done without /proc. The group's number can't
// have been taken by another one as long as a process is in it (the kernel
// keeps a number that is in use as a group), and when none is, nothing is hit
// unless a new group has just come by that very number.
func (t *Table) signalGroup(group int, sig syscall.Signal, resume bool) Rest {
	if syscall.Kill(-group, sig) != nil {
		return Rest{}
	}
	if resume {
		_ = syscall.Kill(-group, syscall.SIGCONT)
	}
	return Rest{Count: 1}
}

// Remains counts the processes of the workload that are left; false when that
// can't be told.
func (t *Table) Remains() (int, bool) {
	o, ok := t.look()
	if !ok {
		return 0, false
	}
	n := 0
	o.each(theirs, func(process) { n++ })
	return n, true
}

// Hooks tells whether a hook is running.
func (t *Table) Hooks() bool {
	for _, p := range t.procs {
		if p.Hook {
			return true
		}
	}
	return false
}

// KillAll sends KILL to every process that the init may signal (kill(2) with
// -1). It does so only as PID 1, where that is the whole PID namespace and
// nothing else; as any other process it would reach strangers.
func (t *Table) KillAll() {
	if t.self == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL)
	}
}
