//go:build linux && !race

package containers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBelowAnotherInit: with --init drainit is not the first process. It drains
// as well, and adopts what its workload leaves.
func TestBelowAnotherInit(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{opts: []string{"--init"}, env: map[string]string{"GRACE_PERIOD": "5s"},
		argv: []string{"workload", "daemon", "workload", "trap", "TERM=0@100ms", "then", "facts", "trap", "TERM=5"}}.run(t)
	b.ready()
	if init := b.wait(`facts .* init=(\S*)`)[1]; init == "drainit" || init == "" {
		t.Fatalf("the first process is %q", init)
	}
	b.bothReady()
	b.stop("15")
	b.want(5)
	b.inOrder(`msg="signal received"`, `msg="workload exited".* status=5`, `msg="descendants told to stop".* count=1`, `ended_by="stop signal"`)
	if n := strings.Count(b.output(), "got TERM"); n != 2 {
		t.Errorf("%d processes got TERM, want the workload and its daemon", n)
	}
	b.quiet()
}

// TestSharedProcesses: two inits in one PID namespace, of which one can be its
// first process. Each touches its own processes alone, and both stop in order.
func TestSharedProcesses(t *testing.T) {
	t.Parallel()
	needEngine(t)
	env := map[string]string{"GRACE_PERIOD": "5s"}
	argv := []string{"workload", "daemon", "workload", "trap", "TERM=0", "then", "trap", "TERM=3"}
	one := spec{env: env, argv: argv}.runAs(t, nameOf(t)+"-one")
	one.ready()
	two := spec{env: env, argv: argv, opts: []string{"--pid", "container:" + one.name}}.runAs(t, nameOf(t)+"-two")
	two.ready()
	for _, b := range []*box{one, two} {
		b.bothReady()
	}
	two.stop("15")
	two.want(3)
	two.inOrder(`msg="workload exited".* status=3`, `msg="descendants told to stop".* count=1`, `ended_by="stop signal"`)
	two.quiet()
	if one.has("got") || one.has("signal received") {
		t.Errorf("the other container noticed:\n%s", one.output())
	}
	if s := one.inspect(); !s.State.Running {
		t.Errorf("the other container is %s", s.State.Status)
	}
	one.stop("15")
	one.want(3)
	one.inOrder(`msg="workload exited".* status=3`, `msg="descendants told to stop".* count=1`, `ended_by="stop signal"`)
	one.quiet()
}

// TestSharedProcessesFirst: the init of the namespace stops first. Its drain
// leaves the other container alone; what ends that in the end is the kernel.
func TestSharedProcessesFirst(t *testing.T) {
	t.Parallel()
	needEngine(t)
	one := spec{env: map[string]string{"GRACE_PERIOD": "6s", "DRAIN_TIMEOUT": "500ms"}, argv: []string{"workload", "ignore", "TERM"}}.runAs(t, nameOf(t)+"-one")
	one.ready()
	two := spec{argv: []string{"workload", "trap"}, opts: []string{"--pid", "container:" + one.name}}.runAs(t, nameOf(t)+"-two")
	two.ready()
	one.stop("15")
	one.want(137)
	one.inOrder(`msg="workload killed".* count=1 denied=0`, `ended_by="drainit, by KILL"`)
	two.want(137)
	if two.has("got") || two.has("signal received") || two.has("workload exited") {
		t.Errorf("the other container was touched:\n%s", two.output())
	}
}

// TestMachinesProcesses: with --pid host the container's processes are among all
// others, none of which is drainit's.
func TestMachinesProcesses(t *testing.T) {
	t.Parallel()
	needEngine(t)
	other := spec{argv: []string{"workload", "trap", "TERM=0"}}.runAs(t, nameOf(t)+"-other")
	other.ready()
	b := spec{opts: []string{"--pid", "host"}, env: map[string]string{"GRACE_PERIOD": "6s", "DRAIN_TIMEOUT": "500ms"},
		argv: []string{"workload", "daemon", "workload", "ignore", "TERM", "then", "trap", "TERM=3"}}.run(t)
	b.ready()
	b.bothReady()
	b.stop("15")
	b.want(3)
	b.inOrder(`msg="descendants told to stop".* count=1`, `msg="workload killed".* count=1 denied=0`)
	if other.has("got") {
		t.Error("another container was touched")
	}
	other.stop("15")
	other.want(0)
}

// TestExec: a process of docker exec is nobody's child in there. The drain leaves
// it alone, and the end of the container ends it.
func TestExec(t *testing.T) {
	t.Parallel()
	needEngine(t)
	dir := t.TempDir()
	b := spec{opts: []string{"--volume", dir + ":/out"}, env: map[string]string{"GRACE_PERIOD": "6s", "DRAIN_TIMEOUT": "1s"},
		argv: []string{"workload", "ignore", "TERM"}}.run(t)
	b.ready()
	dockerDo(t, "exec", "--detach", b.name, "sh", "-c", "workload daemon workload trap then trap >/out/exec 2>&1")
	in := func() string { text, _ := os.ReadFile(filepath.Join(dir, "exec")); return string(text) }
	eventually(t, "the processes of docker exec", func() bool { return strings.Count(in(), "ready") == 2 })
	b.stop("15")
	b.want(137)
	// One, and not those of docker exec.
	b.inOrder(`stage=gate`, `msg="workload killed".* count=1 denied=0`, `ended_by="drainit, by KILL"`)
	if text := in(); strings.Contains(text, "got") {
		t.Errorf("a process of docker exec was told:\n%s", text)
	}
}
