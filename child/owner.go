package child

import (
	"slices"
	"syscall"
	"time"
)

// Whose is a process? A hook's, when it belongs to the hook's session or
// group, descends from it, or was executed with the hook's environment: a
// daemon that a hook started leaves the session (setsid(2)) and, when its
// parent ends, the family too, but keeps the environment that marks it. What has
// once been seen to be a hook's stays it. Everything else that descends from the
// init, or was adopted by it, is the workload's. What came in from outside
// (docker exec: its parent shows as 0) is nobody's here.

// owner is what a process belongs to. The zero value is nobody here.
type owner struct {
	hook   *Proc // one that runs, or that is kept
	theirs bool  // the workload
}

// ownership sorts the processes of one look at /proc.
type ownership struct {
	t      *Table
	whole  bool // false: another look may tell more
	byPID  map[int]process
	owner  map[int]owner
	forked map[int]bool // perhaps by us and just now: not known by its number yet
}

// look reads /proc and sorts it, within a limit of time; the zero time never
// comes. False: it can't be read.
func (t *Table) look(until time.Time) (*ownership, bool) {
	l, ok := t.proc.list(until)
	if !ok {
		return nil, false
	}
	n := len(l.all)
	o := &ownership{t: t, whole: l.whole, byPID: make(map[int]process, n), owner: make(map[int]owner, n)}
	for _, p := range l.all {
		if p.start == 0 {
			p.start = t.marks.startOf(p.pid)
		}
		o.byPID[p.pid] = p
	}
	if !t.hooks { // then everything is the workload's, whatever it carries
		return o, true
	}
	t.checkNumbers(l.all, l.whole)
	if l.whole {
		t.marks.forget(func(id identity) bool { return o.byPID[id.pid].start != id.start })
	}
	forked, missing := t.marks.learn(o.unknown(), t.pending > 0, until)
	o.forked, o.whole = forked, l.whole && missing == 0
	return o, true
}

// awaitLate waits until something that got stuck has answered, at most limit.
func (t *Table) awaitLate(limit time.Duration) {
	select {
	case a := <-t.proc.reader.answers:
		delete(t.proc.reader.stuck, a.key)
	case a := <-t.marks.reader.answers:
		delete(t.marks.reader.stuck, a.key)
	case <-time.After(limit):
	}
}

// unknown are the processes of which only the mark can tell whose they are.
func (o *ownership) unknown() []identity {
	var all []identity
	for _, p := range o.byPID {
		id := p.identity()
		if _, known := o.t.marks.known[id]; known || id.start == 0 || p.parent != o.t.self {
			continue
		}
		if o.t.procs[p.pid] == nil && o.t.leader(p.session) == nil && o.t.leader(p.group) == nil {
			all = append(all, id)
		}
	}
	return all
}

// of returns the owner of a process. The chain of parents is followed up to
// the init or to the first ancestor that is known; a chain can't be longer than
// the table, even if numbers were reused while it was read.
func (o *ownership) of(p process) owner { return o.resolve(p, len(o.byPID)) }

func (o *ownership) resolve(p process, depth int) owner {
	who, ok := o.owner[p.pid]
	if ok {
		return who
	}
	who = o.find(p, depth)
	o.owner[p.pid] = who
	if who.hook != nil {
		o.t.marks.note(p.identity(), who.hook.mark())
	}
	return who
}

func (o *ownership) find(p process, depth int) owner {
	if p.pid == o.t.self || depth < 0 {
		return owner{}
	}
	for _, number := range []int{p.session, p.group} {
		if h := o.t.leader(number); h != nil {
			return owner{hook: h}
		}
	}
	if p.parent == o.t.self {
		return o.adopted(p)
	}
	if parent, ok := o.byPID[p.parent]; ok {
		return o.resolve(parent, depth-1)
	}
	return owner{theirs: o.t.procs[p.group] != nil} // no hook's group: that was asked above
}

// adopted tells a hook's stray daemon from the workload's processes.
func (o *ownership) adopted(p process) owner {
	if o.forked[p.pid] {
		return owner{}
	}
	is := o.t.marks.known[p.identity()]
	if is.name == "" || is == o.t.inherited || o.t.procs[p.pid] != nil {
		return owner{theirs: true}
	}
	if h := o.t.marked(is); h != nil {
		return owner{hook: h}
	}
	// Of the hook that is being started; or of one that is long gone: that ends
	// with the workload.
	return owner{theirs: o.t.pending == 0}
}

// each calls f for every process that belongs to who.
func (o *ownership) each(who owner, f func(process)) { o.eachOf([]owner{who}, f) }

// eachOf calls f for every process that belongs to one of who.
func (o *ownership) eachOf(who []owner, f func(process)) {
	for _, p := range o.byPID {
		if slices.Contains(who, o.of(p)) {
			f(p)
		}
	}
}

// supervised tells that a process is to be told to stop by its own parent.
func (o *ownership) supervised(p process, sig syscall.Signal) bool {
	h := o.of(p).hook
	return sig == syscall.SIGTERM && h != nil && h.supervises && p.group != h.PID && p.parent != o.t.self
}

// leader returns the hook whose session, and group, has that number.
func (t *Table) leader(number int) *Proc {
	if p := t.procs[number]; p != nil && p.Hook {
		return p
	}
	for _, p := range t.kept {
		if p.PID == number && !p.lost {
			return p
		}
	}
	return nil
}

// marked returns the hook that has a mark; nil: there is none any more. A call
// that runs beside what an earlier one of the same hook left behind, a step's
// stop, gets none of that: its own strays are ended with the rest.
func (t *Table) marked(is mark) *Proc {
	for _, p := range t.kept {
		if p.Hook && p.mark() == is {
			return p
		}
	}
	for _, p := range t.procs {
		if p.Hook && p.mark() == is {
			return p
		}
	}
	return nil
}
