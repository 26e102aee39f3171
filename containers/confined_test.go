//go:build linux && !race

package containers

import (
	"testing"
	"time"
)

// TestConfined: drainit asks for nothing that a container may be refused: it
// adopts, drains and kills as ever, without a warning.
func TestConfined(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const none = "0000000000000000"
	user := []string{"--user", "65534:65534"}
	all := append([]string{"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"}, user...)
	for _, c := range []struct {
		name  string
		opts  []string
		facts string
	}{
		{"default", nil, `uid=0 .* seccomp=2 nnp=0 readonly=false`},
		{"read-only", []string{"--read-only"}, `uid=0 .* readonly=true`},
		{"user", user, `uid=65534 caps=` + none},
		{"no capability", []string{"--cap-drop", "ALL"}, `uid=0 caps=` + none + ` bounding=` + none},
		{"all of it", all, `uid=65534 caps=` + none + ` bounding=` + none + ` seccomp=2 nnp=1 readonly=true`},
		{"few processes", append(all[:len(all):len(all)], "--pids-limit", "64"), `uid=65534`},
		{"no seccomp", append(all[:len(all):len(all)], "--security-opt", "seccomp=unconfined"), `seccomp=0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := spec{stage: "phases", opts: c.opts, env: map[string]string{"GRACE_PERIOD": "8s", "DRAIN_TIMEOUT": "500ms"},
				argv: []string{"workload", "daemon", "workload", "ignore", "TERM", "then", "facts", "trap", "TERM=5"}}.run(t)
			b.ready()
			b.wait("facts .*" + c.facts)
			b.bothReady()
			b.stop("15")
			b.want(5)
			b.inOrder(`msg="signal received"`, `phase=hand-over result=ok`, `stage=gate`, `msg="workload exited".* status=5`,
				`msg="descendants told to stop".* count=1`, `stage=cancel`, `msg="workload killed".* count=1 denied=0`, `msg="shutdown complete"`)
		})
	}
}

// TestFullTable: where no process can be had any more the drain takes its course:
// what it needs is there from the start.
func TestFullTable(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const fill = `trap "exit 5" TERM; sleep 1000 & mine=$!; (while :; do sleep 1000 & done) 2>/dev/null; echo full; wait $mine`
	b := spec{opts: []string{"--pids-limit", "80"}, env: map[string]string{"GRACE_PERIOD": "5s"}, argv: []string{"sh", "-c", fill}}.run(t)
	b.wait("^full")
	b.stop("15")
	b.want(5)
	b.inOrder(`msg="signal received"`, `stage=gate`, `msg="workload exited".* status=5`, `msg="descendants told to stop"`, `ended_by="stop signal"`)
	b.quiet()
	if b.total() > time.Second {
		t.Errorf("took %v", b.total())
	}
}
