package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

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
	ty.inFrontOf("sleep")
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
	ty.inFrontOf("sleep")
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
	workload := ty.inFrontOf("sleep")
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
	t.Parallel()
	for _, argv := range [][]string{
		{"drainit", "--", "cat"},
		{"/bin/sh", "-c", "drainit -- cat; exit $?"},
	} {
		ty := onTerminal(t, program{argv: argv})
		ty.inFrontOf("cat")
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
