//go:build linux && !race

package containers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// exec is docker exec: what a program in the container printed, and its status.
func (b *box) exec(opts []string, argv ...string) (out string, status int) {
	b.t.Helper()
	cmd := docker(append(append(append([]string{"exec"}, opts...), b.name), argv...)...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// asks runs a verb in the container, which has to end with the status.
func (b *box) asks(status int, argv ...string) string {
	b.t.Helper()
	out, got := b.exec(nil, append([]string{"drainit"}, argv...)...)
	if got != status {
		b.t.Errorf("drainit %s: status %d, want %d: %s", strings.Join(argv, " "), got, status, out)
	}
	return out
}

// health waits until the engine says so.
func (b *box) health(status string) {
	b.t.Helper()
	eventually(b.t, "health "+status, func() bool {
		var s state // of a container that may not be there yet
		return ask("/containers/"+b.name+"/json", &s) == nil && s.State.Health != nil && s.State.Health.Status == status
	})
}

// TestHealthcheck: HEALTHCHECK by drainit status --ready follows readiness.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	needEngine(t)
	dir := t.TempDir()
	b := spec{stage: "healthy", opts: []string{"--volume", dir + ":/out"}}.run(t)
	b.health("unhealthy") // while a lifecycle step starts
	if b.has("workload started") {
		t.Error("the workload runs before its step has started")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.ready()
	b.health("healthy")
	b.asks(0, "announce")
	b.health("unhealthy")
	b.asks(0, "undrain")
	b.health("healthy")
	if b.has("^got") || b.has("stage=gate") {
		t.Error("the workload was touched")
	}
	b.stop("15")
	b.want(0)
	b.quiet()
}

// TestExecDrain: docker exec drainit drain runs the phases while the workload
// serves on. A stop within 5 seconds belongs to it: the deadline counts from the
// drain's start.
func TestExecDrain(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const grace, headroom, kill = 6 * time.Second, time.Second, time.Second
	b := spec{stage: "slow", env: map[string]string{"GRACE_PERIOD": "6s", "DRAIN_BUDGET": "2500ms"}, argv: []string{"workload", "ignore", "TERM"}}.run(t)
	b.ready()
	b.asks(0, "status", "--ready")
	b.asks(0, "drain")
	var now struct {
		State, Readiness string
		Phases           []struct{ Name, State string }
	}
	if err := json.Unmarshal([]byte(b.asks(0, "status", "--json")), &now); err != nil {
		t.Fatal(err)
	}
	if now.State != "drained" || now.Readiness != "draining" || len(now.Phases) != 1 || now.Phases[0].State != "ok" {
		t.Errorf("the state after the drain is %+v", now)
	}
	if b.has("signal received") || b.has("stage=gate") || b.has("workload exited") {
		t.Errorf("the workload was touched:\n%s", b.output())
	}
	b.stop("15")
	b.want(137)
	b.inOrder(`stage=phases`, `phase=slow result=ok`, `msg="signal received"`, `stage=gate`, `msg="workload killed".* count=1`, `ended_by="drainit, by KILL"`)
	if strings.Count(b.output(), `msg="phase started"`) != 1 {
		t.Error("the phase ran again")
	}
	// KILL comes when the deadline leaves no more than its own window. From the
	// signal on that would be two seconds later.
	took, want := b.at(`msg="workload killed"`).Sub(b.at("stage=phases")), grace-headroom-kill
	if took < want-time.Second || took > want+time.Second {
		t.Errorf("killed %v after the drain began, want %v", took, want)
	}
}

// TestExecUsers: only root and the init's own user are listened to.
func TestExecUsers(t *testing.T) {
	t.Parallel()
	needEngine(t)
	for _, c := range []struct {
		user string
		may  map[string]int // the status of a verb, by the user of docker exec
	}{
		{"0", map[string]int{"0": 0, "65534": 69, "1000": 69}},
		{"1000", map[string]int{"0": 0, "1000": 0, "65534": 69}},
	} {
		t.Run(c.user, func(t *testing.T) {
			t.Parallel()
			b := spec{opts: []string{"--user", c.user}}.run(t)
			b.ready()
			for user, want := range c.may {
				for _, verb := range []string{"status", "announce"} {
					out, got := b.exec([]string{"--user", user}, "drainit", verb)
					if got != want {
						t.Errorf("%s by %s: status %d, want %d: %s", verb, user, got, want, out)
					}
				}
				b.asks(0, "undrain")
			}
			b.asks(0, "status", "--ready")
			b.stop("15")
			b.want(0)
		})
	}
}

// TestOtherContainer: a container that shares the network sees the socket's name,
// and can do nothing with it.
func TestOtherContainer(t *testing.T) {
	t.Parallel()
	needEngine(t)
	ports := freePorts(t, 2)
	b := spec{port: ports[0]}.runAs(t, nameOf(t)+"-one")
	b.ready()
	other := spec{port: ports[1]}.runAs(t, nameOf(t)+"-two")
	other.ready()
	ns, _ := b.exec(nil, "busybox", "readlink", "/proc/self/ns/pid") // pid:[N]
	addr := "@drainit/" + strings.Trim(strings.TrimSpace(ns), "pid:[]")
	for _, verb := range []string{"status", "announce", "drain"} {
		b.asks(0, "status", "--control", addr)
		other.asks(69, verb, "--control", addr)
		if out, _ := other.exec(nil, "workload", "forge", addr, verb); !strings.Contains(out, `"refused"`) {
			t.Errorf("a forged %s is answered: %s", verb, out)
		}
	}
	if out, _ := b.exec(nil, "workload", "forge", addr, "status"); !strings.Contains(out, `"answer"`) {
		t.Errorf("a question from inside is not answered: %s", out)
	}
	b.asks(0, "status", "--ready")
	// Each finds its own.
	other.asks(0, "announce")
	other.asks(1, "status", "--ready")
	b.asks(0, "status", "--ready")
	for _, c := range []*box{other, b} {
		c.stop("15")
		c.want(0)
	}
}

// TestSeveralInits: in a pod whose containers share their processes, none of the
// inits being the first, one can't tell which is meant, and none is asked.
func TestSeveralInits(t *testing.T) {
	t.Parallel()
	needEngine(t)
	pause := &box{name: nameOf(t) + "-pause"}
	pause.cleanUp(t)
	dockerDo(t, "run", "--detach", "--name", pause.name, "--network", "none", "--entrypoint", "sleep", image("base"), "1000")
	shared := "container:" + pause.name
	pod := spec{
		opts: []string{"--pid", shared, "--network", shared}, env: map[string]string{"PROBE_ADDR": "none"},
		argv: []string{"sh", "-c", `echo "socket $DRAINIT_SOCKET"; exec workload trap TERM=0`},
	}
	one := pod.runAs(t, nameOf(t)+"-one")
	one.ready()
	one.asks(0, "status", "--ready") // it is the only one
	two := pod.runAs(t, nameOf(t)+"-two")
	two.ready()
	addr := two.wait(`^socket (\S+)`)[1] // as whatever the init starts is told
	for _, b := range []*box{one, two} {
		if out := b.asks(69, "announce"); !strings.Contains(out, addr) {
			t.Errorf("does not name the choice: %s", out)
		}
		b.asks(0, "status", "--ready", "--control", addr)
	}
	two.asks(0, "announce", "--control", addr)
	two.asks(1, "status", "--ready", "--control", addr)
	for _, b := range []*box{two, one} {
		b.stop("15")
		b.want(0)
	}
}
