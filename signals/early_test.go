package signals

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestSubscribeEarly: PID 1 alone, before anybody asks.
func TestSubscribeEarly(t *testing.T) {
	if early != nil || subscribeEarly(os.Getpid()) != nil {
		t.Error("subscribed, and not PID 1")
	}
	c := subscribeEarly(1)
	defer signal.Stop(c)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := <-c; got != syscall.SIGHUP {
		t.Errorf("%v", got)
	}
}

// TestDefaultAction: a signal that the runtime handles has a handler, one that it
// was told to ignore or that can't be caught has its own.
func TestDefaultAction(t *testing.T) {
	if !defaultAction(syscall.SIGKILL) || defaultAction(syscall.SIGSEGV) {
		t.Error("KILL has a handler, or SEGV has none")
	}
}
