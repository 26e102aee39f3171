package child

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOneNameInTwoKinds: the end of a companion is not that of a step's daemons.
func TestOneNameInTwoKinds(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	step := kept(t, table, "x", "(setsid sleep 601 &) ; :")
	up := make(chan string, 1)
	s := hookSpec("companion", "x", "(setsid sleep 602 &) ; echo up; exec sleep 603")
	s.Output = func(line string) { up <- line }
	companion := startOne(t, table, s)
	<-up
	leaves(t, table, step, 1)
	table.SignalHook(companion, syscall.SIGKILL)
	awaitExit(t, table, companion)
	leaves(t, table, step, 1)
	remains(t, table, 0)
	table.SignalLeft([]*Proc{step}, syscall.SIGTERM)
	eventually(t, "nothing left", func() bool { return !reap(table).Left })
}

// TestCompanionsDaemons: a companion's daemons are neither told nor killed with
// the workload, wherever they went. They end with the companion, be it told or
// not.
func TestCompanionsDaemons(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, told := range []bool{true, false} {
		up := make(chan string, 1)
		s := hookSpec("companion", "c", daemons+"echo up; read x < "+fifo)
		s.Output = func(line string) { up <- line }
		companion := startOne(t, table, s)
		<-up
		count := func() int {
			o, _ := table.look(zero)
			n := 0
			o.each(owner{hook: companion}, func(process) { n++ })
			return n
		}
		workload := startOne(t, table, shell("exec sleep 600"))
		eventually(t, "the daemons", func() bool { return count() == 5 })
		remains(t, table, 1)
		if r := table.SignalRest(workload.PID, syscall.SIGTERM, true); r.Count != 1 {
			t.Errorf("%+v", r)
		}
		awaitExit(t, table, workload)
		kill(t, table, startOne(t, table, shell("exec sleep 600")))
		if n := count(); n != 5 {
			t.Errorf("%d left beside the workload", n)
		}
		if told {
			table.SignalHook(companion, syscall.SIGTERM)
		} else if err := os.WriteFile(fifo, []byte("\n"), 0); err != nil {
			t.Fatal(err)
		}
		awaitExit(t, table, companion)
		eventually(t, "nothing left", func() bool { return !reap(table).Left })
	}
}

// TestSupervises: TERM leaves to one that supervises what it has in other groups,
// as an init below this one does, and reaches what has lost its parent. KILL
// reaches all.
func TestSupervises(t *testing.T) {
	if !isolated(t) {
		return
	}
	for _, supervises := range []bool{true, false} {
		table := newOwner(t)
		dir := t.TempDir()
		up, told := filepath.Join(dir, "up"), filepath.Join(dir, "told")
		s := hookSpec("companion", "a", "mkfifo "+up+"; trap 'echo leader >> "+told+"' TERM; "+
			"setsid sh -c 'trap \"echo child >> "+told+"\" TERM; echo > "+up+"; while :; do sleep 0.02; done' & read x < "+up+"; "+
			"while :; do sleep 0.02; done")
		s.Supervises = supervises
		p := startOne(t, table, s)
		eventually(t, "the child", func() bool {
			o, _ := table.look(zero)
			n := 0
			o.each(owner{hook: p}, func(q process) {
				if q.group != p.PID {
					n++
				}
			})
			_, err := os.Stat(up)
			return n > 0 && err == nil
		})
		eventually(t, "the leader is told", func() bool {
			table.SignalHooks([]*Proc{p}, syscall.SIGTERM)
			text, _ := os.ReadFile(told)
			return strings.Contains(string(text), "leader")
		})
		if !supervises {
			eventually(t, "the child is told", func() bool {
				text, _ := os.ReadFile(told)
				return strings.Contains(string(text), "child")
			})
		}
		table.SignalHooks([]*Proc{p}, syscall.SIGKILL)
		awaitExit(t, table, p)
		eventually(t, "nothing left", func() bool { return !reap(table).Left })
		text, _ := os.ReadFile(told)
		if got := strings.Contains(string(text), "child"); got == supervises {
			t.Errorf("supervises %v, the child was told: %v", supervises, got)
		}
	}
}

// TestDaemonThatHangs: one that can't be looked at any more stays whose it was.
func TestDaemonThatHangs(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	step := kept(t, table, "a", "(setsid sleep 601 &) ; :")
	leaves(t, table, step, 1)
	o, _ := table.look(zero)
	o.each(owner{hook: step}, func(p process) { table.proc.reader.stuck[p.pid] = true })
	leaves(t, table, step, 1)
	remains(t, table, 0)
	if n := table.SignalLeft([]*Proc{step}, syscall.SIGKILL); n != 1 {
		t.Errorf("%d killed", n)
	}
	leaves(t, table, step, 0)
}

// TestSweepsAreBounded: who is killed, or told, has no more time than
// that.
func TestSweepsAreBounded(t *testing.T) {
	s := sweepOf(syscall.SIGKILL)
	if left := time.Until(s.until); left > killLook || left < killLook/2 || s.resume {
		t.Errorf("%+v", s)
	}
	s = sweepOf(syscall.SIGTERM)
	if left := time.Until(s.until); left > tellLook || left < tellLook/2 || !s.resume {
		t.Errorf("%+v", s)
	}
	table := NewTable()
	began := time.Now()
	if _, ok := table.sweep(sweep{sig: syscall.SIGCONT, rounds: 1000000, who: []owner{{hook: &Proc{}}}, until: began}); !ok {
		t.Error("/proc can't be read")
	}
	if took := time.Since(began); took > killLook {
		t.Errorf("took %v", took)
	}
}
