package signals

import (
	"math/bits"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
)

// Relay is where the process's signals arrive, one at a time, by Next. One
// value serves the whole life of the process: nothing is ever reset or ignored,
// since the dispositions that signal.Ignore and signal.Reset leave are inherited
// by children (golang.org/issue/20479), and a PID 1 without a handler hears
// nothing (pid_namespaces(7)).
type Relay struct {
	set    Set // what the thread waits for
	thread int
	last   syscall.Signal // what Next returned last

	// c and child have what came through the runtime's handlers; collect keeps
	// them empty.
	c, child chan os.Signal
	woken    chan struct{}  // for a Next that can't ask the kernel
	missed   atomic.Uint64  // a Set: the same, for Next
	given    syscall.Signal // the last that Next took out of it
	late     []os.Signal    // what Rest subscribes to
	ignored  []os.Signal    // what Ignored subscribes to
}

// Open begins to take signals. It is called once, first thing, by the main
// goroutine, which it locks to its thread: that is the process's first one, and
// it blocks the signals from now on (see Next). No child may be forked from it.
//
// Beside that the runtime is subscribed to them, for those that the kernel
// gives to another thread. Signals that were ignored when the process was
// started wait for Ignored: subscribing to them installs a handler, which
// execve(2) would turn into the default action for the workload, where it is to
// find them ignored as before (nohup).
func Open() *Relay {
	runtime.LockOSThread()
	r := &Relay{
		set:    Forwardable().Minus(faults).With(syscall.SIGCHLD),
		thread: syscall.Gettid(),
		c:      early,
		child:  make(chan os.Signal, 1),
		woken:  make(chan struct{}, 1),
	}
	if r.c == nil {
		r.c = make(chan os.Signal, Max)
	}
	soon := make([]os.Signal, 0, Max)
	for sig := range Forwardable().each {
		switch {
		case signal.Ignored(sig) || inherited.Has(sig):
			r.ignored = append(r.ignored, sig)
		case before.Has(sig):
			soon = append(soon, sig)
		default:
			r.late = append(r.late, sig)
		}
	}
	r.subscribe(soon)
	// TTOU too: the terminal sends it to a process in its background that
	// writes to it or asks for its foreground, unless the thread blocks it.
	block(r.set.With(syscall.SIGTTOU).With(syscall.SIGPIPE))
	go r.collect()
	return r
}

// subscribe asks the runtime for signals. Each is a handshake with a thread of
// the runtime's; from this goroutine, which has a thread of its own, each would
// also hand that over and back.
func (r *Relay) subscribe(soon []os.Signal) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		signal.Notify(r.child, syscall.SIGCHLD)
		signal.Notify(r.c, soon...)
	}()
	<-done
}

// before are the signals that somebody may send to a process that has just
// been started. Each subscription is a handshake between threads of some 20 us,
// so the others, mostly real-time signals, wait for Rest.
const before = Set(1<<(syscall.SIGTERM-1) | 1<<(syscall.SIGINT-1) |
	1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGQUIT-1) | 1<<(syscall.SIGUSR1-1) |
	1<<(syscall.SIGUSR2-1) | 1<<(syscall.SIGWINCH-1) | 1<<(syscall.SIGALRM-1))

// inherited are left by the runtime as the process was started with them, but
// signal.Ignored does not know of it.
const inherited = Set(1<<(syscall.SIGCONT-1) | 1<<(syscall.SIGTSTP-1) |
	1<<(syscall.SIGTTIN-1) | 1<<(syscall.SIGTTOU-1))

// Rest subscribes to what Open has left out. It is called once, when the
// workload's start has been asked for, by a goroutine of its own.
func (r *Relay) Rest() {
	if len(r.late) > 0 {
		signal.Notify(r.c, r.late...)
	}
	// A write of ours to a closed pipe must not end the process: with a
	// subscription the runtime turns SIGPIPE on descriptors 1 and 2 into EPIPE
	// (os/signal, "SIGPIPE"). What it delivers is dropped on the floor.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// Ignored subscribes to the signals that were ignored, once the workload has
// been started with them.
func (r *Relay) Ignored() {
	if len(r.ignored) > 0 {
		signal.Notify(r.c, r.ignored...)
	}
	r.ignored = nil
}

// each calls yield for each member in ascending order.
func (s Set) each(yield func(syscall.Signal) bool) {
	for sig := syscall.Signal(1); sig <= Max; sig++ {
		if s.Has(sig) && !yield(sig) {
			return
		}
	}
}

// after returns the first member behind sig, counted in a circle: one that
// somebody sends without end hides none.
func (s Set) after(sig syscall.Signal) syscall.Signal {
	if later := s &^ (1<<sig - 1); later != 0 {
		s = later
	}
	return syscall.Signal(bits.TrailingZeros64(uint64(s)) + 1)
}
