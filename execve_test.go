package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// straced runs an init whose every execve(2), and that of what it starts, takes
// so long, as on a file system that does not answer. It returns the tracer and
// the pid of the init.
func straced(t *testing.T, delay time.Duration, argv ...string) (*process, int) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		skip(t, "no strace")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	inject := fmt.Sprintf("inject=execve:delay_enter=%d:when=1", delay.Microseconds())
	p := program{argv: append([]string{strace, "-f", "-o", trace, "-e", "trace=execve", "-e", inject}, argv...)}.start(t)
	eventually(t, "the init below strace", func() bool {
		c := children(p.pid)
		return len(c) == 1 && comm(c[0].pid) == "drainit" || len(p.done) > 0
	})
	return p, children(p.pid)[0].pid
}

// TestSlowExecve: while the kernel takes its time over an execve, signals are
// taken in, kept for the workload that is about to be, and passed on to the one
// that runs.
func TestSlowExecve(t *testing.T) {
	t.Parallel()
	const delay = 1200 * time.Millisecond
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGPWR, 50} {
			p, init := straced(t, delay, "drainit", "--", "sleep", "600")
			waitForChild(t, init)
			// PWR and the real-time ones are subscribed to beside the start, so the
			// first may be lost (docs/reference/signals.md).
			again := time.NewTicker(delay / 10)
			for over := false; !over; {
				_ = syscall.Kill(init, sig) // it may just have ended
				select {
				case <-p.done:
					over = true
				case <-again.C:
				case <-time.After(patience):
					over = true
				}
			}
			again.Stop()
			p.want(128 + int(sig)) // it ended the workload
		}
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		p, init := straced(t, delay, "drainit", "--grace-period", "10", "--", "sleep", "600")
		waitForChild(t, init)
		if err := syscall.Kill(init, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		p.want(143)
		if !p.has("shutdown complete") {
			t.Error(p.output())
		}
	})
	t.Run("hook", func(t *testing.T) {
		t.Parallel()
		dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\nsleep 1\n"})
		p, init := straced(t, delay, "drainit", "--config-dir", dir, "--grace-period", "20", "--", "actor", "trap", "TERM=3")
		p.waitLog("^ready")
		if err := syscall.Kill(init, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		p.waitLog("phase started")
		eventually(t, "the fork", func() bool { return len(children(init)) == 2 })
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, 50} {
			from := time.Now()
			if err := syscall.Kill(init, sig); err != nil {
				t.Fatal(err)
			}
			name := map[syscall.Signal]string{syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2", 50: "RTMAX-14"}[sig]
			p.waitLog("got " + name)
			if took := time.Since(from); took > delay/3 {
				t.Errorf("%s took %v during an execve of %v", name, took, delay)
			}
		}
		p.want(3)
	})
}

// TestHungExecve: an execve that does not come back costs no more than the
// grace period.
func TestHungExecve(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"workload", "workload, one processor", "phase"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var env []string
			if strings.HasSuffix(what, "one processor") { // as the workload's own setting, or on one CPU
				env = quietEnv("GOMAXPROCS=1")
			}
			delay := patience
			argv := []string{"drainit", "--grace-period", "2", "--headroom", "0", "--", "sleep", "600"}
			if what == "phase" {
				dir := hookDir(t, map[string]string{"10-slow": "#!/bin/sh\nsleep 1\n"})
				argv = []string{"drainit", "--config-dir", dir, "--grace-period", "2", "--headroom", "0", "--", "sleep", "600"}
			}
			_, init := stracedChild(t, delay, what, argv, env)
			from := time.Now()
			if err := syscall.Kill(init, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the init's end", func() bool { return !alive(init) })
			if took := time.Since(from); took > 2*time.Second+slack {
				t.Errorf("took %v", took)
			}
		})
	}
}

// stracedChild attaches the delay once the init itself has been executed; for a
// phase, once the workload has been, too.
func stracedChild(t *testing.T, delay time.Duration, what string, argv, env []string) (*process, int) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		skip(t, "no strace")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	inject := fmt.Sprintf("inject=execve:delay_enter=%d", delay.Microseconds())
	options := []string{strace, "-f", "-o", trace, "-e", "trace=execve", "-e", inject}
	if what == "phase" {
		init := program{argv: argv}.start(t).ready()
		p := program{argv: append(options, "-p", fmt.Sprint(init.pid))}.start(t)
		p.waitLog("attached")
		return p, init.pid
	}
	// The shell's exec is not traced: it goes on only when the tracer is there.
	fifo := filepath.Join(t.TempDir(), "go")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// strace's when= counts the execve's of one process: the init's own is its
	// first, so one that came before in that process is the shell's.
	init := program{argv: append([]string{"sh", "-c", "read x < " + fifo + `; exec "$@"`, "sh"}, argv...), env: env}.start(t)
	options[6] = inject // every execve is slow but for ...
	_ = os.Remove(trace)
	options = append([]string{strace, "-f", "-o", trace, "-e", "trace=execve", "-P", mustLook(t, "sleep"), "-e", inject}, "-p", fmt.Sprint(init.pid))
	p := program{argv: options}.start(t)
	p.waitLog("attached")
	if err := os.WriteFile(fifo, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	waitForChild(t, init.pid)
	eventually(t, "drainit", func() bool { return comm(init.pid) == "drainit" })
	waitForChild(t, init.pid)
	return p, init.pid
}

func mustLook(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// waitForChild waits until a process has forked.
func waitForChild(t *testing.T, pid int) {
	t.Helper()
	eventually(t, "the fork", func() bool { return len(children(pid)) > 0 })
}
