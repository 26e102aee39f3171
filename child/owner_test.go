package child

import (
	"slices"
	"testing"
)

// synthetic is a look at a process table that is not there: 1 is the init, 10
// the workload, 20 and 30 hooks.
func synthetic(all ...process) *ownership {
	t := &Table{self: 1, procs: map[int]*Proc{
		10: {PID: 10},
		20: {PID: 20, Hook: true, Name: "a"},
		30: {PID: 30, Hook: true, Name: "b"},
	}}
	o := &ownership{t: t, byPID: map[int]process{}, owner: map[int]owner{}}
	for _, p := range append(all,
		process{pid: 1, state: 'S'},
		process{pid: 10, parent: 1, group: 10, state: 'S'},
		process{pid: 20, parent: 1, group: 20, session: 20, state: 'S'},
		process{pid: 30, parent: 1, group: 30, session: 30, state: 'S'},
	) {
		o.byPID[p.pid] = p
	}
	return o
}

func TestOwnership(t *testing.T) {
	for _, c := range []struct {
		what string
		all  []process
		want owner
	}{
		{"child of the workload", []process{{pid: 99, parent: 10, group: 10}}, theirs},
		{"grandchild in a session of its own", []process{{pid: 99, parent: 50, session: 99}, {pid: 50, parent: 10}}, theirs},
		{"adopted", []process{{pid: 99, parent: 1, group: 50, session: 50}}, theirs},
		{"the init", []process{{pid: 99, parent: 1}}, theirs},
		{"child of a hook", []process{{pid: 99, parent: 20, group: 20, session: 20}}, 20},
		{"adopted, in a hook's session", []process{{pid: 99, parent: 1, group: 60, session: 20}}, 20},
		{"adopted, in a hook's group", []process{{pid: 99, parent: 1, group: 30, session: 0}}, 30},
		{"below a hook, in a session of its own", []process{{pid: 99, parent: 20, group: 99, session: 99}}, 20},
		{"two below a hook", []process{{pid: 99, parent: 98, session: 99}, {pid: 98, parent: 30, session: 98}}, 30},
		{"docker exec", []process{{pid: 99, parent: 0, group: 0, session: 0}}, outside},
		{"below docker exec", []process{{pid: 99, parent: 98, group: 99, session: 99}, {pid: 98, parent: 0}}, outside},
		{"a parent that has just gone", []process{{pid: 99, parent: 77}}, outside},
		{"a stranger beside us", []process{{pid: 99, parent: 5}, {pid: 5, parent: 2}, {pid: 2, parent: 0}}, outside},
		{"a circle", []process{{pid: 99, parent: 98}, {pid: 98, parent: 99}}, outside},
		{"its own parent", []process{{pid: 99, parent: 99}}, outside},
	} {
		o := synthetic(c.all...)
		if got := o.of(o.byPID[99]); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
	o := synthetic()
	if got := o.of(o.byPID[1]); got != outside {
		t.Errorf("the init itself: %d", got)
	}
	if got := o.of(o.byPID[10]); got != theirs {
		t.Errorf("the workload: %d", got)
	}
	if got := o.of(o.byPID[30]); got != 30 {
		t.Errorf("a hook: %d", got)
	}
}

// TestOwnershipOrder: the answer does not depend on who is asked about first.
func TestOwnershipOrder(t *testing.T) {
	all := []process{
		{pid: 100, parent: 20}, {pid: 101, parent: 100, session: 101}, {pid: 102, parent: 101},
		{pid: 110, parent: 10}, {pid: 111, parent: 110}, {pid: 112, parent: 111},
		{pid: 120, parent: 0}, {pid: 121, parent: 120},
	}
	want := map[owner][]int{20: {20, 100, 101, 102}, theirs: {10, 110, 111, 112}, outside: {1, 120, 121}, 30: {30}}
	for range 20 { // each walks the map in another order
		o := synthetic(all...)
		for who, pids := range want {
			var got []int
			o.each(who, func(p process) { got = append(got, p.pid) })
			slices.Sort(got)
			if !slices.Equal(got, pids) {
				t.Fatalf("owner %d: %v, want %v", who, got, pids)
			}
		}
	}
}
