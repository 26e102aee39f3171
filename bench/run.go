//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hangLimit is when a subject that does not start, answer or end is given up.
const hangLimit = 10 * time.Second

var errHung = errors.New("hung")

// A place is where an init is started: which new namespaces, and what is left
// to do in them before it is executed (flags of the child's stage).
type place struct {
	namespaces uintptr
	stage      []string
}

var (
	here = place{}
	// fresh makes the init PID 1 and shows it a /proc that agrees.
	fresh = place{
		namespaces: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		stage:      []string{"-m"},
	}
)

// A run is one started init with its workload.
type run struct {
	subject subject
	pid     int
	addr    string
	began   int64 // just before the fork
	board   *board
}

// start runs COMMAND = child, what[0], the board, what[1:] under the subject.
func (h *harness) start(s subject, p place, what ...string) (*run, error) {
	r := &run{subject: s}
	var err error
	if s.probed() {
		if r.addr, err = freeAddr(); err != nil {
			return nil, err
		}
	}
	if r.board, err = newBoard(h.dir); err != nil {
		return nil, err
	}
	argv := append(s.argv(r.addr), h.child, what[0], r.board.path)
	argv = append(argv, what[1:]...)
	if p.stage != nil {
		argv = append(append([]string{h.child, "stage"}, p.stage...), argv...)
	}
	log, err := h.log(s)
	if err != nil {
		r.board.close()
		return nil, err
	}
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/"}, s.environ(r.addr)...),
		Files: []uintptr{h.null.Fd(), log.Fd(), log.Fd()},
		// A session of its own: no init is to find a terminal to hand over.
		Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: p.namespaces},
	}
	r.began = now()
	if r.pid, err = syscall.ForkExec(argv[0], argv, attr); err != nil {
		r.board.close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return r, nil
}

// ready waits until the workload says so.
func (r *run) ready() error {
	if !r.board.await(wordReady, 1, hangLimit) {
		return fmt.Errorf("%w: the workload did not start within %v", errHung, hangLimit)
	}
	return nil
}

// wait returns the time at which the init was gone (wait4(2), in the calling
// thread). It leaves the zombie until the alarm is off (WNOWAIT), so that the
// alarm never kills whoever has the pid next.
func (r *run) wait(limit time.Duration) (int64, error) {
	var hung atomic.Bool
	alarm := time.AfterFunc(limit, func() {
		hung.Store(true)
		_ = unix.Kill(r.pid, unix.SIGKILL)
	})
	err := error(unix.EINTR)
	for err == unix.EINTR {
		err = unix.Waitid(unix.P_PID, r.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	end := now()
	alarm.Stop()
	if err != nil {
		return 0, fmt.Errorf("waitid: %w", err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(r.pid, &status, 0, nil); err != nil {
		return 0, fmt.Errorf("wait4: %w", err)
	}
	switch {
	case hung.Load():
		return 0, fmt.Errorf("%w: not gone after %v", errHung, limit)
	case status != 0:
		return 0, fmt.Errorf("ended with status %#x", uint32(status))
	}
	return end, nil
}

// dead tells whether the init has ended, without reaping it.
func (r *run) dead() bool {
	state, _, err := procState(r.pid)
	return err != nil || state == 'Z' || state == 'X'
}

// kill ends the init, and with it a namespace that it is PID 1 of.
func (r *run) kill() {
	_ = unix.Kill(r.pid, unix.SIGKILL)
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(r.pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	r.board.close()
}

// sweep kills and reaps all that is left of any subject. The harness is PID 1
// of a namespace of its own, so -1 is exactly what it started: kill(2).
func sweep() {
	_ = unix.Kill(-1, unix.SIGKILL)
	for end := now() + int64(hangLimit); now() < end; {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.ECHILD:
			return
		case pid == 0:
			nap(time.Millisecond)
		}
	}
}
