//go:build linux && !race

package containers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatus: docker run ends with the workload's status, or with the init's own.
func TestStatus(t *testing.T) {
	t.Parallel()
	needEngine(t)
	for _, c := range []struct {
		name   string
		env    map[string]string
		argv   []string
		status int
		say    string
	}{
		{name: "0", argv: []string{"workload", "exit", "0"}, say: "ended_by=itself exit_status=0"},
		{name: "7", argv: []string{"workload", "exit", "7"}, status: 7, say: "ended_by=itself exit_status=7"},
		{name: "143", argv: []string{"workload", "exit", "143"}, status: 143, say: "ended_by=itself exit_status=143"},
		{name: "signal", argv: []string{"sh", "-c", "kill -SEGV $$"}, status: 139, say: `ended_by="signal SEGV" exit_status=139`},
		{name: "remapped", env: map[string]string{"REMAP_EXIT": "143:0,7:1"}, argv: []string{"sh", "-c", "kill -TERM $$"},
			say: `workload_status=143 ended_by="signal TERM" exit_status=0`},
		{name: "not remapped", env: map[string]string{"REMAP_EXIT": "143:0"}, argv: []string{"workload", "exit", "3"}, status: 3},
		{name: "absent", argv: []string{"nowhere"}, status: 127, say: `start "nowhere"`},
		{name: "no program", argv: []string{"/tmp"}, status: 126, say: `start "/tmp"`},
		{name: "refused", env: map[string]string{"GRACE_PERIOD": "soon"}, argv: []string{"workload", "exit", "0"}, status: 125, say: `"soon"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := spec{env: c.env, argv: c.argv}.run(t)
			b.want(c.status)
			if !strings.Contains(b.output(), c.say) {
				t.Errorf("no %q in the output:\n%s", c.say, b.output())
			}
		})
	}
}

// TestRemappedStop: a stop that the workload has died of is a success where it
// is declared to be one.
func TestRemappedStop(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{env: map[string]string{"REMAP_EXIT": "143:0"}, argv: []string{"sleep", "1000"}}.run(t)
	b.wait(`msg="workload started"`)
	b.stop("15")
	b.want(0)
	b.quiet()
}

// TestStandardInput: what the client sends reaches the workload, and the end of
// it too; the streams are the workload's own.
func TestStandardInput(t *testing.T) {
	t.Parallel()
	needEngine(t)
	cmd := docker(append([]string{"run", "--interactive"}, spec{argv: []string{"sh", "-c", "cat; echo done >&2; exit 4"}}.args(nameOf(t))...)...)
	b := &box{name: nameOf(t)}
	b.cleanUp(t)
	cmd.Stdin = strings.NewReader("one\ntwo\n")
	b.printer = runPrinter(t, cmd)
	b.want(4)
	b.inOrder("^one$", "^two$")
	if !b.has("^done$") {
		t.Error("no standard error")
	}
}

// TestOutOfMemory: the kernel ends the workload, not the init, which says so and
// passes the status on.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	needEngine(t)
	b := spec{opts: []string{"--memory", "64m", "--memory-swap", "64m"}, argv: []string{"workload", "eat"}}.run(t)
	b.want(137)
	b.inOrder(`msg="workload exited".* status=137 signal=KILL`, `msg="shutdown complete".* ended_by="signal KILL" exit_status=137`)
	b.gotOnly() // KILL was not the engine's
}

// TestTerminationMessage: a file where orchestrators want the reason of an end
// gets it after a stop, and stays empty when the workload has ended by itself.
// Its absence is nothing to speak of: every other test here runs without.
func TestTerminationMessage(t *testing.T) {
	t.Parallel()
	needEngine(t)
	run := func(name string, argv ...string) (*box, string) {
		file := filepath.Join(t.TempDir(), "termination-log")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return spec{opts: []string{"--volume", file + ":/dev/termination-log"}, argv: argv}.runAs(t, nameOf(t)+name), file
	}
	ended, file := run("-ended", "workload", "exit", "9")
	ended.want(9)
	ended.quiet()
	if text, err := os.ReadFile(file); err != nil || len(text) > 0 {
		t.Errorf("the file says %q, %v", text, err)
	}
	stopped, file := run("-stopped", "workload", "trap", "TERM=4")
	stopped.ready()
	stopped.stop("15")
	stopped.want(4)
	stopped.quiet()
	wantReport(t, file, "TERM", 4)
}
