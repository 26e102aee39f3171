package child

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is the controlling terminal on standard input, with the process
// group that was in its foreground when the init was started.
type Terminal struct{ group int }

// OpenTerminal returns the terminal when standard input is one, it is our
// controlling one, and our own group is in its foreground; nil otherwise, also
// for anything odd (ENOTTY, ENXIO, EIO): nothing touches terminals then.
func OpenTerminal() *Terminal {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil || group != unix.Getpgrp() {
		return nil
	}
	return &Terminal{group: group}
}

// Give puts a process group in the foreground. The init itself is not in the
// foreground then, so the kernel would suspend it with TTOU for asking, unless
// that is blocked in the asking thread (tcsetpgrp(3)).
func (t *Terminal) Give(group int) {
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

// TakeBack gives the terminal to the group that had it before the workload.
func (t *Terminal) TakeBack() { t.Give(t.group) }

// Foreground returns the group in the foreground; 0 when there is none.
func (t *Terminal) Foreground() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// Suspend stops the init's own process, as Ctrl-Z stops any program, so that
// the shell that started it takes over. It returns when the shell continues it.
func Suspend() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }
