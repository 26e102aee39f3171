package journal

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestClose(t *testing.T) {
	r, w := pipe(t, 0)
	j := Open(Options{Format: "text", FD: w})
	j.Flush(patience) // nothing was logged: nothing to wait for, nothing to start
	if j.started.Load() {
		t.Error("the writer runs before the first record")
	}
	j.Logger().Info("one")
	j.Close(patience)
	ended(t, j)
	j.Close(patience)
	within(t, "Flush", func() { j.Flush(time.Hour) })
	j.Logger().Info("late")
	j.HookLine(nil, "late")
	if j.Dropped() != 2 || len(j.queue) != 0 || j.lines.Load() != 0 {
		t.Errorf("%d dropped, %d queued", j.Dropped(), len(j.queue))
	}
	hangUp(t, w)
	all, err := io.ReadAll(os.NewFile(uintptr(r), "r"))
	if err != nil || strings.Count(string(all), "\n") != 1 {
		t.Errorf("%q, %v", all, err)
	}

	unused := Open(Options{FD: w})
	unused.Close(patience)
	ended(t, unused)
	unused.Logger().Info("late")
	if unused.Dropped() != 1 || unused.started.Load() {
		t.Errorf("%d dropped", unused.Dropped())
	}
}

// Records race with Close: each is either written or counted.
func TestCloseLosesNothingUncounted(t *testing.T) {
	for range 50 {
		r, w := pipe(t, 0)
		j := Open(Options{Format: "text", FD: w})
		var wg sync.WaitGroup
		const producers, each = 4, 25
		for range producers {
			wg.Go(func() {
				for range each {
					j.Logger().Info("line")
				}
			})
		}
		wg.Go(func() { j.Close(patience) })
		wg.Wait()
		ended(t, j)
		hangUp(t, w)
		all, err := io.ReadAll(os.NewFile(uintptr(r), "r"))
		must(t, err)
		if written := strings.Count(string(all), "msg=line"); written+int(j.Dropped()) != producers*each {
			t.Fatalf("%d written, %d dropped, %d logged", written, j.Dropped(), producers*each)
		}
	}
}

// panicking is a format whose Handle panics.
type panicking struct{ slog.Handler }

func (panicking) Handle(context.Context, slog.Record) error { panic("format") }

func TestPanicCostsOneRecord(t *testing.T) {
	r, w := pipe(t, 0)
	j := Open(Options{Format: "text", FD: w})
	j.put(&item{format: panicking{}})
	j.Logger().Info("next")
	j.Close(patience)
	if line := next(t, lines(r)); !strings.HasSuffix(line, "msg=next") || j.Dropped() != 1 {
		t.Errorf("%q, %d dropped", line, j.Dropped())
	}
}
