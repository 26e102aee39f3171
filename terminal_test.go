package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// typist is a program on a pseudo-terminal, and who sits before it.
type typist struct {
	*process
	master *os.File
}

// onTerminal starts a program as the leader of a session whose controlling
// terminal is a new one.
func onTerminal(t *testing.T, pr program) *typist {
	t.Helper()
	master, slave := openTerminalPair(t)
	defer slave.Close()
	pr.stdin, pr.out, pr.err, pr.tty = slave, slave, slave, true
	if pr.env == nil {
		pr.env = quietEnv("PS1=prompt> ", "TERM=dumb", "ENV=")
	}
	log, err := os.CreateTemp(t.TempDir(), "screen")
	if err != nil {
		t.Fatal(err)
	}
	pr.log = log.Name()
	p := pr.start(t)
	go func() { // until the last one that has the terminal open is gone
		defer log.Close()
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = log.Write([]byte(strings.ReplaceAll(string(buf[:n]), "\r", "")))
			if err != nil {
				return
			}
		}
	}()
	return &typist{process: p, master: master}
}

func openTerminalPair(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		skip(t, "no pseudo-terminals: "+err.Error())
	}
	t.Cleanup(func() { master.Close() })
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		skip(t, "no pseudo-terminals: "+err.Error())
	}
	return master, slave
}

// keys types.
func (ty *typist) keys(text string) {
	ty.t.Helper()
	if _, err := ty.master.WriteString(text); err != nil {
		ty.t.Fatal(err)
	}
}

// times waits until the screen has n matches of a text.
func (ty *typist) times(n int, text string) {
	ty.t.Helper()
	eventually(ty.t, fmt.Sprintf("%d times %q", n, text), func() bool {
		if strings.Count(ty.output(), text) >= n {
			return true
		}
		select {
		case <-ty.done:
			time.Sleep(100 * time.Millisecond) // what it wrote is still on its way through the terminal
			if strings.Count(ty.output(), text) >= n {
				return true
			}
			ty.t.Fatalf("ended without %d times %q on the screen:\n%s", n, text, ty.output())
		default:
		}
		return false
	})
}

// foreground is the group in the foreground of the terminal.
func (ty *typist) foreground() int {
	conn, err := ty.master.SyscallConn()
	if err != nil {
		ty.t.Fatal(err)
	}
	group := 0
	_ = conn.Control(func(fd uintptr) { group, _ = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	return group
}

func (ty *typist) dump() {
	if ty.t.Failed() {
		ty.t.Logf("screen:\n%s\ntree:\n%s", ty.output(), tree(ty.pid))
	}
}

// shell is one with job control; its prompt is "prompt> ".
var shell = []string{"/bin/sh", "-i"}

// interactiveContainer is docker run -it.
func interactiveContainer(t *testing.T, argv ...string) *typist {
	needPID1(t)
	ty := onTerminal(t, program{pid1: true, argv: append([]string{"drainit"}, argv...)})
	t.Cleanup(ty.dump)
	return ty
}

// inFrontOf waits until a program of that name is the workload in the
// foreground, and its init knows it: then that has gone to /. It returns the
// workload's pid.
func (ty *typist) inFrontOf(name string) int {
	ty.t.Helper()
	workload := 0
	eventually(ty.t, name+" in the foreground", func() bool {
		workload = ty.foreground()
		if workload == 0 || comm(workload) != name {
			return false
		}
		for _, p := range processes() {
			if p.pid == workload {
				dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.parent))
				return dir == "/"
			}
		}
		return false
	})
	return workload
}
