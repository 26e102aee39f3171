package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
