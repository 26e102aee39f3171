package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"

	"drainit/self"
)

// background is what runs beside the loop once the workload has been started.
type background struct{ all sync.WaitGroup }

// ready starts what has waited for the workload: the rest of the signals, the
// probes' answers, and the care for our own process.
func (b *background) ready(p parts, adopt error) {
	p.relay.Rest()
	b.all.Go(func() {
		defer recovered(nil)
		self.Settle(p.terminal != nil)
	})
	if p.server != nil {
		b.all.Go(func() { p.server.Serve(context.Background()) })
	}
	if adopt != nil {
		p.log.Logger().Debug("orphans go elsewhere", slog.String("error", adopt.Error()))
	}
}

// join waits for them. The server has been closed by then; it is closed again
// here for a loop that ended in a fault.
func (b *background) join(p parts) {
	if p.server != nil {
		p.server.Close()
	}
	b.all.Wait()
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
	fmt.Fprintf(os.Stderr, "drainit: internal fault: %v\n%s", fault, debug.Stack())
}
