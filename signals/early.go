package signals

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// early is where the signals of PID 1 arrive from the moment on that this package
// is initialised; nil for any other process, which a signal before that ends as
// it should. Until PID 1 has subscribed, the runtime's handlers end it with
// status 2 when TERM comes, on a thread of their own, and it may have started
// something by then. Other packages take a millisecond or more to initialise, and
// only a package variable comes before them. It is written once, before main.
var early = subscribeEarly(os.Getpid())

func subscribeEarly(pid int) chan os.Signal {
	if pid != 1 {
		return nil
	}
	c := make(chan os.Signal, Max)
	for _, sig := range [...]syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	return c
}

// Dying tells that the runtime is about to end the process by a signal that came
// before it was subscribed to: a thread that does so has put the default action
// in the place of the handler. What has not been started by then must not be.
func (r *Relay) Dying() (syscall.Signal, bool) {
	for sig := range before.Minus(Of(r.ignoredSignals()...)).each {
		if defaultAction(sig) {
			return sig, true
		}
	}
	return 0, false
}

func (r *Relay) ignoredSignals() []syscall.Signal {
	var all []syscall.Signal
	for _, s := range r.ignored {
		if sig, ok := s.(syscall.Signal); ok {
			all = append(all, sig)
		}
	}
	return all
}

// defaultAction asks the kernel (sigaction(2)); the handler's address comes first
// in its answer, SIG_DFL being 0.
func defaultAction(sig syscall.Signal) bool {
	var action [8]uintptr
	_, _, err := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION,
		uintptr(sig), 0, uintptr(unsafe.Pointer(&action)), setSize, 0, 0)
	return err == 0 && action[0] == 0
}
