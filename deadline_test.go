package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// misbehaviours are workloads that make a stop hard. Each prints "up" when it
// is ready, and "told" when it has got its stop signal, where it can.
var misbehaviours = map[string]string{
	"obeys":    `trap 'echo told; exit 0' TERM; echo up; while :; do sleep 100 & wait $!; done`,
	"ignores":  `trap 'echo told' TERM; echo up; while :; do sleep 100 & wait $!; done`,
	"slow":     `trap 'echo told; sleep 1.2; exit 4' TERM; echo up; while :; do sleep 100 & wait $!; done`,
	"daemons":  `trap 'echo told' TERM; actor daemon actor ignore TERM; setsid actor ignore TERM & echo up; while :; do sleep 100 & wait $!; done`,
	"stopped":  `trap 'echo told; exit 5' TERM; echo up; kill -STOP $$; while :; do sleep 100 & wait $!; done`,
	"leaves":   `trap 'echo told; exit 6' TERM; (trap "" TERM; sleep 100; sleep 100) & echo up; while :; do sleep 100 & wait $!; done`,
	"forks":    `trap 'echo told' TERM; actor forker 60 & echo up; while :; do sleep 100 & wait $!; done`,
	"suspends": `trap 'echo told; kill -STOP $$' TERM; echo up; while :; do sleep 100 & wait $!; done`,
}

var badPhases = []string{
	"#!/bin/sh\nexit 0\n",
	"#!/bin/sh\nexit 1\n",
	"#!/bin/sh\ntrap '' TERM\nsleep 100 & wait; sleep 100\n",
	"#!/bin/sh\n# drainit: max-duration=300ms\nsleep 100\n",
	"#!/bin/sh\nsleep 100 & setsid sleep 100 & exit 0\n",
	"#!/bin/sh\nactor daemon actor ignore TERM\nsleep 0.2\n",
	"#!/bin/sh\nexec yes\n",
	"#!/bin/sh\nkill -STOP $$\n",
	"#!/no/such\n",
	"#!/bin/sh\nkill -STOP $PPID\n",
}

// TestDeadline: whatever workload and phases do, the init is gone by the hard
// deadline, and the workload was told before it was killed.
func TestDeadline(t *testing.T) {
	t.Parallel()
	needPID1(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	runs := 36
	if testing.Short() {
		runs = 8
	}
	names := make([]string, 0, len(misbehaviours))
	for n := range misbehaviours {
		names = append(names, n)
	}
	for i := range runs {
		name := names[rnd.IntN(len(names))]
		grace := time.Duration(1000+rnd.IntN(2000)) * time.Millisecond
		flags := []string{"--grace-period", grace.String(), "--headroom", "300ms"}
		prestop := time.Duration(0)
		if rnd.IntN(4) == 0 {
			prestop = 200 * time.Millisecond
			flags = append(flags, "--prestop", prestop.String())
		}
		if rnd.IntN(2) == 0 {
			flags = append(flags, "--announce-delay", fmt.Sprintf("%dms", rnd.IntN(4000)))
		}
		if rnd.IntN(2) == 0 {
			flags = append(flags, "--drain-timeout", fmt.Sprintf("%dms", rnd.IntN(4000)))
		}
		if rnd.IntN(2) == 0 {
			flags = append(flags, "--drain-budget", fmt.Sprintf("%dms", rnd.IntN(4000)))
		}
		phases := map[string]string{}
		for n := range rnd.IntN(4) {
			text := badPhases[rnd.IntN(len(badPhases)-1)] // the last would stop PID 1, if it could
			phases[fmt.Sprintf("%d-p%d", n+1, n)] = text
		}
		hard := grace - prestop - 300*time.Millisecond
		again := rnd.IntN(3) == 0
		t.Run(fmt.Sprintf("%d-%s", i, name), func(t *testing.T) {
			t.Parallel()
			argv := append([]string{"drainit", "--config-dir", hookDir(t, phases)}, flags...)
			p := program{pid1: i%3 != 0, argv: append(argv, "--", "/bin/sh", "-c", misbehaviours[name])}.start(t)
			p.waitLog("^up$")
			time.Sleep(20 * time.Millisecond)
			from := time.Now()
			p.kill(syscall.SIGTERM)
			if again {
				time.AfterFunc(hard/3, func() { _ = syscall.Kill(p.pid, syscall.SIGHUP); _ = syscall.Kill(p.pid, syscall.SIGTERM) })
			}
			<-p.done
			took := p.from.Add(p.took).Sub(from)
			if took > hard+slack {
				t.Errorf("%v: took %v, the deadline is %v\n%v\n%s", name, took, hard, phases, p.output())
			}
			told, killed := strings.Index(p.output(), "told"), strings.Index(p.output(), "workload killed")
			if killed >= 0 && told < 0 {
				t.Errorf("killed without being told (%v, %v)\n%s", argv, phases, p.output())
			}
		})
	}
}

// slack is what the machine may be late by: the kernel's own work at the end of
// a PID namespace, and the other tests beside this one.
const slack = 300 * time.Millisecond

// TestStoppedHook: a phase that stops its init is none as PID 1 (the kernel lets
// no STOP through from inside), so that nothing is lost.
func TestStoppedHook(t *testing.T) {
	t.Parallel()
	needPID1(t)
	dir := hookDir(t, map[string]string{"10-a": badPhases[len(badPhases)-1], "20-b": "#!/bin/sh\nkill -KILL $PPID\n"})
	p := program{pid1: true, argv: []string{"drainit", "--config-dir", dir, "--grace-period", "5", "--", "actor", "trap", "TERM=3"}}.start(t)
	p.waitLog("^ready")
	p.kill(syscall.SIGTERM)
	p.want(3)
}

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
			if err := syscall.Kill(init, sig); err != nil {
				t.Fatal(err)
			}
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
	for _, what := range []string{"workload", "phase"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			delay := patience
			argv := []string{"drainit", "--grace-period", "2", "--headroom", "0", "--", "sleep", "600"}
			if what == "phase" {
				dir := hookDir(t, map[string]string{"10-slow": "#!/bin/sh\nsleep 1\n"})
				argv = []string{"drainit", "--config-dir", dir, "--grace-period", "2", "--headroom", "0", "--", "sleep", "600"}
			}
			_, init := stracedChild(t, delay, what, argv)
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
func stracedChild(t *testing.T, delay time.Duration, what string, argv []string) (*process, int) {
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
	init := program{argv: append([]string{"sh", "-c", "read x < " + fifo + `; exec "$@"`, "sh"}, argv...)}.start(t)
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
