package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

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
