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

// SignalLeft sends sig to what a kept hook left behind, with CONT behind TERM, and
// returns how many processes that were. Without a readable /proc that is the
// hook's own group, which counts as one.
func (t *Table) SignalLeft(p *Proc, sig syscall.Signal) int {
	if !slices.Contains(t.kept, p) {
		return 0
	}
	r, ok := t.sweep(sweepOf(owner{hook: p}, sig))
	if !ok && !p.lost {
		r = t.signalGroup(p.PID, sig, sig == syscall.SIGTERM)
	}
	return r.Count
}

// Left counts what a kept hook left behind; known is false where /proc can't be
// read, and n is then 1 when there is something in the hook's own group, else 0.
// Nothing is left of a hook that is not kept.
func (t *Table) Left(p *Proc) (n int, known bool) {
	if !slices.Contains(t.kept, p) {
		return 0, true
	}
	if n, known = t.count(owner{hook: p}); !known && !p.lost && groupExists(p.PID) {
		n = 1
	}
	return n, known
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
func (t *Table) census() {
	if o, ok := t.look(time.Now().Add(killLook)); ok {
		o.each(owner{}, func(process) {})
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
