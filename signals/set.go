package signals

import (
	"fmt"
	"strings"
	"syscall"
)

// Set is a set of signals; the zero value is empty. It is a value: copies are
// independent.
type Set uint64

// Of returns the set of the given signals.
func Of(list ...syscall.Signal) Set {
	var s Set
	for _, sig := range list {
		s = s.With(sig)
	}
	return s
}

// With returns the set with sig in it; a number outside 1 to Max changes nothing.
func (s Set) With(sig syscall.Signal) Set {
	if sig < 1 || sig > Max {
		return s
	}
	return s | 1<<(sig-1)
}

// Has tells whether sig is in the set.
func (s Set) Has(sig syscall.Signal) bool {
	return sig >= 1 && sig <= Max && s&(1<<(sig-1)) != 0
}

// Minus returns the signals of s that are not in t.
func (s Set) Minus(t Set) Set { return s &^ t }

// List returns the members in ascending order.
func (s Set) List() []syscall.Signal {
	var list []syscall.Signal
	for sig := syscall.Signal(1); sig <= Max; sig++ {
		if s.Has(sig) {
			list = append(list, sig)
		}
	}
	return list
}

// String returns the names in ascending order, separated by commas, or none.
func (s Set) String() string {
	if s == 0 {
		return "none"
	}
	var b strings.Builder
	for i, sig := range s.List() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(Name(sig))
	}
	return b.String()
}

// unreceivable says for each signal that never reaches a Go program as an
// event, or may not be read as one, why that is so.
func unreceivable(sig syscall.Signal) string {
	switch sig {
	case syscall.SIGKILL, syscall.SIGSTOP:
		return "the kernel lets no program catch it"
	case 32, 33, 34:
		return "the C library and the Go runtime keep it to themselves"
	case syscall.SIGPROF:
		return "the Go runtime's profiler keeps it to itself"
	case syscall.SIGURG:
		return "the Go runtime sends it to itself all the time"
	case syscall.SIGCHLD:
		return "it tells the init of its children"
	case syscall.SIGPIPE:
		// The kernel raises it for our own writes to a connection that its
		// peer has closed, and os/signal can't tell that from a kill(2). A
		// probe client that hangs up must not end the workload.
		return "the init's own writes raise it too"
	}
	return ""
}

// Receivable returns nil for a signal that the init can take in: to begin the
// drain, or to pass on. The error says why not.
func Receivable(sig syscall.Signal) error {
	if why := unreceivable(sig); why != "" {
		return fmt.Errorf("%s can't be received: %s", Name(sig), why)
	}
	return nil
}

// Stops returns nil for a signal that may tell a workload to stop: all but
// those that would stop it in the job control sense, or that it can't notice.
func Stops(sig syscall.Signal) error {
	switch sig {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return fmt.Errorf("%s suspends a process instead of ending it", Name(sig))
	case syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG:
		return fmt.Errorf("%s ends no process", Name(sig))
	}
	return nil
}

// Forwardable is every signal that is passed on to the workload unless it
// begins the drain: all that can be received.
func Forwardable() Set {
	var s Set
	for sig := syscall.Signal(1); sig <= Max; sig++ {
		if unreceivable(sig) == "" {
			s = s.With(sig)
		}
	}
	return s
}
