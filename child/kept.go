package child

import (
	"slices"
	"syscall"
	"time"
)

// A hook that is kept (Spec.Keep) has ended and been reaped, and stays in the
// table for what it left behind. That is found as a running hook's processes are,
// but for one thing: nobody holds its number any more. The kernel gives a number
// to no new process as long as it is a session's or a group's, so it is good as
// long as one is left; once another process has come by it, it is not asked again
// (lost).

// SignalLeft sends sig to what kept hooks left behind, with CONT behind TERM, and
// returns how many processes that were. Without a readable /proc those are the
// hooks' own groups, each of which counts as one.
func (t *Table) SignalLeft(all []*Proc, sig syscall.Signal) int {
	s := sweepOf(sig)
	for _, p := range all {
		if slices.Contains(t.kept, p) {
			s.who = append(s.who, owner{hook: p})
		}
	}
	if len(s.who) == 0 {
		return 0
	}
	if r, ok := t.sweep(s); ok {
		return r.Count
	}
	n := 0
	for _, who := range s.who {
		if !who.hook.lost {
			n += t.signalGroup(who.hook.PID, sig, sig == syscall.SIGTERM).Count
		}
	}
	return n
}

// Left counts what each of some kept hooks left behind, by one look; known is
// false where /proc can't be read, and a count is then 1 when there is something
// in the hook's own group, else 0. Nothing is left of a hook that is not kept.
func (t *Table) Left(all []*Proc) (counts []int, known bool) {
	counts = make([]int, len(all))
	o, known := t.look(time.Now().Add(killLook))
	for i, p := range all {
		switch {
		case !slices.Contains(t.kept, p):
		case known:
			counts[i] = o.count(owner{hook: p})
		case !p.lost && groupExists(p.PID):
			counts[i] = 1
		}
	}
	return counts, known
}

// Forget ends the keeping: what is left is the workload's from now on, and its
// output is not read any more.
func (t *Table) Forget(p *Proc) {
	if i := slices.Index(t.kept, p); i >= 0 {
		t.kept = slices.Delete(t.kept, i, i+1)
		p.endOutput()
	}
}

// census finds out what belongs to whom while a hook that will be kept is a
// zombie, so that it is known whatever becomes of it afterwards.
// As long as no workload has been asked for, what nobody owns can only be a
// hook's, and that of one which has just ended: many a daemon overwrites its
// environment, and so its mark, with its title (redis, nginx, postgres).
//
// A number that nobody uses but the zombie itself is free once that is reaped.
func (t *Table) census(ending []*Proc) {
	o, ok := t.look(time.Now().Add(killLook))
	if !ok {
		return
	}
	used := make(map[int]bool)
	for _, q := range o.byPID {
		used[q.session], used[q.group] = true, true
		if o.of(q).theirs && !t.working {
			t.marks.note(q.identity(), ending[0].mark())
		}
	}
	for _, p := range ending {
		p.lost = o.whole && !used[p.PID]
	}
}

// taken is told of every process that has a number now, or had it a moment ago.
func (t *Table) taken(pid int) {
	for _, p := range t.kept {
		p.lost = p.lost || p.PID == pid
	}
}

// checkNumbers finds out which kept hooks have lost their numbers: those that are
// a process's, and those that are no session's and no group's. Only a look at all
// processes tells the latter, and only with the kernel's word for the group, as a
// process can be born during it.
func (t *Table) checkNumbers(all []process, whole bool) {
	if len(t.kept) == 0 {
		return
	}
	used := make(map[int]bool)
	for _, p := range all {
		used[p.session], used[p.group] = true, true
		t.taken(p.pid)
	}
	for _, p := range t.kept {
		if whole && !used[p.PID] && !groupExists(p.PID) {
			p.lost = true
		}
	}
}

// groupExists asks for a process group, zombies included.
func groupExists(group int) bool { return syscall.Kill(-group, 0) != syscall.ESRCH }
