package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"drainit/self"
)

// asked starts what is to run from the moment on that the workload's start has
// been asked for: it may take its time.
func asked(p parts) {
	if p.server != nil {
		go p.server.Serve(context.Background())
	}
	if p.control != nil {
		go p.control.Serve(context.Background())
	}
	go p.relay.Rest()
}

// started does what has waited for the workload: the signals that it was to
// find ignored, and the care for our own process.
func started(p parts, adopt error) {
	p.relay.Ignored()
	held := p.held
	if held == nil {
		held = self.Seal()
	}
	go func() {
		defer recovered(nil)
		self.Settle(held, p.terminal != nil)
	}()
	if adopt != nil {
		p.log.Debug("orphans go elsewhere", slog.String("error", adopt.Error()))
	}
}

// recovered is the last resort of a goroutine: the fault is told in full, and
// the container ends with the init's own status instead of the runtime's.
func recovered(status *int) {
	fault := recover()
	if fault == nil {
		return
	}
	if status != nil {
		*status = failed
	}
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	self.Say(fmt.Sprintf("drainit: internal fault: %v\n%s", fault, stack))
}
