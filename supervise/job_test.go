package supervise

import (
	"slices"
	"syscall"
	"testing"
	"time"
)

// tty is a terminal.
type tty struct {
	f  *fake
	fg int
}

func (t *tty) Give(group int)  { t.fg = group; t.f.note("give %d", group) }
func (t *tty) TakeBack()       { t.fg = syscall.Getpgrp(); t.f.note("take back") }
func (t *tty) Foreground() int { return t.fg }

// suspend stops the workload after a while, as its terminal would.
func (f *fake) suspend(after time.Duration, sig syscall.Signal) {
	time.AfterFunc(after, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.main().stopped = sig
		f.children <- syscall.SIGCHLD
	})
}

// TestSuspend: below a shell Ctrl-Z hands the terminal back and stops the init;
// fg gives it to the workload again, bg does not.
func TestSuspend(t *testing.T) {
	for _, foreground := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			f := newFake(behaviour{self: 10 * sec})
			term := &tty{f: f}
			w := f.world()
			w.Terminal = term
			w.Suspend = func() {
				f.note("suspended")
				if !foreground {
					term.fg = 1
				}
			}
			f.suspend(2*sec, syscall.SIGTSTP)
			time.AfterFunc(3*sec, func() { f.children <- syscall.SIGCHLD }) // something else has ended meanwhile
			f.kill(4*sec, syscall.SIGCONT)
			f.run(f.job(docker()), w)
			want := []string{"0s start 0", "0s ready", "0s readiness 1", "2s take back", "2s suspended"}
			if foreground {
				want = append(want, "4s give 100")
			}
			want = append(want, "4s continued to group", "4s continued to workload",
				"10s readiness 2", "10.025s take back")
			f.wantEvents(t, want...)
			if !f.specs[workloadTag].Foreground {
				t.Error("the workload did not get the terminal")
			}
		})
	}
}

// TestSuspendTwice: after fg the next Ctrl-Z works like the first.
func TestSuspendTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: 10 * sec})
		w, n := f.world(), 0
		w.Terminal, w.Suspend = &tty{f: f}, func() { n++ }
		f.suspend(2*sec, syscall.SIGTSTP)
		f.kill(3*sec, syscall.SIGCONT)
		f.suspend(4*sec, syscall.SIGTTIN)
		f.kill(5*sec, syscall.SIGCONT)
		f.suspend(6*sec, syscall.SIGSTOP) // not from the terminal
		f.run(f.job(docker()), w)
		if n != 2 {
			t.Errorf("suspended %d times", n)
		}
	})
}

// TestSuspendPID1: there is no shell above: the workload goes on, with the terminal
// where it was stopped for want of it.
func TestSuspendPID1(t *testing.T) {
	for sig, want := range map[syscall.Signal][]string{
		syscall.SIGTSTP: {"2s continued to group"},
		syscall.SIGTTIN: {"2s give 100", "2s continued to group"},
		syscall.SIGTTOU: {"2s give 100", "2s continued to group"},
	} {
		bubble(t, func(t *testing.T) {
			f := newFake(behaviour{self: 10 * sec})
			w := f.world()
			w.Terminal = &tty{f: f}
			f.suspend(2*sec, sig)
			f.run(f.job(docker()), w)
			f.wantEvents(t, slices.Concat([]string{"0s start 0", "0s ready", "0s readiness 1"}, want,
				[]string{"10s readiness 2", "10.025s take back"})...)
		})
	}
}

// TestSuspendOrphaned: a session of its own has no shell above it either.
func TestSuspendOrphaned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: 10 * sec})
		w := f.world()
		w.Terminal, w.Suspend, w.Orphaned = &tty{f: f}, func() { t.Error("suspended") }, func() bool { return true }
		f.suspend(2*sec, syscall.SIGTSTP)
		f.run(f.job(docker()), w)
		if !f.has("2s continued to group") {
			t.Errorf("%q", f.events)
		}
	})
}

// TestSuspendDuringDrain: a workload that is to stop is not left suspended.
func TestSuspendDuringDrain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: never, onStop: 5 * sec})
		w := f.world()
		w.Terminal, w.Suspend = &tty{f: f}, func() { t.Error("suspended") }
		f.kill(sec, syscall.SIGTERM)
		f.suspend(2*sec, syscall.SIGTSTP)
		f.run(f.job(docker()), w)
		if !f.has("2s continued to group") {
			t.Errorf("%q", f.events)
		}
	})
}

// TestNoTerminal: what is not interactive is left suspended, and touches nothing.
func TestNoTerminal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(behaviour{self: 10 * sec})
		w := f.world()
		w.Suspend = func() { t.Error("suspended") }
		f.suspend(2*sec, syscall.SIGTSTP)
		f.run(f.job(docker()), w)
		f.wantEvents(t, "0s start 0", "0s ready", "0s readiness 1", "10s readiness 2")
		if f.specs[workloadTag].Foreground {
			t.Error("the workload got a terminal")
		}
	})
}
