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

// SignalHook sends sig to all that belongs to a hook that runs: its group, its
// session, and what left both; but for what one that supervises still has for its
// children, which TERM does not reach (Spec.Supervises). CONT follows TERM, since a suspended one would not
// act before. One whose end has been reaped has nothing that SignalHook reaches,
// see SignalLeft. It takes no longer than killLook to find what is to be killed.
func (t *Table) SignalHook(p *Proc, sig syscall.Signal) { t.SignalHooks([]*Proc{p}, sig) }

// SignalHooks is SignalHook for several at once, which costs no more looks than
// one.
func (t *Table) SignalHooks(all []*Proc, sig syscall.Signal) {
	s := sweepOf(sig)
	s.spared = make(map[int]bool) // the groups have it already
	for _, p := range all {
		if t.procs[p.PID] != p {
			continue
		}
		p.keep = false
		t.signalGroup(p.PID, sig, sig == syscall.SIGTERM)
		s.who, s.spared[p.PID] = append(s.who, owner{hook: p}), true
	}
	if len(s.who) > 0 {
		t.sweep(s)
	}
}

// killSessions ends what hooks that are zombies left behind. A process that
// forks meanwhile is found by the next look.
func (t *Table) killSessions(ended []*Proc) {
	s := sweepOf(syscall.SIGKILL)
	for _, p := range ended {
		_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		s.who = append(s.who, owner{hook: p})
	}
	t.sweep(s)
}

// sweep is a signal for all processes of an owner.
type sweep struct {
	who    []owner
	sig    syscall.Signal
	resume bool         // CONT follows
	spared map[int]bool // groups that are left out
	rounds int          // looks at most, each for what was forked during the one before
	until  time.Time    // the looks end by then; zero: they have no end
}

// How many looks there are. Who is told may fork once more before it acts; who
// is killed, as often as it likes.
const (
	tellRounds = 2
	killRounds = 4
)

// lateAfter is how long what took too long to be looked at has until the next
// look.
const lateAfter = 20 * time.Millisecond

// killLook bounds the looks for what is to be killed: with very many processes
// the deadline must not pass over it.
const killLook = 300 * time.Millisecond

// tellLook bounds those for what is told to stop.
const tellLook = 500 * time.Millisecond

func sweepOf(sig syscall.Signal, who ...owner) sweep {
	if sig == syscall.SIGKILL {
		return sweep{who: who, sig: sig, rounds: killRounds, until: time.Now().Add(killLook)}
	}
	return sweep{who: who, sig: sig, resume: sig == syscall.SIGTERM, rounds: tellRounds, until: time.Now().Add(tellLook)}
}

// sweep signals each process once. All get it: one that has just been told to
// stop does not show it yet (its threads stop one after the other), and CONT does
// nothing to a process that runs. False: /proc can't be read.
func (t *Table) sweep(s sweep) (Rest, bool) {
	r := Rest{Known: true}
	told := make(map[int]bool)
	whole := true
	for range s.rounds {
		if !whole {
			t.awaitLate(lateAfter)
		}
		o, ok := t.look(s.until)
		if !ok {
			return Rest{}, false
		}
		before := len(told)
		o.eachOf(s.who, func(q process) {
			if !told[q.pid] && !s.spared[q.group] && !o.supervised(q, s.sig) {
				told[q.pid] = true
				r.signal(q.pid, s.sig, s.resume)
			}
		})
		if whole = o.whole; whole && len(told) == before || passed(s.until) {
			break
		}
	}
	return r, true
}

// Rest is what a look for the remains of the workload found.
type Rest struct {
	Count  int  // processes that were signalled
	Denied int  // that may not be signalled
	Known  bool // false: /proc can't be read, only the group was reached
}

// SignalRest sends sig to every process of the workload that is left, with
// resume CONT behind it, since a stopped one would not act before. group is the
// workload's process group, for when /proc can't be read. One call with KILL
// looks once, as the caller sends it again and again.
func (t *Table) SignalRest(group int, sig syscall.Signal, resume bool) Rest {
	s := sweepOf(sig, owner{theirs: true})
	s.resume = resume
	if sig == syscall.SIGKILL {
		s.rounds = 1
	}
	if r, ok := t.sweep(s); ok {
		return r
	}
	return t.signalGroup(group, sig, resume)
}

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
func (t *Table) Remains() (int, bool) { return t.count(owner{theirs: true}) }

// count counts the processes of an owner; false: /proc can't be read.
func (t *Table) count(who owner) (int, bool) {
	o, ok := t.look(time.Now().Add(killLook))
	if !ok {
		return 0, false
	}
	return o.count(who), true
}

// count counts the processes of an owner, at least one where not all have been
// looked at: those may be its.
func (o *ownership) count(who owner) int {
	n := 0
	o.each(who, func(process) { n++ })
	if !o.whole {
		n = max(n, 1)
	}
	return n
}

// Hooks tells whether a child may be a hook's: one is running, or what one left
// behind is kept.
func (t *Table) Hooks() bool {
	for _, p := range t.procs {
		if p.Hook {
			return true
		}
	}
	return len(t.kept) > 0
}

// KillAll sends KILL to every process that the init may signal (kill(2) with
// -1). It does so only as PID 1, where that is the whole PID namespace and
// nothing else; as any other process it would reach strangers.
func (t *Table) KillAll() {
	if t.self == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL)
	}
}
