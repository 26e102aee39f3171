package main

import (
	"fmt"
	"math/rand/v2"
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
