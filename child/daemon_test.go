package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leaveDaemon plays a hook that leaves a daemon behind, as another user where
// CHILD_UID says so.
func leaveDaemon() {
	uid := os.Getenv("CHILD_UID")
	_, _ = os.Unsetenv("CHILD_ACT"), os.Unsetenv("CHILD_UID")
	cmd := exec.Command("sleep", "605")
	cmd.Env = syscall.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if id, err := strconv.Atoi(uid); err == nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
	}
	if err := cmd.Start(); err != nil { // returns when sleep is in its own session
		os.Exit(1)
	}
}

// TestDaemonBeforeTheWorkload: what nobody owns before there is a workload is the
// step's whose start has ended, though it has no mark.
func TestDaemonBeforeTheWorkload(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	up := filepath.Join(t.TempDir(), "up")
	step := kept(t, table, "a", "mkfifo "+up+"; (setsid env -i /bin/sh -c 'echo > "+up+"; exec /bin/sleep 601' &) ; read x < "+up)
	leaves(t, table, step, 1)
	remains(t, table, 0)
	table.SignalRest(0, syscall.SIGKILL, false)
	leaves(t, table, step, 1)
	table.SignalLeft([]*Proc{step}, syscall.SIGTERM)
	leaves(t, table, step, 0)
}

// TestClearedEnvironment: a daemon that leaves session and family with an empty
// environment can't be known beside a workload, unless it was seen before.
func TestClearedEnvironment(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	table.working = true
	up := filepath.Join(t.TempDir(), "up")
	unknown := kept(t, table, "unknown", "mkfifo "+up+"; (setsid env -i /bin/sh -c 'echo > "+up+"; exec /bin/sleep 601' &) ; read x < "+up)
	leaves(t, table, unknown, 0)
	remains(t, table, 1)
	fifo := filepath.Join(t.TempDir(), "fifo")
	seen := kept(t, table, "seen", "mkfifo "+fifo+"; (setsid sh -c 'read x < "+fifo+"; exec env -i sleep 602' &) ; :")
	leaves(t, table, seen, 1)
	if err := os.WriteFile(fifo, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other program", func() bool {
		o, _ := table.look(zero)
		found := false
		o.each(owner{hook: seen}, func(p process) {
			line, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
			found = strings.HasPrefix(string(line), "sleep")
		})
		return found
	})
	leaves(t, table, seen, 1)
	remains(t, table, 1)
	table.SignalRest(0, syscall.SIGKILL, false)
	table.SignalLeft([]*Proc{seen}, syscall.SIGKILL)
	eventually(t, "nothing left", func() bool { return !reap(table).Left })
	if n, _ := leftOf(table, seen); n != 0 || len(table.marks.known) != 0 {
		t.Errorf("%d left, and remembered are %v", n, table.marks.known)
	}
}

// asAnother is a step's start that leaves a daemon of another user.
func asAnother(name string) Spec {
	s := hookSpec("step", name, "")
	s.Argv, s.Keep = []string{os.Args[0]}, true
	s.Env = append(s.Env, "CHILD_ACT=daemon", "CHILD_UID=65534")
	return s
}

// TestDaemonOfAnotherUser is known by its mark, where the kernel lets us see its
// environment.
func TestDaemonOfAnotherUser(t *testing.T) {
	needRoot(t)
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	step := startOne(t, table, asAnother("a"))
	if e := awaitExit(t, table, step); !e.Kept {
		t.Fatalf("%+v", e)
	}
	leaves(t, table, step, 1)
	remains(t, table, 0)
	table.SignalLeft([]*Proc{step}, syscall.SIGTERM)
	leaves(t, table, step, 0)
}

// TestDaemonThatMayNotBeSeen: without the capabilities for it, as in a
// container, one that became another user is the workload's, unless it was seen to be
// the hook's before.
func TestDaemonThatMayNotBeSeen(t *testing.T) {
	needRoot(t)
	if !isolated(t) {
		return
	}
	if err := dropSight(); errors.Is(err, syscall.ENOTSUP) {
		return // with the race detector, whose threads are not Go's alone
	} else if err != nil {
		t.Fatal(err)
	}
	table := newOwner(t)
	table.working = true // there is a workload that it may be of
	step := startOne(t, table, asAnother("a"))
	awaitExit(t, table, step)
	leaves(t, table, step, 0)
	remains(t, table, 1)
	table.SignalRest(0, syscall.SIGKILL, false)
	remains(t, table, 0)
}

// dropSight gives up, in all threads, the capabilities that let us see into other
// users' processes.
func dropSight() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	for _, c := range []int{unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_PERFMON} {
		data[c/32].Effective &^= 1 << (c % 32)
		data[c/32].Permitted &^= 1 << (c % 32)
	}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&data[0])), 0)
	if e != 0 {
		return e
	}
	return nil
}
