package signals

import (
	"os"
	"os/signal"
	"syscall"
)

// Relay is where the process's signals arrive. One value serves the whole life
// of the process: nothing is ever reset or ignored, since the dispositions
// that signal.Ignore and signal.Reset leave are inherited by children
// (golang.org/issue/20479), and a PID 1 without a handler hears nothing
// (pid_namespaces(7)).
type Relay struct {
	// C has every signal but CHLD. It has room for one of each number, which
	// is the most that the runtime holds back, so none is dropped.
	C chan os.Signal
	// Child has a value when children may have changed state. SIGCHLD
	// coalesces: one value stands for any number of children.
	Child chan os.Signal

	late []os.Signal
}

// Open subscribes to what may arrive before the workload exists. Signals that
// were ignored when the process was started wait for Rest: subscribing to them
// installs a handler, which execve(2) would turn into the default action for
// the workload, where it is to find them ignored as before (nohup).
func Open() *Relay {
	r := &Relay{C: make(chan os.Signal, Max), Child: make(chan os.Signal, 1)}
	early := make([]os.Signal, 0, Max)
	for sig := range Forwardable().each {
		switch {
		case signal.Ignored(sig) || !before.Has(sig):
			r.late = append(r.late, sig)
		default:
			early = append(early, sig)
		}
	}
	signal.Notify(r.C, early...)
	signal.Notify(r.Child, syscall.SIGCHLD)
	return r
}

// before are the signals that somebody may send to a process that has just
// been started. Each subscription is a handshake between threads of some 20 us,
// so the others, mostly real-time signals, wait until the workload runs. So do
// CONT, TSTP, TTIN and TTOU: the runtime leaves them as they were inherited, but
// signal.Ignored does not know of it.
const before = Set(1<<(syscall.SIGTERM-1) | 1<<(syscall.SIGINT-1) |
	1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGQUIT-1) | 1<<(syscall.SIGUSR1-1) |
	1<<(syscall.SIGUSR2-1) | 1<<(syscall.SIGWINCH-1) | 1<<(syscall.SIGALRM-1))

// Rest subscribes to the others. It is called once, when the workload has been
// started or before anything else that takes time.
func (r *Relay) Rest() {
	if len(r.late) > 0 {
		signal.Notify(r.C, r.late...)
	}
	r.late = nil
	// A write of ours to a closed pipe must not end the process: with a
	// subscription the runtime turns SIGPIPE on descriptors 1 and 2 into EPIPE
	// (os/signal, "SIGPIPE"). What it delivers is dropped on the floor.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// each calls yield for each member in ascending order.
func (s Set) each(yield func(syscall.Signal) bool) {
	for sig := syscall.Signal(1); sig <= Max; sig++ {
		if s.Has(sig) && !yield(sig) {
			return
		}
	}
}
