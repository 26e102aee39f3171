package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"

	"drainit/self"
)

// background starts what has waited for the workload: the rest of the signals,
// the care for our own process, the probes' answers.
func background(p parts, adopt error) {
	p.relay.Rest()
	go func() {
		defer recovered(nil)
		self.Settle(p.terminal != nil)
	}()
	if p.server != nil {
		go p.server.Serve(context.Background())
	}
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
	fmt.Fprintf(os.Stderr, "drainit: internal fault: %v\n%s", fault, stack)
}
