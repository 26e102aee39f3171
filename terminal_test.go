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
	ty.inFront()
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

// underShell is a shell with job control that runs the init as a job.
func underShell(t *testing.T) *typist {
	ty := onTerminal(t, program{argv: shell})
	t.Cleanup(ty.dump)
	ty.times(1, "prompt> ")
	return ty
}

// TestTerminalJob: as a job of a shell the init can be suspended, continued in
// the foreground and in the background, and gives the terminal back.
func TestTerminalJob(t *testing.T) {
	t.Parallel()
	ty := underShell(t)
	ty.keys("drainit -- actor trap INT=4 QUIT=3\r")
	ty.times(1, "ready")
	init := 0
	for _, c := range children(ty.pid) {
		init = c.pid
	}
	workload := children(init)[0].pid
	if ty.foreground() != workload {
		t.Errorf("in the foreground: %d, the workload is %d", ty.foreground(), workload)
	}
	ty.keys("\x1a") // caught: the workload decides
	ty.times(1, "got TSTP")
	ty.keys("\x1c")
	ty.times(2, "prompt> ")
	ty.keys("echo status $?\r")
	ty.times(1, "status 3\n")

	ty.keys("drainit -- sleep 601\r")
	eventually(t, "sleep in the foreground", func() bool { return comm(ty.foreground()) == "sleep" })
	init = only(t, ty.pid)
	workload = only(t, init)
	ty.keys("\x1a")
	ty.times(4, "prompt> ")
	if state(init) != "T" || state(workload) != "T" {
		t.Errorf("states: init %s, workload %s", state(init), state(workload))
	}
	ty.keys("fg\r")
	eventually(t, "sleep in the foreground again", func() bool {
		return ty.foreground() == workload && state(workload) == "S" && state(init) == "S"
	})
	ty.keys("\x1a")
	ty.times(5, "prompt> ")
	ty.keys("bg\r")
	eventually(t, "both in the background", func() bool { return state(workload) == "S" && state(init) == "S" })
	if ty.foreground() != ty.pid {
		t.Errorf("the shell is not in the foreground, but %d", ty.foreground())
	}
	ty.times(6, "prompt> ")
	if os.Getenv("DRAINIT_PENDING") == "" { // to be mended in supervise: resume
		return
	}
	// To the foreground a second time, without having been stopped.
	ty.keys("fg\r")
	eventually(t, "sleep in the foreground once more", func() bool { return ty.foreground() == workload })
	ty.keys("\x03")
	ty.times(7, "prompt> ")
	ty.keys("echo status $?\r")
	ty.times(1, "status 130\n")
	ty.keys("exit\r")
	ty.want(0)
}

// only returns the one child of a process.
func only(t *testing.T, pid int) int {
	t.Helper()
	eventually(t, "one child", func() bool { return len(children(pid)) == 1 })
	return children(pid)[0].pid
}

// TestTerminalBackgroundEnd: an init that ends in the background does not take
// the terminal from the shell.
func TestTerminalBackgroundEnd(t *testing.T) {
	t.Parallel()
	ty := underShell(t)
	ty.keys("drainit -- sleep 602\r")
	eventually(t, "sleep in the foreground", func() bool { return comm(ty.foreground()) == "sleep" })
	init := only(t, ty.pid)
	workload := only(t, init)
	ty.keys("\x1a")
	ty.times(2, "prompt> ")
	ty.keys("bg\r")
	eventually(t, "both in the background", func() bool { return state(workload) == "S" && state(init) == "S" })
	ty.times(3, "prompt> ")
	if err := syscall.Kill(init, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the init's end", func() bool { return !alive(init) })
	if ty.foreground() != ty.pid {
		t.Errorf("the shell is not in the foreground, but %d", ty.foreground())
	}
	ty.keys("echo $((6*7))\r")
	ty.times(1, "42\n")
}

// TestTerminalWrapped: the init stands below a wrapper in the shell's job; all
// of the job is suspended, so that the shell sees it.
func TestTerminalWrapped(t *testing.T) {
	t.Parallel()
	ty := underShell(t)
	ty.keys("sh -c 'drainit -- sleep 603; echo wrapped $?'\r")
	eventually(t, "sleep in the foreground", func() bool { return comm(ty.foreground()) == "sleep" })
	workload := ty.foreground()
	ty.keys("\x1a")
	ty.times(2, "prompt> ")
	if state(workload) != "T" {
		t.Error("the workload runs on")
	}
	ty.keys("fg\r")
	eventually(t, "sleep in the foreground again", func() bool { return ty.foreground() == workload && state(workload) == "S" })
	ty.keys("\x03")
	ty.times(1, "wrapped 130\n")
	ty.times(3, "prompt> ")
}

// TestTerminalSessionLeader: not PID 1, but the leader of the terminal's session
// (ssh -t host drainit): no shell could continue it.
func TestTerminalSessionLeader(t *testing.T) {
	pending(t, "main: World.Suspend without a shell above")
	t.Parallel()
	for _, argv := range [][]string{
		{"drainit", "--", "cat"},
		{"/bin/sh", "-c", "drainit -- cat; exit $?"},
	} {
		ty := onTerminal(t, program{argv: argv})
		eventually(t, "cat in the foreground", func() bool { return comm(ty.foreground()) == "cat" })
		ty.keys("\x1a")
		ty.keys("hello\r")
		ty.times(2, "hello")
		ty.keys("\x04") // Ctrl-D
		ty.want(0)
	}
}

// TestTerminalBackgroundStart: started in the background it prints, is not
// stopped, and does not touch the terminal; nor with tostop set does its log.
func TestTerminalBackgroundStart(t *testing.T) {
	t.Parallel()
	for _, stty := range []string{"", "stty tostop; "} {
		ty := underShell(t)
		ty.keys(stty + "drainit --log-level info --log-format text -- sh -c 'exit 3' & wait $!; echo status $?\r")
		ty.times(1, "status 3\n")
		ty.times(1, "shutdown complete")
		ty.keys("echo $((6*7))\r")
		ty.times(1, "42\n")
		if ty.foreground() != ty.pid {
			t.Errorf("the shell is not in the foreground, but %d", ty.foreground())
		}
	}
}

// TestTerminalStopOutput: with tostop set the init, which stands in the
// background of its own workload's terminal, logs and is not stopped for it.
func TestTerminalStopOutput(t *testing.T) {
	t.Parallel()
	ty := interactiveContainer(t, "--log-level", "info", "--", "sh", "-c", "stty tostop; actor trap TERM=3; exit $?")
	ty.times(1, "ready")
	ty.kill(syscall.SIGTERM)
	from := time.Now()
	ty.times(1, "signal received")
	// The shell is not told apart from its child here: TERM goes to the shell.
	ty.status()
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
	ty.times(1, "shutdown complete")
	if n := strings.Count(ty.output(), "got TTOU"); n > 0 {
		t.Errorf("%d TTOU for the workload", n)
	}

	job := underShell(t)
	job.keys("stty tostop; drainit --log-level info -- actor trap TERM=3\r")
	job.times(1, "ready")
	if err := syscall.Kill(only(t, job.pid), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	job.times(1, "shutdown complete")
	job.times(2, "prompt> ")
}

// TestNoTerminal: standard input is none, so the terminal of the session stays
// with who has it.
func TestNoTerminal(t *testing.T) {
	t.Parallel()
	ty := underShell(t)
	ty.keys("drainit --log-level error -- actor trap USR1=3 < /dev/null\r")
	ty.times(1, "ready")
	init := only(t, ty.pid)
	if ty.foreground() != init {
		t.Errorf("in the foreground: %d, the init is %d", ty.foreground(), init)
	}
	// Ctrl-C is the init's, which drains as ever.
	ty.keys("\x03")
	ty.times(1, "got INT")
	_ = syscall.Kill(init, syscall.SIGUSR1)
	ty.times(2, "prompt> ")

	p := program{argv: []string{"drainit", "--interactive", "always", "--", "true"}}.start(t)
	p.want(125)
	never := onTerminal(t, program{argv: []string{"drainit", "--interactive", "never", "--", "sleep", "600"}})
	never.waitLog("workload started") // the log is not interactive either
	if never.foreground() != never.pid {
		t.Error("the terminal was given away")
	}
	never.kill(syscall.SIGTERM)
	never.want(143)
}
