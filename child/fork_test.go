package child

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// lease makes everybody wait who opens a file, in execve(2) too, until it is given
// up (fcntl(2)).
type lease struct{ f *os.File }

func (l lease) fcntl(t *testing.T, cmd, arg int) int {
	t.Helper()
	n, err := unix.FcntlInt(l.f.Fd(), cmd, arg)
	if err != nil {
		t.Fatal("lease:", err)
	}
	return n
}

// waitedFor tells that somebody waits.
func (l lease) waitedFor(t *testing.T) bool { return l.fcntl(t, unix.F_GETLEASE, 0) != unix.F_WRLCK }

func (l lease) giveUp(t *testing.T) { l.fcntl(t, unix.F_SETLEASE, unix.F_UNLCK) }

// hungScript is one whose execve(2) does not come back.
func hungScript(t *testing.T) (path string, l lease) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	l = lease{f}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("no leases on this file system: " + err.Error())
	}
	return path, l
}

// served takes the answer to a start and awaits the end of the process.
func served(t *testing.T, table *Table, tag, status int) {
	t.Helper()
	a := <-table.Started()
	table.Register(a)
	if a.Tag != tag || a.Err != nil {
		t.Fatalf("%+v, want %d", a, tag)
	}
	if e := awaitExit(t, table, a.Proc); e.Status != status {
		t.Errorf("%+v", e)
	}
}

// TestGiveUpExecve: what waits behind an execve(2) that hangs is served by another
// thread, and the late answer arrives all the same.
func TestGiveUpExecve(t *testing.T) {
	if !isolated(t) {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	path, hangs := hungScript(t)
	may := make(chan bool, 10)
	table := newOwner(t)
	table.Collect = func(b bool) { may <- b }
	table.Start(Spec{Argv: []string{path}}, 1)
	eventually(t, "execve", func() bool { return hangs.waitedFor(t) })
	table.Start(shell("exit 3"), 2)
	table.Start(shell("exit 4"), 3)
	if !table.GiveUp() {
		t.Fatal("was refused")
	}
	served(t, table, 2, 3)
	served(t, table, 3, 4)
	if !reap(table).Left || table.pending != 1 || len(may) != 1 {
		t.Errorf("the one that hangs is not seen: %d pending, %d calls", table.pending, len(may))
	}
	hangs.giveUp(t)
	served(t, table, 1, 7)
	if reap(table).Left || table.hung.Load() != 0 {
		t.Errorf("%d hang", table.hung.Load())
	}
	if <-may || !<-may {
		t.Error("the collector was not kept from running, or for ever")
	}
	for tag := range 10 {
		table.Start(shell("exit 5"), tag)
	}
	for tag := range 10 { // by one thread: in order
		served(t, table, tag, 5)
	}
}

// TestGiveUpNeedsProcessors: a thread that hangs in execve(2) keeps its processor,
// and with two that hang out of two everything would.
func TestGiveUpNeedsProcessors(t *testing.T) {
	if !isolated(t) {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	path, hangs := hungScript(t)
	table := newOwner(t)
	table.Start(Spec{Argv: []string{path}}, 1)
	eventually(t, "execve", func() bool { return hangs.waitedFor(t) })
	if table.GiveUp() {
		t.Error("was not refused")
	}
	hangs.giveUp(t)
	served(t, table, 1, 7)
}

// TestGiveUpCheck: a start that hangs before its fork is asked for again, and the
// thread that it held up forks no more.
func TestGiveUpCheck(t *testing.T) {
	if !isolated(t) {
		return
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	table := newOwner(t)
	hang, checks := make(chan struct{}), make(chan struct{}, 10)
	s := shell("exit 7")
	s.Check = func() error { checks <- struct{}{}; <-hang; return nil }
	table.Start(s, 1)
	<-checks
	table.Start(shell("exit 3"), 2)
	if !table.GiveUp() {
		t.Fatal("was refused")
	}
	served(t, table, 2, 3)
	close(hang)
	served(t, table, 1, 7)
	if len(checks) != 1 || reap(table).Left {
		t.Errorf("checked %d times more", len(checks))
	}
	for tag := range 10 {
		table.Start(shell("exit 5"), tag)
	}
	for tag := range 10 {
		served(t, table, tag, 5)
	}
	n := 1
	for ; table.GiveUp(); n++ {
	}
	if n != maxGiveUps {
		t.Errorf("%d threads", n)
	}
}

// TestInherit: descriptors that are close-on-exec here, under their own numbers;
// nothing between them, and nothing where they were not asked for.
func TestInherit(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, fd := range []int{70, 71, 77} {
		if err := syscall.Dup3(int(null.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	lines := make(chan string, 100)
	s := hookSpec("step", "a", "for n in 0 1 2 70 71 77; do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done; echo")
	s.Output = func(line string) { lines <- line }
	awaitExit(t, table, startOne(t, table, s))
	s.Inherit = []int{77, 70}
	awaitExit(t, table, startOne(t, table, s))
	for _, want := range []string{"0 1 2 ", "0 1 2 70 77 "} {
		if got := <-lines; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
