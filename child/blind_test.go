package child

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestKeptWithoutProc: the hook's own group is all that is known.
func TestKeptWithoutProc(t *testing.T) {
	if !withoutProc(t) {
		return
	}
	table := newOwner(t)
	dir := t.TempDir()
	script := "mkfifo up; sleep 601 & sleep 602 & setsid sh -c 'echo $$ > pid; echo > up; exec sleep 603' & read x < up"
	step := kept(t, table, "a", "cd "+dir+"; "+script)
	if n, known := leftOf(table, step); n != 1 || known {
		t.Errorf("%d left, %v", n, known)
	}
	if n := table.SignalLeft([]*Proc{step}, syscall.SIGTERM); n != 1 {
		t.Errorf("%d told", n)
	}
	eventually(t, "the group's end", func() bool {
		reap(table)
		n, known := leftOf(table, step)
		return n == 0 && !known
	})
	if n := table.SignalLeft([]*Proc{step}, syscall.SIGKILL); n != 0 {
		t.Errorf("%d killed", n)
	}
	if !reap(table).Left {
		t.Error("the one in a session of its own has gone")
	}
	table.KillAll() // not PID 1: nothing
	text, _ := os.ReadFile(dir + "/pid")
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Errorf("pid %q: %v", text, err)
	}
	eventually(t, "the end", func() bool { return !reap(table).Left })
}

// TestLostNumberWithoutProc: a group whose number is another's now is left alone.
func TestLostNumberWithoutProc(t *testing.T) {
	if !withoutProc(t) {
		return
	}
	table := newOwner(t)
	step := kept(t, table, "a", "sleep 601 &")
	table.taken(step.PID)
	if n, _ := leftOf(table, step); n != 0 {
		t.Errorf("%d left", n)
	}
	if n := table.SignalLeft([]*Proc{step}, syscall.SIGKILL); n != 0 {
		t.Errorf("%d killed", n)
	}
	if err := syscall.Kill(-step.PID, syscall.SIGKILL); err != nil {
		t.Error("the group was hit:", err)
	}
	eventually(t, "the end", func() bool { return !reap(table).Left })
}

// TestHookLeavesNothingWithoutProc, as far as its group goes, and nothing hangs.
func TestHookLeavesNothingWithoutProc(t *testing.T) {
	if !withoutProc(t) {
		return
	}
	table := newOwner(t)
	hook := startOne(t, table, hookSpec("companion", "c", "sleep 601 & sleep 602 & exit 0"))
	if e := awaitExit(t, table, hook); e.Kept {
		t.Errorf("%+v", e)
	}
	eventually(t, "the end", func() bool { return !reap(table).Left })
}
