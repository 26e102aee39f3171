package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestHookLeavesNothing: what a hook started is gone with it: in its group, in
// sessions of its own, double-forked.
func TestHookLeavesNothing(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	workload := startOne(t, table, shell("exec sleep 600"))
	s := shell("sleep 601 & setsid sleep 602 & (setsid sh -c 'sleep 603 & sleep 604' &) ; sleep 0.1; exit 4")
	s.Session, s.Name = true, "leaver"
	s.Env = append(s.Env, "DRAINIT_HOOK=leaver")
	hook := startOne(t, table, s)
	if !table.Hooks() {
		t.Error("no hook is seen")
	}
	if e := awaitExit(t, table, hook); e.Status != 4 {
		t.Errorf("%+v", e)
	}
	if table.Hooks() {
		t.Error("the hook is still seen")
	}
	eventually(t, "only the workload", func() bool {
		reap(table)
		n, _ := table.Remains()
		return n == 1
	})
	_ = table.Signal(workload, syscall.SIGKILL, true)
	awaitExit(t, table, workload)
}

// TestHookLeavesNothingAtOnce: also what is in the midst of an execve(2) while it
// is looked at, and shows no environment.
func TestHookLeavesNothingAtOnce(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	for range 100 {
		hook := startOne(t, table, hookSpec("phase", "leaver", daemons+"exit 3"))
		var took time.Duration
		for ended := false; !ended; time.Sleep(time.Millisecond) {
			began := time.Now()
			ended = len(reap(table).Exits) > 0
			took = time.Since(began)
		}
		if took > killLook/2 { // a machine so slow that the bound of the looks may have come first
			table.SignalRest(hook.PID, syscall.SIGKILL, false)
		}
		eventually(t, "nothing left", func() bool { return !reap(table).Left })
	}
}

// TestSignalHookReachesAll but not the workload.
func TestSignalHookReachesAll(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	workload := startOne(t, table, shell("exec sleep 600"))
	s := shell("setsid sleep 602 & (setsid sleep 603 &) ; sleep 0.1; echo up; exec sleep 604")
	s.Session, s.Name = true, "h"
	s.Env = append(s.Env, "DRAINIT_HOOK=h")
	up := make(chan string, 1)
	s.Output = func(line string) { up <- line }
	hook := startOne(t, table, s)
	<-up
	table.SignalHook(hook, syscall.SIGTERM)
	if e := awaitExit(t, table, hook); e.Status != 143 {
		t.Errorf("%+v", e)
	}
	eventually(t, "only the workload", func() bool {
		reap(table)
		n, _ := table.Remains()
		return n == 1
	})
	table.SignalHook(hook, syscall.SIGKILL) // gone: nothing
	if table.Signal(workload, 0, false) != nil {
		t.Error("the workload was hit")
	}
	_ = table.Signal(workload, syscall.SIGKILL, false)
	awaitExit(t, table, workload)
}

// TestSignalHookThatHasEnded: until its end is reaped, what left its group is
// reached all the same.
func TestSignalHookThatHasEnded(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	s := hookSpec("step", "h", daemons+"exit 0")
	s.Keep = true
	hook := startOne(t, table, s)
	eventually(t, "the zombie", func() bool { _, _, ok := peek(hook.PID, unix.WEXITED); return ok })
	table.SignalHook(hook, syscall.SIGTERM)
	eventually(t, "the end of the daemons", func() bool {
		n, known := table.count(owner{hook: hook})
		return n == 0 && known
	})
	if e := awaitExit(t, table, hook); e.Kept || e.Status != 0 {
		t.Errorf("%+v", e)
	}
	eventually(t, "nothing left", func() bool { return !reap(table).Left })
}

// TestOutputOfManyHooks arrives whole, and Drain waits for it.
func TestOutputOfManyHooks(t *testing.T) {
	if !isolated(t) {
		return
	}
	before := openFiles(t)
	table := newOwner(t)
	lines := make(chan string, 10000)
	for i := range 8 {
		s := shell("i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo $i; echo $i >&2; done")
		s.Session, s.Name, s.Output = true, strconv.Itoa(i), func(l string) { lines <- l }
		table.Start(s, i)
	}
	ended := 0
	for started := 0; started < 8; started++ {
		a := <-table.Started()
		table.Register(a)
		ended += len(reap(table).Exits)
	}
	eventually(t, "all ends", func() bool { ended += len(reap(table).Exits); return ended == 8 })
	table.Drain(patience)
	if n := len(lines); n != 1600 {
		t.Errorf("%d lines, want 1600", n)
	}
	if after := openFiles(t); after > before+4 { // the runtime's own, at the first pipe
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// TestOutputHeldOpen: a process that keeps the pipe open delays nobody.
func TestOutputHeldOpen(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	s := shell("setsid env -u DRAINIT_HOOK sleep 600 & sleep 0.1; echo done")
	got := make(chan string, 10)
	s.Session, s.Name, s.Output = true, "h", func(l string) { got <- l }
	p := startOne(t, table, s)
	awaitExit(t, table, p)
	from := time.Now()
	table.Drain(patience)
	if took := time.Since(from); took > time.Second {
		t.Errorf("took %v", took)
	}
	if l := <-got; l != "done" {
		t.Errorf("read %q", l)
	}
	table.SignalRest(0, syscall.SIGKILL, false)
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestMarkBehindLargeEnvironment: the variable that marks a hook's processes
// stands at the end, however much is in front of it.
func TestMarkBehindLargeEnvironment(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	workload := startOne(t, table, shell("exec sleep 600"))
	s := Spec{Argv: []string{os.Args[0]}, Env: []string{"CHILD_ACT=daemon"}, Session: true, Name: "big"}
	for i := range 12 {
		s.Env = append(s.Env, fmt.Sprintf("BIG%d=%s", i, strings.Repeat("x", 100<<10)))
	}
	s.Env = append(s.Env, os.Environ()...)
	s.Env = append(s.Env, "DRAINIT_HOOK=big")
	hook := startOne(t, table, s)
	awaitExit(t, table, hook)
	reap(table)
	eventually(t, "only the workload", func() bool {
		reap(table)
		n, _ := table.Remains()
		return n == 1
	})
	_ = table.Signal(workload, syscall.SIGKILL, false)
	awaitExit(t, table, workload)
}
