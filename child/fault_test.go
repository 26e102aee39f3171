package child

import "testing"

// TestFaultInAStart: what faults on the forking thread is the answer of that one
// start; the next is served.
func TestFaultInAStart(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	s := shell("exit 0")
	s.Check = func() error { panic("boom") }
	table.Start(s, 5)
	a := <-table.Started()
	table.Register(a)
	if a.Err == nil || a.Proc != nil || a.Tag != 5 {
		t.Errorf("%+v", a)
	}
	p := startOne(t, table, shell("exit 4"))
	if e := awaitExit(t, table, p); e.Status != 4 {
		t.Errorf("%+v", e)
	}
}
