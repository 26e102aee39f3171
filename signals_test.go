package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bothWays runs a test as PID 1 and as any other process.
func bothWays(t *testing.T, f func(t *testing.T, pid1 bool)) {
	t.Run("pid1", func(t *testing.T) { t.Parallel(); needPID1(t); f(t, true) })
	t.Run("plain", func(t *testing.T) { t.Parallel(); f(t, false) })
}

// trapAll is a workload without a runtime of its own: it names each signal that
// it gets by number. 32 and 33 are the C library's.
const trapAll = `i=1
while [ $i -le 64 ]; do
	case $i in 9|19|32|33) ;; *) trap "echo got $i." $i ;; esac
	i=$((i+1))
done
trap 'echo got 40.; exit 40' 40
echo ready
while :; do sleep 100 & wait $!; done`

// TestEverySignalReachesTheWorkload sends all 64 but KILL and STOP: none ends
// the init, and each that can be received arrives, by the number that was sent.
func TestEverySignalReachesTheWorkload(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		p := program{pid1: pid1, argv: []string{"drainit", "--drain-on", "none", "--", "/bin/sh", "-c", trapAll}}.start(t)
		p.waitLog("^ready")
		unforwarded := map[int]string{
			13: "PIPE: our own writes raise it", 17: "CHLD", 23: "URG: the runtime's", 27: "PROF: the runtime's",
			32: "the runtime's", 33: "the runtime's", 34: "the runtime's",
		}
		for sig := 1; sig <= 64; sig++ {
			switch {
			case sig == 9, sig == 19, sig == 40:
				continue
			case sig >= 32 && sig <= 34 && !pid1:
				continue // they end any Go program that is not PID 1: documented
			}
			p.kill(syscall.Signal(sig))
			if _, not := unforwarded[sig]; !not {
				p.waitLog(fmt.Sprintf("^got %d\\.", sig))
			}
		}
		p.kill(40) // the last: what was to come has come before it
		p.want(40)
		for sig, why := range unforwarded {
			// The workload's own children end, so that it gets CHLD of its own.
			if sig != 17 && p.has(fmt.Sprintf("^got %d\\.", sig)) {
				t.Errorf("signal %d was forwarded (%s)", sig, why)
			}
		}
	})
}

// TestChildSignalIsNotForwarded with a workload that has no children.
func TestChildSignalIsNotForwarded(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		p := program{pid1: pid1, argv: []string{"drainit", "--", "actor", "trap", "USR2=3"}}.start(t)
		p.waitLog("^ready")
		for range 20 {
			p.kill(syscall.SIGCHLD)
			p.kill(syscall.SIGURG)
		}
		p.kill(syscall.SIGUSR1)
		p.waitLog("got USR1")
		p.kill(syscall.SIGUSR2)
		p.want(3)
		if p.has("got (CHLD|URG)") {
			t.Error(p.output())
		}
	})
}

// TestBurstOfSignals: one of each number arrives, whatever comes with it.
func TestBurstOfSignals(t *testing.T) {
	t.Parallel()
	needPID1(t)
	p := program{pid1: true, argv: []string{"drainit", "--", "actor", "trap", "TERM=3"}}.start(t)
	p.waitLog("^ready")
	burst := []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, 35, 50, 64}
	const rounds = 20
	for round := 1; round <= rounds; round++ {
		for _, s := range burst {
			p.kill(s)
		}
		eventually(t, "all signals of the burst", func() bool {
			return strings.Count(p.output(), "got ") >= round*len(burst)
		})
	}
	p.kill(syscall.SIGTERM)
	p.want(3)
	if n := strings.Count(p.output(), "got "); n != rounds*len(burst)+1 {
		t.Errorf("%d signals, want %d", n, rounds*len(burst)+1)
	}
}

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

// TestChildThatEndsAtOnce is noticed each time, with the right status.
func TestChildThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	needPID1(t)
	runs := 60
	if testing.Short() {
		runs = 15
	}
	for i := range runs {
		want := i % 4
		argv := []string{"drainit", "--", "/bin/sh", "-c", fmt.Sprintf("(exit 9) & (exit 8) & exit %d", want)}
		if i%4 == 3 {
			argv, want = []string{"drainit", "--", "/no/such"}, 127
		}
		p := program{pid1: true, argv: argv}.start(t)
		p.want(want)
	}
}

// TestStatusUnderOrphans: the workload's status is never mistaken for an
// orphan's, and no zombie is left while the container runs.
func TestStatusUnderOrphans(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		program{pid1: pid1, argv: []string{"drainit", "--", "actor", "orphans", "200", "77"}}.start(t).want(77)

		p := program{pid1: pid1, argv: []string{"drainit", "--", "actor", "orphans", "500"}}.start(t)
		p.waitLog("all made")
		eventually(t, "no zombies", func() bool {
			c := children(p.pid)
			return len(c) == 1 && c[0].state != "Z"
		})
		p.kill(syscall.SIGTERM)
		p.want(143)
	})
}

// TestOrphansFromOutside: what docker exec leaves behind comes to PID 1 too.
func TestOrphansFromOutside(t *testing.T) {
	t.Parallel()
	needPID1(t)
	needRoot(t)
	p := program{pid1: true, argv: []string{"drainit", "--", "actor", "trap", "TERM=3"}}.start(t)
	p.waitLog("^ready")
	for range 5 {
		program{argv: []string{"actor", "enter", fmt.Sprint(p.pid), "sh", "-c", `sh -c "sleep 0.05 &"`}}.start(t).want(0)
	}
	eventually(t, "no zombies", func() bool { return len(children(p.pid)) == 1 })
	p.kill(syscall.SIGTERM)
	p.want(3)
}

// TestSubreaper: where the init is not PID 1, orphans below it are its own.
func TestSubreaper(t *testing.T) {
	t.Parallel()
	p := program{argv: []string{"drainit", "--", "sh", "-c", "(sleep 100 &); actor trap TERM=3"}}.start(t)
	p.waitLog("^ready")
	eventually(t, "the orphan below the init", func() bool {
		for _, c := range children(p.pid) {
			if c.name == "sleep" {
				return true
			}
		}
		return false
	})
	p.kill(syscall.SIGTERM)
	p.want(143)
}

// TestEnteredProcessIsLeftAlone: what docker exec started has a parent outside,
// and is neither told nor killed while the container stops.
func TestEnteredProcessIsLeftAlone(t *testing.T) {
	t.Parallel()
	needPID1(t)
	needRoot(t)
	dir := hookDir(t, map[string]string{"10-wait": "#!/bin/sh\nsleep 1\n"})
	p := program{pid1: true, argv: []string{"drainit", "--config-dir", dir, "--drain-timeout", "200ms", "--",
		"sh", "-c", "actor ignore TERM & actor trap USR1=3"}}.start(t)
	p.waitLog("^ready\n(.*\n)*^ready")
	e := program{argv: []string{"actor", "enter", fmt.Sprint(p.pid), "actor", "trap"}}.start(t)
	e.waitLog("^ready")
	inside := 0
	for _, c := range children(e.pid) {
		inside = c.pid
	}
	var workload int
	for _, c := range children(p.pid) {
		workload = c.pid
	}
	if err := syscall.Kill(workload, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.waitLog("descendants told to stop")
	p.waitLog("workload killed") // the end of its time: KILL to what is left
	eventually(t, "the rest is gone", func() bool { return p.has("phase ended") || len(children(p.pid)) == 1 })
	if inside == 0 || !alive(inside) {
		t.Error("the process from outside was killed")
	}
	if e.has("got ") {
		t.Error("the process from outside was told:", e.output())
	}
	p.want(137)
}

// hookDir makes a configuration directory with these phases.
func hookDir(t testing.TB, phases map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etc")
	if err := os.MkdirAll(filepath.Join(dir, "phases.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range phases {
		if err := os.WriteFile(filepath.Join(dir, "phases.d", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestParentDeathSignal: the workload dies with an init that is killed, where
// it is not PID 1.
func TestParentDeathSignal(t *testing.T) {
	t.Parallel()
	p := program{argv: []string{"drainit", "--", "sleep", "600"}}.start(t).ready()
	workload := children(p.pid)[0].pid
	p.kill(syscall.SIGKILL)
	p.want(137)
	eventually(t, "the workload's end", func() bool { return !alive(workload) })
}

// TestParentDeathSignalIsNotEarly: it is tied to the thread that forked, which
// has to outlive everything that the init does.
func TestParentDeathSignalIsNotEarly(t *testing.T) {
	t.Parallel()
	dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\n:\n", "20-b": "#!/bin/sh\nsleep 0.3\n"})
	p := program{argv: []string{"drainit", "--config-dir", dir, "--", "actor", "trap", "TERM=3"}}.start(t)
	p.waitLog("^ready")
	for range 50 {
		p.kill(syscall.SIGUSR1)
		time.Sleep(2 * time.Millisecond)
	}
	p.kill(syscall.SIGTERM)
	p.want(3)
}
