package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEveryStatusArrives: children that exit at once, orphans, and commands that
// can't be started, all at the same time: each status belongs to its process.
func TestEveryStatusArrives(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	const total, atOnce = 400, 8
	asked, got, refused := 0, 0, 0
	tags := map[*Proc]int{}
	more := func() {
		if asked == total {
			return
		}
		s := shell(fmt.Sprintf("(exit 9) & (exit 8) & exit %d", asked%256))
		switch asked % 4 {
		case 1:
			s = shell("kill -KILL $$")
		case 2:
			s = Spec{Argv: []string{"/no/such"}}
		}
		table.Start(s, asked)
		asked++
	}
	for range atOnce {
		more()
	}
	tick := time.NewTicker(100 * time.Microsecond) // a reaper at full speed
	defer tick.Stop()
	end := time.After(patience)
	for got+refused < total {
		select {
		case a := <-table.Started():
			table.Register(a)
			if a.Err != nil {
				var e *StartError
				if a.Tag%4 != 2 || !errors.As(a.Err, &e) || e.Status != 127 {
					t.Errorf("start %d: %v", a.Tag, a.Err)
				}
				refused++
			} else {
				tags[a.Proc] = a.Tag
			}
			more()
		case <-tick.C:
		case <-end:
			t.Fatalf("%d of %d ends", got, total)
		}
		for _, e := range table.Reap().Exits {
			tag, want := tags[e.Proc], 137
			if tag%4 != 1 {
				want = tag % 256
			}
			if e.Status != want || (e.Signal == syscall.SIGKILL) != (tag%4 == 1) {
				t.Errorf("process %d: status %d signal %v, want %d", tag, e.Status, e.Signal, want)
			}
			got++
		}
	}
	eventually(t, "nothing left", func() bool { return !table.Reap().Left })
	if n := table.Orphans(); n == 0 || n > 2*total {
		t.Errorf("%d orphans", n)
	}
}

// TestReapDuringFork: until a fork has been answered the table does not know the
// number, so it says that something is left, and takes in the end afterwards.
func TestReapDuringFork(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	table.Start(shell("exit 7"), 1)
	a := <-table.Started() // forked, perhaps ended, and not registered
	time.Sleep(20 * time.Millisecond)
	r := table.Reap()
	if len(r.Exits) > 0 || !r.Left || r.Orphans > 0 {
		t.Errorf("before it is known: %+v", r)
	}
	table.Register(a)
	r = table.Reap()
	if len(r.Exits) != 1 || r.Exits[0].Status != 7 || r.Left {
		t.Errorf("afterwards: %+v", r)
	}
}

// TestLeft is exact when it says that nothing is left.
func TestLeft(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	if table.Reap().Left {
		t.Error("left before anything was started")
	}
	p := startOne(t, table, shell("sleep 600 & exit 3"))
	var e Exit
	eventually(t, "the shell's end", func() bool {
		r := table.Reap()
		if len(r.Exits) == 1 {
			e = r.Exits[0]
			if !r.Left {
				t.Error("the sleep is not seen")
			}
		}
		return len(r.Exits) == 1
	})
	if e.Proc != p || e.Status != 3 {
		t.Errorf("%+v", e)
	}
	if n, ok := table.Remains(); !ok || n != 1 {
		t.Errorf("remains %d, %v", n, ok)
	}
	if r := table.SignalRest(p.PID, syscall.SIGTERM, true); r.Count != 1 || !r.Known {
		t.Errorf("%+v", r)
	}
	eventually(t, "nothing left", func() bool { return !table.Reap().Left })
}

// TestStopped reads the state of a child, and the signal, out of siginfo_t, and
// takes nothing.
func TestStopped(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	p := startOne(t, table, shell("exec sleep 600"))
	if sig, stopped := table.Stopped(p); stopped {
		t.Errorf("stopped by %v", sig)
	}
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		_ = table.Signal(p, sig, false)
		eventually(t, sig.String(), func() bool { got, stopped := table.Stopped(p); return stopped && got == sig })
		if got, stopped := table.Stopped(p); !stopped || got != sig {
			t.Errorf("asked again: %v, %v", got, stopped)
		}
		if r := table.Reap(); len(r.Exits) > 0 {
			t.Errorf("%+v", r)
		}
		_ = table.Signal(p, syscall.SIGCONT, false)
		eventually(t, "CONT", func() bool { _, stopped := table.Stopped(p); return !stopped })
	}
	_ = table.Signal(p, syscall.SIGKILL, false)
	if e := awaitExit(t, table, p); e.Status != 137 || e.Signal != syscall.SIGKILL {
		t.Errorf("%+v", e)
	}
	if err := table.Signal(p, syscall.SIGTERM, false); err != syscall.ESRCH {
		t.Errorf("signal to a process that is gone: %v", err)
	}
}

// TestPeekReadsStatus: si_status is where the tests of all statuses find it.
func TestPeekReadsStatus(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	for _, status := range []int{0, 1, 2, 77, 128, 255} {
		p := startOne(t, table, shell("exit "+strconv.Itoa(status)))
		got := 0
		eventually(t, "the zombie", func() bool { got = peek(p.PID, 4); return got != 0 }) // WEXITED
		if got != max(status, 1) {
			t.Errorf("status %d read as %d", status, got)
		}
		if e := awaitExit(t, table, p); e.Status != status {
			t.Errorf("status %d reaped as %d", status, e.Status)
		}
	}
}

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
		table.Reap()
		n, _ := table.Remains()
		return n == 1
	})
	_ = table.Signal(workload, syscall.SIGKILL, true)
	awaitExit(t, table, workload)
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
		table.Reap()
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

// TestStartErrors are told apart.
func TestStartErrors(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	big := make([]byte, 200<<10)
	for i := range big {
		big[i] = 'x'
	}
	for _, c := range []struct {
		spec   Spec
		status int
		cause  error
	}{
		{Spec{Argv: []string{"/no/such"}}, 127, fs.ErrNotExist},
		{Spec{Argv: []string{"no-such"}}, 127, fs.ErrNotExist},
		{Spec{Argv: []string{""}}, 127, fs.ErrNotExist},
		{Spec{Argv: []string{"/etc/passwd/x"}}, 127, syscall.ENOTDIR},
		{Spec{Argv: []string{"/tmp"}}, 126, fs.ErrPermission},
		{Spec{Argv: []string{"/etc/passwd"}}, 126, fs.ErrPermission},
		{Spec{Argv: []string{"/bin/sh"}, Env: []string{"X=" + string(big)}}, 126, syscall.E2BIG},
	} {
		table.Start(c.spec, 3)
		a := <-table.Started()
		table.Register(a)
		var e *StartError
		if !errors.As(a.Err, &e) || e.Status != c.status || !errors.Is(e, c.cause) || a.Tag != 3 || a.Proc != nil {
			t.Errorf("%.20q: %+v", c.spec.Argv, a.Err)
		}
	}
	if table.Reap().Left {
		t.Error("something is left")
	}
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
		s := shell("seq 100; seq 100 >&2")
		s.Session, s.Name, s.Output = true, strconv.Itoa(i), func(l string) { lines <- l }
		table.Start(s, i)
	}
	ended := 0
	for started := 0; started < 8; started++ {
		a := <-table.Started()
		table.Register(a)
		ended += len(table.Reap().Exits)
	}
	eventually(t, "all ends", func() bool { ended += len(table.Reap().Exits); return ended == 8 })
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
	table.Reap()
	eventually(t, "only the workload", func() bool {
		table.Reap()
		n, _ := table.Remains()
		return n == 1
	})
	_ = table.Signal(workload, syscall.SIGKILL, false)
	awaitExit(t, table, workload)
}
