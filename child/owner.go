package child

import (
	"os"
	"time"
)

// Whose is a process? A hook's, when it belongs to the hook's session or
// group, descends from it, or was executed with the hook's environment: a
// daemon that a hook started leaves the session (setsid(2)) and, when its
// parent ends, the family too, but keeps the environment that marks it.
// Everything else that descends from the init, or was adopted by it, is the
// workload's. What came in from outside (docker exec: its parent shows as 0) is
// nobody's here.

// ownership sorts the processes of one look at /proc.
type ownership struct {
	t      *Table
	byPID  map[int]process
	owner  map[int]owner
	marked bool // the environment tells hooks apart
}

// owner is what a process belongs to: a hook's pid, or one of these.
type owner int

const (
	outside owner = 0
	theirs  owner = -1 // the workload's
)

// look reads /proc and sorts it; false when it can't be read.
func (t *Table) look() (ownership, bool) { return t.lookFor(0) }

// lookFor is look within a limit of time.
func (t *Table) lookFor(limit time.Duration) (ownership, bool) {
	all, ok := t.proc.list(limit)
	if !ok {
		return ownership{}, false
	}
	o := ownership{t: t, byPID: make(map[int]process, len(all)), owner: make(map[int]owner, len(all))}
	for _, p := range all {
		o.byPID[p.pid] = p
	}
	// Below another drainit everything carries the mark of its hook.
	_, inherited := os.LookupEnv("DRAINIT_HOOK")
	o.marked = t.hooks && !inherited
	return o, true
}

// of returns the owner of a process. The chain of parents is followed up to
// the init or to the first ancestor that is known; a chain can't be longer than
// the table, even if numbers were reused while it was read.
func (o *ownership) of(p process) owner {
	if who, ok := o.owner[p.pid]; ok {
		return who
	}
	who := o.find(p, len(o.byPID))
	o.owner[p.pid] = who
	return who
}

func (o *ownership) find(p process, depth int) owner {
	switch {
	case p.pid == o.t.self || depth < 0:
		return outside
	case o.isHook(p.session):
		return owner(p.session)
	case o.isHook(p.group):
		return owner(p.group)
	case p.parent == o.t.self:
		return o.adopted(p)
	}
	parent, ok := o.byPID[p.parent]
	if !ok {
		return outside
	}
	if who, ok := o.owner[parent.pid]; ok {
		return who
	}
	who := o.find(parent, depth-1)
	o.owner[parent.pid] = who
	return who
}

// adopted tells a hook's stray daemon from the workload's processes.
func (o *ownership) adopted(p process) owner {
	if known := o.t.procs[p.pid]; known != nil && !known.Hook {
		return theirs
	}
	if o.t.pending > 0 && o.t.proc.sameProgram(p.pid) {
		return outside // just forked, and not known by its number yet
	}
	if !o.marked {
		return theirs
	}
	name := o.t.proc.hook(p.pid)
	if name == "" {
		return theirs
	}
	for pid, h := range o.t.procs {
		if h.Hook && h.Name == name {
			return owner(pid)
		}
	}
	if o.t.pending > 0 {
		return outside // of the hook that is being started
	}
	return theirs // of a hook that is long gone: it ends with the workload
}

// isHook tells whether pid leads a hook's session.
func (o *ownership) isHook(pid int) bool {
	p := o.t.procs[pid]
	return p != nil && p.Hook
}

// each calls f for every process that belongs to who.
func (o *ownership) each(who owner, f func(process)) {
	for _, p := range o.byPID {
		if o.of(p) == who {
			f(p)
		}
	}
}
