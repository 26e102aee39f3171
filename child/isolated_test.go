package child

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// isolated runs the calling test again in a process of its own, and reports
// whether this is that process: what waits for any child would steal from
// others (os/exec, the tests beside it). It is a subreaper, as the init is.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv("CHILD_ISOLATED") == t.Name() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		return true
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s", "-test.v")
	cmd.Env = append(os.Environ(), "CHILD_ISOLATED="+t.Name())
	cmd.WaitDelay = time.Second // for what a test that failed has left
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// newOwner is a table with its forking thread.
func newOwner(t *testing.T) *Table {
	table := NewTable()
	done := make(chan struct{})
	go func() { table.Fork(); close(done) }()
	t.Cleanup(func() {
		table.Stop()
		<-done
		if o, ok := table.look(); ok { // what a test that failed has left
			for _, p := range o.byPID {
				if o.of(p) != outside {
					_ = syscall.Kill(p.pid, syscall.SIGKILL)
				}
			}
		}
	})
	return table
}

// shell is a Spec that runs a script.
func shell(script string) Spec {
	return Spec{Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ()}
}

// startOne starts a process and takes in the answer.
func startOne(t *testing.T, table *Table, s Spec) *Proc {
	t.Helper()
	table.Start(s, 0)
	a := <-table.Started()
	table.Register(a)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	return a.Proc
}

const patience = 20 * time.Second

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// awaitExit reaps until a process has ended.
func awaitExit(t *testing.T, table *Table, p *Proc) Exit {
	t.Helper()
	var found *Exit
	eventually(t, "the end of "+p.Name, func() bool {
		for _, e := range table.Reap().Exits {
			if e.Proc == p {
				found = &e
			}
		}
		return found != nil
	})
	return *found
}

// TestMain plays a hook that leaves a daemon behind, where it is asked to.
func TestMain(m *testing.M) {
	if os.Getenv("CHILD_ACT") != "daemon" {
		os.Exit(m.Run())
	}
	_ = os.Unsetenv("CHILD_ACT")
	cmd := exec.Command("sleep", "605")
	cmd.Env = syscall.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil { // returns when sleep is in its own session
		os.Exit(1)
	}
}
