package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// paused starts a program that becomes PID 1 when the returned function is called.
func paused(t *testing.T, argv ...string) (*process, func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := program{pid1: true, stage: []string{"-proc", "-pause"}, argv: argv, extra: []*os.File{r}}.start(t)
	r.Close()
	eventually(t, "the stage", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
		return string(b) == "stage\n"
	})
	return p, func() { w.Close() }
}

// catches tells whether a process has a handler for a signal.
func catches(pid int, sig syscall.Signal) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := strings.Cut(string(b), "SigCgt:\t")
	var mask uint64
	if ok {
		_, _ = fmt.Sscanf(rest, "%x", &mask)
	}
	return mask&(1<<(sig-1)) != 0
}

func comm(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSuffix(string(b), "\n")
}

// TestStopInTheFirstMilliseconds: a TERM that comes at any time after the exec
// ends the container with 143, be it before or after the workload's start.
// Until the Go runtime has installed its handlers the kernel swallows it, as it
// does for any PID 1 (pid_namespaces(7)); then, and only then, the workload runs
// on, and the next TERM is heard.
func TestStopInTheFirstMilliseconds(t *testing.T) {
	t.Parallel()
	needPID1(t)
	runs := 120
	if testing.Short() {
		runs = 30
	}
	outcomes := map[string]int{}
	for i := range runs {
		delay := time.Duration(i) * 24 * time.Millisecond / time.Duration(runs)
		p, begin := paused(t, "drainit", "--", "sleep", "600")
		begin()
		for from := time.Now(); time.Since(from) < delay; {
		}
		heard := comm(p.pid) == "drainit" && catches(p.pid, syscall.SIGTERM)
		p.kill(syscall.SIGTERM)
		outcome := awaitStop(p)
		if outcome == "swallowed" && heard {
			outcome = "lost"
		}
		outcomes[outcome]++
		if outcome == "lost" || strings.HasPrefix(outcome, "status") {
			t.Errorf("after %v: %s; output:\n%s", delay, outcome, p.output())
		}
		p.end()
	}
	t.Log(outcomes)
}

// runtimeDeath is what a Go program that is PID 1 ends with when a stop signal
// comes after the runtime has installed its handlers and before anybody has
// subscribed. It dies on another thread than main's, which may have started the
// workload meanwhile: that dies with its PID namespace.
const runtimeDeath = 2

// awaitStop says what became of a TERM.
func awaitStop(p *process) string {
	p.t.Helper()
	again := time.After(patience)
	for {
		select {
		case <-p.done:
			switch s := p.status(); {
			case s == runtimeDeath && !p.has("signal received"):
				return "refused"
			case s != 143:
				return fmt.Sprintf("status %d", s)
			case p.has("workload started"):
				return "stopped"
			}
			return "never started"
		case <-again:
			return "hangs"
		case <-time.After(2 * time.Millisecond):
		}
		// The workload runs, and nobody has heard of a signal: it was swallowed.
		if p.has("workload started") && !p.has("signal received") {
			time.Sleep(50 * time.Millisecond) // a signal that was heard is logged by now
			if p.has("signal received") {
				continue
			}
			_ = syscall.Kill(p.pid, syscall.SIGTERM)
			if s := p.status(); s == runtimeDeath {
				return "refused"
			} else if s != 143 {
				return fmt.Sprintf("status %d at the second TERM", s)
			}
			return "swallowed"
		}
	}
}
