package child

import (
	"slices"
	"testing"
)

// lookAt is a look at a process table that is not there: 1 is the init, 10 the
// workload, 20 and 30 hooks, 40 one that has ended and is kept.
type lookAt struct {
	*ownership
	workload, a, b, kept owner
}

func synthetic(all ...process) lookAt {
	a := &Proc{PID: 20, Hook: true, Name: "a", Kind: "phase"}
	b := &Proc{PID: 30, Hook: true, Name: "b", Kind: "step"}
	kept := &Proc{PID: 40, Hook: true, Name: "b", Kind: "step"}
	t := &Table{self: 1, hooks: true, procs: map[int]*Proc{10: {PID: 10}, 20: a, 30: b}, kept: []*Proc{kept}, marks: newMarks()}
	o := &ownership{t: t, byPID: map[int]process{}, owner: map[int]owner{}}
	for _, p := range append(all,
		process{pid: 1, state: 'S'},
		process{pid: 10, parent: 1, group: 10, state: 'S'},
		process{pid: 20, parent: 1, group: 20, session: 20, state: 'S'},
		process{pid: 30, parent: 1, group: 30, session: 30, state: 'S'},
	) {
		o.byPID[p.pid] = p
	}
	return lookAt{o, owner{theirs: true}, owner{hook: a}, owner{hook: b}, owner{hook: kept}}
}

func TestOwnership(t *testing.T) {
	workload := func(l lookAt) owner { return l.workload }
	hookA := func(l lookAt) owner { return l.a }
	hookB := func(l lookAt) owner { return l.b }
	kept := func(l lookAt) owner { return l.kept }
	nobody := func(lookAt) owner { return owner{} }
	for _, c := range []struct {
		what string
		all  []process
		want func(lookAt) owner
	}{
		{"child of the workload", []process{{pid: 99, parent: 10, group: 10}}, workload},
		{"grandchild in a session of its own", []process{{pid: 99, parent: 50, session: 99}, {pid: 50, parent: 10}}, workload},
		{"adopted", []process{{pid: 99, parent: 1, group: 50, session: 50}}, workload},
		{"the init", []process{{pid: 99, parent: 1}}, workload},
		{"child of a hook", []process{{pid: 99, parent: 20, group: 20, session: 20}}, hookA},
		{"adopted, in a hook's session", []process{{pid: 99, parent: 1, group: 60, session: 20}}, hookA},
		{"adopted, in a hook's group", []process{{pid: 99, parent: 1, group: 30, session: 0}}, hookB},
		{"below a hook, in a session of its own", []process{{pid: 99, parent: 20, group: 99, session: 99}}, hookA},
		{"two below a hook", []process{{pid: 99, parent: 98, session: 99}, {pid: 98, parent: 30, session: 98}}, hookB},
		{"docker exec", []process{{pid: 99, parent: 0, group: 0, session: 0}}, nobody},
		{"below docker exec", []process{{pid: 99, parent: 98, group: 99, session: 99}, {pid: 98, parent: 0}}, nobody},
		{"a parent that has just gone", []process{{pid: 99, parent: 77}}, nobody},
		{"a stranger beside us", []process{{pid: 99, parent: 5}, {pid: 5, parent: 2}, {pid: 2, parent: 0}}, nobody},
		{"a circle", []process{{pid: 99, parent: 98}, {pid: 98, parent: 99}}, nobody},
		{"a parent that has just gone, in the workload's group", []process{{pid: 99, parent: 77, group: 10}}, workload},
		{"one that hangs, of a hook's session", []process{{pid: 99, parent: unknownParent, group: 99, session: 30}}, hookB},
		{"one that hangs, of the workload's group", []process{{pid: 99, parent: unknownParent, group: 10, session: 0}}, workload},
		{"one that hangs, of somebody", []process{{pid: 99, parent: unknownParent, group: 99, session: 99}}, nobody},
		{"its own parent", []process{{pid: 99, parent: 99}}, nobody},
		{"in the session of a kept hook", []process{{pid: 99, parent: 1, group: 60, session: 40}}, kept},
		{"in the group of a kept hook", []process{{pid: 99, parent: 1, group: 40}}, kept},
		{"below what a kept hook left", []process{{pid: 99, parent: 98, session: 99}, {pid: 98, parent: 1, session: 40}}, kept},
	} {
		o := synthetic(c.all...)
		if got, want := o.of(o.byPID[99]), c.want(o); got != want {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
	}
	o := synthetic()
	if got := o.of(o.byPID[1]); got != (owner{}) {
		t.Errorf("the init itself: %+v", got)
	}
	if got := o.of(o.byPID[10]); got != o.workload {
		t.Errorf("the workload: %+v", got)
	}
	if got := o.of(o.byPID[30]); got != o.b {
		t.Errorf("a hook: %+v", got)
	}
}

// TestOwnershipOrder: the answer does not depend on who is asked about first.
func TestOwnershipOrder(t *testing.T) {
	all := []process{
		{pid: 100, parent: 20}, {pid: 101, parent: 100, session: 101}, {pid: 102, parent: 101},
		{pid: 110, parent: 10}, {pid: 111, parent: 110}, {pid: 112, parent: 111},
		{pid: 120, parent: 0}, {pid: 121, parent: 120},
	}
	for range 20 { // each walks the map in another order
		o := synthetic(all...)
		want := map[owner][]int{o.a: {20, 100, 101, 102}, o.workload: {10, 110, 111, 112}, {}: {1, 120, 121}, o.b: {30}}
		for who, pids := range want {
			var got []int
			o.each(who, func(p process) { got = append(got, p.pid) })
			slices.Sort(got)
			if !slices.Equal(got, pids) {
				t.Fatalf("owner %+v: %v, want %v", who, got, pids)
			}
		}
	}
}

// TestMarkTells whose an adopted process is.
func TestMarkTells(t *testing.T) {
	for _, c := range []struct {
		what    string
		is      mark
		pending int
		want    func(lookAt) owner
	}{
		{"none", mark{}, 0, func(l lookAt) owner { return l.workload }},
		{"none, while something is started", mark{}, 1, func(l lookAt) owner { return l.workload }},
		{"a hook's", mark{"a", "phase"}, 0, func(l lookAt) owner { return l.a }},
		{"a hook of another kind", mark{"a", "companion"}, 0, func(l lookAt) owner { return l.workload }},
		{"a kept hook's and a running one's", mark{"b", "step"}, 0, func(l lookAt) owner { return l.kept }},
		{"a hook's that is gone", mark{"c", "phase"}, 0, func(l lookAt) owner { return l.workload }},
		{"a hook's that is perhaps being started", mark{"c", "phase"}, 1, func(lookAt) owner { return owner{} }},
		{"inherited from an init above", mark{"b", "step"}, -1, func(l lookAt) owner { return l.workload }},
	} {
		o := synthetic(process{pid: 99, parent: 1, session: 99, group: 99, start: 7})
		if o.t.pending = c.pending; c.pending < 0 {
			o.t.pending, o.t.inherited = 0, c.is
		}
		o.t.marks.known[identity{99, 7}] = c.is
		if got, want := o.of(o.byPID[99]), c.want(o); got != want {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
	}
}

// TestOnceAHooksAlwaysAHooks: what was found out about a process holds when it
// has left session and family, and not for another one of its number.
func TestOnceAHooksAlwaysAHooks(t *testing.T) {
	o := synthetic(process{pid: 99, parent: 20, session: 20, group: 20, start: 7})
	if got := o.of(o.byPID[99]); got != o.a {
		t.Fatalf("%+v", got)
	}
	again := func(start uint64) owner {
		next := &ownership{t: o.t, byPID: map[int]process{}, owner: map[int]owner{}}
		p := process{pid: 99, parent: 1, session: 99, group: 99, start: start}
		next.byPID[99] = p
		return next.of(p)
	}
	if got := again(7); got != o.a {
		t.Errorf("adopted: %+v", got)
	}
	if got := again(8); got != o.workload {
		t.Errorf("another process of that number: %+v", got)
	}
}

// TestLostNumber: the number of a kept hook is good until another process has it.
func TestLostNumber(t *testing.T) {
	stray := process{pid: 99, parent: 1, session: 40, group: 99}
	for what, c := range map[string]struct {
		lose func(o lookAt)
		want func(lookAt) owner
	}{
		"nothing happened":         {func(lookAt) {}, func(l lookAt) owner { return l.kept }},
		"a look that is not whole": {func(l lookAt) { l.t.checkNumbers(nil, false) }, func(l lookAt) owner { return l.kept }},
		"one is left":              {func(l lookAt) { l.t.checkNumbers([]process{stray}, true) }, func(l lookAt) owner { return l.kept }},
		"a process has it":         {func(l lookAt) { l.t.checkNumbers([]process{{pid: 40}, stray}, true) }, func(l lookAt) owner { return l.workload }},
		"a process had it":         {func(l lookAt) { l.t.taken(40) }, func(l lookAt) owner { return l.workload }},
		"started with it":          {func(l lookAt) { l.t.Register(Started{Proc: &Proc{PID: 40}}) }, func(l lookAt) owner { return l.workload }},
	} {
		o := synthetic(stray)
		c.lose(o)
		if got, want := o.of(o.byPID[99]), c.want(o); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
}

// TestNumberOfNobody: a number that no session and no group has is lost.
func TestNumberOfNobody(t *testing.T) {
	const beyond = 1 << 29 // what pid_max may be
	p := &Proc{PID: beyond, Hook: true}
	table := &Table{kept: []*Proc{p}}
	table.checkNumbers([]process{{pid: 1, session: 1, group: 1}}, false)
	if p.lost {
		t.Error("not all processes have been looked at")
	}
	table.checkNumbers([]process{{pid: 1, session: 1, group: 1}}, true)
	if !p.lost {
		t.Error("it is free")
	}
}
