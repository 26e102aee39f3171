package child

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
		for _, e := range reap(table).Exits {
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
	eventually(t, "nothing left", func() bool { return !reap(table).Left })
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
	r := reap(table)
	if len(r.Exits) > 0 || !r.Left || r.Orphans > 0 {
		t.Errorf("before it is known: %+v", r)
	}
	table.Register(a)
	r = reap(table)
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
	if reap(table).Left {
		t.Error("left before anything was started")
	}
	p := startOne(t, table, shell("sleep 600 & exit 3"))
	var e Exit
	eventually(t, "the shell's end", func() bool {
		r := reap(table)
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
	eventually(t, "nothing left", func() bool { return !reap(table).Left })
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
		if r := reap(table); len(r.Exits) > 0 {
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
		var code, got int
		eventually(t, "the zombie", func() (ok bool) { code, got, ok = peek(p.PID, unix.WEXITED); return ok })
		if got != status || code != exited {
			t.Errorf("status %d read as %d, code %d", status, got, code)
		}
		if e := awaitExit(t, table, p); e.Status != status {
			t.Errorf("status %d reaped as %d", status, e.Status)
		}
	}
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
	if reap(table).Left {
		t.Error("something is left")
	}
}
