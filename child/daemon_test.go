package child

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
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
	table.SignalLeft(step, syscall.SIGTERM)
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
