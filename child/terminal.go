package child

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is the controlling terminal on standard input, with the process
// group that was in its foreground when the init was started. It belongs to one
// goroutine.
type Terminal struct {
	group int
	lent  bool // the foreground is the workload's, as far as that is our doing
}

// OpenTerminal returns the terminal when standard input is one, it is our
// controlling one, and our own group is in its foreground; nil otherwise, also
// for anything odd (ENOTTY, ENXIO, EIO): nothing touches terminals then.
func OpenTerminal() *Terminal {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || group <= 0 || group != unix.Getpgrp() {
		return nil
	}
	return &Terminal{group: group, lent: true} // it is started in the foreground
}

// Give puts a process group in the foreground.
func (t *Terminal) Give(group int) {
	t.lent = true
	setForeground(group)
}

// TakeBack gives the terminal to the group that had it before the workload. It
// does nothing where the workload has not got it, or not any more: the shell
// that runs us in the background has it then.
func (t *Terminal) TakeBack() {
	if t.lent {
		setForeground(t.group)
	}
	t.lent = false
}

// setForeground is tcsetpgrp(3). The init itself is not in the
// foreground then, so the kernel would suspend it with TTOU for asking, unless
// that is blocked in the asking thread.
func setForeground(group int) {
	if group <= 0 { // a group of another PID namespace: it can't be named
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block, old unix.Sigset_t
	block.Val[0] = 1 << (uint(syscall.SIGTTOU) - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old) != nil {
		return
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group)
}

// Foreground returns the group in the foreground; 0 when there is none.
func (t *Terminal) Foreground() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// Orphaned tells that nobody could continue the init after Suspend: no shell with
// job control stands above. That would be the leader of our session, unless it
// is in our own group (we are it, or a wrapper like sh -c is) or outside of our
// PID namespace. The kernel itself ignores Ctrl-Z in such a group (setpgid(2),
// orphaned process groups). The parent is not asked: it may be a wrapper that
// the shell stops and continues with us.
func Orphaned() bool {
	leader, err := unix.Getsid(0)
	if err != nil || leader <= 0 {
		return true
	}
	group, err := unix.Getpgid(leader)
	return err != nil || group == unix.Getpgrp()
}

// Suspend stops the init's own process group, as Ctrl-Z stops any program with
// what stands around it (sh -c, time, a pipeline), so that the shell that started
// them sees all of its job stopped and takes over. It returns when the shell
// continues it.
func Suspend() { _ = syscall.Kill(0, syscall.SIGSTOP) }
