//go:build linux && !race

package containers

import (
	"strings"
	"testing"
)

// background runs the container without a client, which restarts would end.
func (s spec) background(t *testing.T) *box {
	t.Helper()
	b := &box{name: nameOf(t), printer: &printer{t: t}}
	b.cleanUp(t)
	dockerDo(t, append([]string{"run", "--detach"}, s.args(b.name)...)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs:\n%s", b.logs())
		}
	})
	return b
}

// logs is what all runs of the container have printed.
func (b *box) logs() string {
	out, _ := docker("logs", b.name).CombinedOutput()
	return string(out)
}

// becomes waits until the engine says so.
func (b *box) becomes(status string) state {
	b.t.Helper()
	var s state
	eventually(b.t, b.name+" "+status, func() bool { s = b.inspect(); return s.State.Status == status })
	return s
}

// TestRestartOnFailure: the engine restarts what has failed, as often as that
// fails, and no success: it sees the workload's own status.
func TestRestartOnFailure(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{opts: []string{"--restart", "on-failure"}, argv: []string{"workload", "flaky", "/tmp/runs", "2", "3", "exit", "0"}}.background(t)
	// Between two runs the container is restarting.
	s := b.becomes("exited")
	if s.RestartCount != 2 || s.State.ExitCode != 0 {
		t.Errorf("%d restarts, status %d", s.RestartCount, s.State.ExitCode)
	}
	text := b.logs()
	if strings.Count(text, "exit_status=3") != 2 || strings.Count(text, "exit_status=0") != 1 || strings.Contains(text, "level=WARN") {
		t.Error("not two failures, then a success, without a warning")
	}
}

// TestRestart: after a restart the probes answer again, on the same port, and
// docker stop is no failure to be restarted after.
func TestRestart(t *testing.T) {
	t.Parallel()
	needEngine(t)
	for _, c := range []struct {
		policy string
		status int // of the failed run
	}{{"always", 0}, {"unless-stopped", 3}, {"on-failure", 3}} {
		t.Run(c.policy, func(t *testing.T) {
			t.Parallel()
			ports := freePorts(t, 1)
			b := spec{opts: []string{"--restart", c.policy}, port: ports[0], env: map[string]string{"ANNOUNCE_DELAY": "300ms"},
				argv: []string{"workload", "flaky", "/tmp/runs", "1", itoa(c.status), "trap", "TERM=3"}}.background(t)
			eventually(t, "readiness of the second run", func() bool {
				if !strings.Contains(b.logs(), "run 2") {
					return false
				}
				s, body, _ := get(ports[0], "/readyz")
				return s == 200 && body == `{"status":"ready"}`
			})
			b.stop("15")
			s := b.becomes("exited")
			if s.RestartCount != 1 || s.State.ExitCode != 3 {
				t.Errorf("%d restarts, status %d", s.RestartCount, s.State.ExitCode)
			}
			if strings.Contains(b.logs(), "level=WARN") {
				t.Error("warns: the port was not free again")
			}
			// A start by hand is a third run, with its probes.
			dockerDo(t, "start", b.name)
			eventually(t, "readiness of the third run", func() bool { s, _, _ := get(ports[0], "/readyz"); return s == 200 })
			b.becomes("running")
			dockerDo(t, "stop", b.name)
		})
	}
}

// TestDockerRestart: docker restart is a stop in order, and a start.
func TestDockerRestart(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{argv: []string{"workload", "trap", "TERM=0@200ms"}}.background(t)
	eventually(t, "the first run", func() bool { return strings.Contains(b.logs(), "ready") })
	dockerDo(t, "restart", b.name)
	eventually(t, "the second run", func() bool { return strings.Count(b.logs(), "ready") == 2 })
	b.gotOnly("15")
	if !strings.Contains(b.logs(), `ended_by="stop signal" exit_status=0`) {
		t.Error("the first run was not stopped in order")
	}
}
