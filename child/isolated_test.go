package child

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onFirst takes what has to run on the process's first thread, as the init's
// loop does.
var onFirst = make(chan func())

func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_ACT") {
	case "daemon":
		leaveDaemon()
		return
	case "hang":
		hangInExec()
	}
	if os.Getenv("CHILD_ISOLATED") == "" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread()
	status := make(chan int)
	go func() { status <- m.Run() }()
	for {
		select {
		case f := <-onFirst:
			f()
		case code := <-status:
			os.Exit(code)
		}
	}
}

// reap is Table.Reap on the first thread.
func reap(t *Table) (r Reaped) {
	done := make(chan struct{})
	onFirst <- func() { r = t.Reap(); close(done) }
	<-done
	return r
}

// isolated runs the calling test again in a process of its own, and reports
// whether this is that process: what waits for any child would steal from
// others (os/exec, the tests beside it). It is a subreaper, as the init is.
func isolated(t *testing.T) bool {
	t.Helper()
	return isolatedBy(t, nil)
}

// skip leaves a test out; where DRAINIT_CI is set (CI) that is a failure.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// needRoot skips what only root can set up.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "needs root")
	}
}

// withoutProc is isolated in a mount namespace of its own, without /proc.
func withoutProc(t *testing.T) bool {
	t.Helper()
	needRoot(t)
	if !isolatedBy(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}) {
		return false
	}
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	return true
}

func isolatedBy(t *testing.T, attr *syscall.SysProcAttr) bool {
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
	cmd.SysProcAttr = attr
	cmd.WaitDelay = time.Second // for what a test that failed has left
	out, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(out), "--- SKIP: "+t.Name()) {
		skip(t, string(out))
	}
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
		if o, ok := table.look(zero); ok { // what a test that failed has left
			for _, p := range o.byPID {
				if o.of(p) != (owner{}) {
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

// zero is the time that never comes.
var zero time.Time

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
		for _, e := range reap(table).Exits {
			if e.Proc == p {
				found = &e
			}
		}
		return found != nil
	})
	return *found
}
