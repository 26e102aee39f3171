package journal

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"
)

// withoutWriter is a journal whose writer is only started by the test.
func withoutWriter(fd int) *Journal {
	j := Open(Options{Format: "text", FD: fd})
	j.start.Do(func() { j.started.Store(true) })
	return j
}

// blocked runs f on a thread that blocks what a write may raise, and that ends
// with it.
func blocked(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread keeps its mask
		blockWriteSignals()
		f()
	}()
	<-done
}

func TestFlushWritesHere(t *testing.T) {
	r, w := pipe(t, 0)
	j := withoutWriter(w)
	for i := range 3 {
		j.Logger().Info("line", slog.Int("n", i))
	}
	var here bool
	blocked(func() { here = j.flushHere() })
	if !here {
		t.Fatal("left to the writer")
	}
	s := lines(r)
	for i := range 3 {
		if line := next(t, s); !strings.HasSuffix(line, fmt.Sprintf("msg=line n=%d", i)) {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if j.Dropped() != 0 {
		t.Errorf("%d dropped", j.Dropped())
	}
}

// A pipe without room holds nobody up, blocking as it is: what was begun is
// finished by the writer, once and in order.
func TestFlushHereLeavesTheRest(t *testing.T) {
	r, w := pipe(t, 0)
	fill(t, w)
	j := withoutWriter(w)
	j.Logger().Info("first")
	j.Logger().Info("second")
	var here bool
	within(t, "a full pipe", func() { blocked(func() { here = j.flushHere() }) })
	if here {
		t.Fatal("wrote into a full pipe")
	}
	go j.run()
	s := lines(r)
	var got []string
	for len(got) < 2 {
		if line := next(t, s); strings.Contains(line, "msg=") {
			got = append(got, line[strings.Index(line, "msg="):])
		}
	}
	if got[0] != "msg=first" || got[1] != "msg=second" {
		t.Errorf("got %q", got)
	}
	j.Close(time.Second)
}

// A thread that would be hit by the signals of a write does not write.
func TestFlushHereNeedsTheMask(t *testing.T) {
	_, w := pipe(t, 0)
	j := withoutWriter(w)
	j.Logger().Info("line")
	if j.flushHere() {
		t.Error("wrote with SIGPIPE unblocked")
	}
}
