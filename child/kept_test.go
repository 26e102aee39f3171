package child

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// hookSpec is a hook that runs a script.
func hookSpec(kind, name, script string) Spec {
	s := shell(script)
	s.Session, s.Name, s.Kind = true, name, kind
	s.Env = append(s.Env, "DRAINIT_HOOK="+name, "DRAINIT_HOOK_KIND="+kind)
	return s
}

// kept is a step's start that has left something behind.
func kept(t *testing.T, table *Table, name, script string) *Proc {
	t.Helper()
	s := hookSpec("step", name, script)
	s.Keep = true
	p := startOne(t, table, s)
	if e := awaitExit(t, table, p); e.Status != 0 || !e.Kept {
		t.Fatalf("%+v", e)
	}
	return p
}

func leaves(t *testing.T, table *Table, p *Proc, want int) {
	t.Helper()
	eventually(t, strconv.Itoa(want)+" left of "+p.Name, func() bool {
		reap(table)
		n, known := leftOf(table, p)
		return n == want && known
	})
}

func remains(t *testing.T, table *Table, want int) {
	t.Helper()
	eventually(t, strconv.Itoa(want)+" of the workload", func() bool {
		reap(table)
		n, known := table.Remains()
		return n == want && known
	})
}

// kill ends the workload.
func kill(t *testing.T, table *Table, workload *Proc) {
	t.Helper()
	table.SignalRest(workload.PID, syscall.SIGKILL, false)
	awaitExit(t, table, workload)
	remains(t, table, 0)
}

// daemons are what a hook may leave behind: in its group, in a session of its
// own, double-forked into one.
const daemons = "sleep 601 & setsid sleep 602 & (setsid sh -c 'sleep 603; :' &) ; "

// TestKeptDaemons: what a step's start leaves behind is the step's. It survives
// the workload, and ends with the step.
func TestKeptDaemons(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	step := kept(t, table, "a", daemons)
	workload := startOne(t, table, shell("exec sleep 600"))
	leaves(t, table, step, 4)
	remains(t, table, 1)
	kill(t, table, workload)
	if !table.Hooks() || !reap(table).Left {
		t.Error("what is left of the step is not seen")
	}
	leaves(t, table, step, 4)
	if n := table.SignalLeft([]*Proc{step}, syscall.SIGTERM); n != 4 {
		t.Errorf("%d told", n)
	}
	leaves(t, table, step, 0)
	if reap(table).Left {
		t.Error("something is left")
	}
	table.Forget(step)
	if table.Hooks() {
		t.Error("the step is still seen")
	}
}

// TestKeptAndStubborn: TERM reaches a suspended daemon, and KILL one that does
// not obey.
func TestKeptAndStubborn(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	ready := filepath.Join(t.TempDir(), "ready")
	step := kept(t, table, "a", `
		mkfifo `+ready+`
		setsid sh -c 'kill -STOP $$; :' &
		setsid sh -c 'trap "" TERM; echo > `+ready+`; while :; do sleep 604; done' &
		read x < `+ready)
	eventually(t, "the suspended one", func() bool {
		o, _ := table.look(zero)
		n := 0
		o.each(owner{hook: step}, func(p process) {
			if p.state == 'T' {
				n++
			}
		})
		return n == 1
	})
	table.SignalLeft([]*Proc{step}, syscall.SIGTERM)
	eventually(t, "the stubborn one alone", func() bool { // with or without a sleep
		reap(table)
		o, _ := table.look(zero)
		sessions := map[int]bool{}
		o.each(owner{hook: step}, func(p process) { sessions[p.session] = true })
		return len(sessions) == 1
	})
	if n := table.SignalLeft([]*Proc{step}, syscall.SIGKILL); n == 0 {
		t.Error("nothing to kill")
	}
	leaves(t, table, step, 0)
}

// TestForgotten: what nobody keeps any more is the workload's.
func TestForgotten(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	step := kept(t, table, "a", daemons)
	leaves(t, table, step, 4)
	table.Forget(step)
	if n, known := leftOf(table, step); n != 0 || !known || table.SignalLeft([]*Proc{step}, syscall.SIGKILL) != 0 {
		t.Errorf("%d left, %v", n, known)
	}
	remains(t, table, 4)
	table.Forget(step) // again: nothing
	table.SignalRest(step.PID, syscall.SIGKILL, false)
	remains(t, table, 0)
}

// TestNotKept: a start that fails, or was told to stop, leaves nothing.
func TestNotKept(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	for name, c := range map[string]struct {
		script string
		told   bool
		status int
	}{
		"failed":   {daemons + "exit 3", false, 3},
		"signal":   {daemons + "kill -KILL $$", false, 137},
		"told":     {daemons + "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done", true, 0},
		"not kept": {daemons + "exit 0", false, 0},
	} {
		up := make(chan string, 100)
		s := hookSpec("step", name, c.script)
		s.Keep, s.Output = name != "not kept", func(line string) { up <- line }
		p := startOne(t, table, s)
		if c.told {
			<-up
			table.SignalHook(p, syscall.SIGTERM)
		}
		if e := awaitExit(t, table, p); e.Status != c.status || e.Kept {
			t.Errorf("%s: %+v", name, e)
		}
		if table.Hooks() {
			t.Errorf("%s: is still seen", name)
		}
		eventually(t, "nothing left: "+name, func() bool { return !reap(table).Left })
	}
}

// TestStopBesideDaemons: a step's stop is told and ends without the daemons of its
// start, which carry the same mark.
func TestStopBesideDaemons(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	step := kept(t, table, "a", daemons)
	leaves(t, table, step, 4)
	up := make(chan string, 1)
	s := hookSpec("step", "a", "sleep 605 & echo up; wait")
	s.Output = func(line string) { up <- line }
	stop := startOne(t, table, s)
	<-up
	leaves(t, table, step, 4)
	table.SignalHook(stop, syscall.SIGTERM)
	if e := awaitExit(t, table, stop); e.Status != 143 || e.Kept {
		t.Errorf("%+v", e)
	}
	leaves(t, table, step, 4)
	// One that ends by itself: what it leaves in its own session goes with it.
	stop = startOne(t, table, hookSpec("step", "a", "sleep 606 & exit 1"))
	awaitExit(t, table, stop)
	leaves(t, table, step, 4)
	remains(t, table, 0)
	// Its strays can't be told from the start's, and are stopped with them.
	gone := filepath.Join(t.TempDir(), "up")
	stop = startOne(t, table, hookSpec("step", "a", "mkfifo "+gone+"; (setsid sh -c 'echo > "+gone+"; exec sleep 607' &) ; read x < "+gone))
	awaitExit(t, table, stop)
	leaves(t, table, step, 5)
	table.SignalLeft([]*Proc{step}, syscall.SIGKILL)
	leaves(t, table, step, 0)
}

// TestKeptOutput: a daemon that keeps the output of the start can go on printing,
// until it is forgotten.
func TestKeptOutput(t *testing.T) {
	if !isolated(t) {
		return
	}
	table := newOwner(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	lines := make(chan string, 10)
	s := hookSpec("step", "a", "mkfifo "+fifo+"; (setsid sh -c 'while :; do read x < "+fifo+" && echo $x; done' &) ; :")
	s.Keep, s.Output = true, func(line string) { lines <- line }
	step := startOne(t, table, s)
	awaitExit(t, table, step)
	say := func(text string) {
		if err := os.WriteFile(fifo, []byte(text+"\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	table.Drain(2 * drainAfter) // as long as the rest of an ended one is read, and longer
	say("late")
	if l := <-lines; l != "late" {
		t.Errorf("read %q", l)
	}
	table.Forget(step)
	table.Drain(patience)
	say("forgotten")
	eventually(t, "the end of who prints", func() bool { return !reap(table).Left }) // by PIPE
}

// leftOf is what Left says of one.
func leftOf(t *Table, p *Proc) (int, bool) {
	counts, known := t.Left([]*Proc{p})
	return counts[0], known
}
