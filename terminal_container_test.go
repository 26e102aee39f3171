package main

import (
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminalShell: a shell as the workload of PID 1 has job control, and
// Ctrl-D ends it. The log keeps still at its level for terminals.
func TestTerminalShell(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--", "/bin/sh", "-i")
	ty.times(1, "prompt> ")
	if strings.Contains(ty.output(), "job control") { // "can't access tty; job control turned off"
		t.Error("no job control")
	}
	if strings.Contains(ty.output(), "drain plan") {
		t.Error("logs at INFO on a terminal")
	}
	// A job of the shell is suspended, continued and ended.
	ty.keys("sleep 333\r")
	eventually(t, "the job", func() bool { return ty.foreground() != 0 && strings.HasPrefix(comm(ty.foreground()), "sleep") })
	ty.keys("\x1a") // Ctrl-Z
	ty.times(2, "prompt> ")
	ty.keys("jobs\r")
	ty.times(3, "prompt> ")
	if !strings.Contains(ty.output(), "Stopped") && !strings.Contains(ty.output(), "Suspended") {
		t.Error("the job was not suspended")
	}
	ty.keys("fg\r")
	eventually(t, "the job again", func() bool { return strings.HasPrefix(comm(ty.foreground()), "sleep") })
	ty.keys("\x03") // Ctrl-C ends the job, and nothing else
	ty.times(4, "prompt> ")
	ty.keys("echo $((6*7))\r")
	ty.times(1, "42\n")
	ty.keys("exit 5\r")
	ty.want(5)
}

// TestTerminalInterrupt: Ctrl-C reaches the workload, once, and drains nothing.
func TestTerminalInterrupt(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--log-level", "info", "--", "actor", "trap", "USR1=3")
	ty.times(1, "ready")
	ty.keys("\x03")
	ty.times(1, "got INT")
	ty.keys("\x1c") // Ctrl-\
	ty.times(1, "got QUIT")
	ty.keys("\x03")
	ty.times(2, "got INT")
	ty.kill(syscall.SIGUSR1)
	ty.times(1, "got USR1")
	ty.want(3)
	if n := strings.Count(ty.output(), "got "); n != 4 {
		t.Errorf("%d signals, want 4", n)
	}
	if strings.Contains(ty.output(), "signal received") {
		t.Error("the drain began")
	}
}

// TestTerminalStop: TERM from outside drains as ever.
func TestTerminalStop(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--", "actor", "trap", "TERM=3")
	ty.times(1, "ready")
	ty.kill(syscall.SIGTERM)
	ty.want(3)
	ty.times(1, "got TERM")
	if strings.Count(ty.output(), "got ") != 1 {
		t.Error("more than one signal")
	}
}

// TestTerminalSuspendAsPID1: nobody above could continue the container, so
// Ctrl-Z does not leave it stopped.
func TestTerminalSuspendAsPID1(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--", "cat")
	ty.inFrontOf("cat")
	ty.keys("\x1a")
	ty.keys("hello\r")
	ty.times(2, "hello") // the echo, and cat's
	ty.keys("\x1a\x1a")
	ty.keys("again\r")
	ty.times(2, "again")
	ty.keys("\x03")
	ty.want(130)
}

// inFront waits until the workload runs in the foreground.
func (ty *typist) inFront() {
	ty.t.Helper()
	eventually(ty.t, "the workload in the foreground", func() bool {
		c := children(ty.pid)
		return len(c) > 0 && c[0].pid == ty.foreground() && c[0].name != "drainit"
	})
}

// TestTerminalWindow: a change of the window's size reaches the workload once.
func TestTerminalWindow(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--", "actor", "trap", "USR1=3")
	ty.times(1, "ready")
	ty.inFront()
	conn, err := ty.master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 99})
	})
	if err != nil {
		t.Fatal(err)
	}
	ty.times(1, "got WINCH")
	ty.kill(syscall.SIGUSR1)
	ty.want(3)
	if n := strings.Count(ty.output(), "got WINCH"); n != 1 {
		t.Errorf("%d times", n)
	}
}

// TestTerminalHangup: the terminal goes away; the session's leader gets HUP, and
// the workload with it, so that the container ends.
func TestTerminalHangup(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--", "sleep", "600")
	ty.inFront()
	ty.master.Close()
	if s := ty.status(); s != 129 {
		t.Errorf("status %d, want 129", s)
	}
}
