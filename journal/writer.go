package journal

import (
	"context"
	"log/slog"
	"runtime"
)

// keepBuffer bounds the buffer that is kept from one line to the next: more than
// any usual line, far less than what one huge record can make of it.
const keepBuffer = 64 << 10

// reportEvery is how many lines may be written under a load that never lets the
// queue run empty, before lost ones are told of all the same.
const reportEvery = 4 * capacity

// writer is what the writing goroutine owns. As an io.Writer it takes the line
// that a handler formatted.
type writer struct {
	sink     sink
	line     []byte
	works    bool   // the last line went out
	reported uint64 // dropped records that have been told of
	since    int    // lines written since the queue was last seen empty
	begun    *item  // a line that flushHere could not write in full; its rest is in line
}

// Write takes the one line that a slog handler writes per record.
func (w *writer) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	return len(p), nil
}

// run is the writing goroutine. It blocks on the queue alone, so that an idle
// journal never wakes.
func (j *Journal) run() {
	defer close(j.done)
	// Never unlocked: the thread has a signal mask of its own from here on, and
	// ends with the goroutine.
	runtime.LockOSThread()
	blockWriteSignals()
	for {
		select {
		case <-j.stop:
			j.drain()
			return
		case <-j.wake:
			j.work()
		}
	}
}

// work settles what is queued, and first the line that flushHere began.
func (j *Journal) work() {
	j.turn <- struct{}{}
	defer func() { <-j.turn }()
	if it := j.out.begun; it != nil {
		j.out.begun = nil
		j.out.works = j.out.sink.write(j.out.line)
		j.settled(it, j.out.works)
	}
	for {
		select {
		case <-j.stop:
			return
		default:
		}
		select {
		case it := <-j.queue:
			j.settle(it)
		default:
			return
		}
	}
}

// settle writes an item or loses it. A value whose method panics costs its own
// record and nothing else.
func (j *Journal) settle(it *item) {
	if it.flushed != nil {
		j.report()
		j.settleMarker(it)
		return
	}
	j.settled(it, j.write(it.format, it.record))
}

// settled counts a written or lost item.
func (j *Journal) settled(it *item, written bool) {
	if !written {
		j.lose(it)
		return
	}
	j.release(it)
	j.report()
}

// write formats a record and writes it; false when it is lost.
func (j *Journal) write(format slog.Handler, r slog.Record) bool {
	w := j.out
	w.works = w.format(format, r) && w.sink.write(w.line)
	return w.works
}

// format puts the record's line into w.line.
func (w *writer) format(format slog.Handler, r slog.Record) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if w.line = w.line[:0]; cap(w.line) > keepBuffer {
		w.line = nil
	}
	return format.Handle(context.Background(), r) == nil
}

// report tells of dropped records, once the sink works again and the queue has
// run empty: then the loss is over and one record can tell all of it. Where it
// never runs empty, each reportEvery lines.
func (j *Journal) report() {
	w := j.out
	w.since++
	if len(j.queue) > 0 && w.since < reportEvery {
		return
	}
	w.since = 0
	dropped := j.dropped.Load()
	if !w.works || dropped == w.reported || slog.LevelWarn < j.level {
		return
	}
	// A report that is lost is no dropped record; the next one has its count.
	if j.write(j.format, lostRecord(dropped-w.reported)) {
		w.reported = dropped
	}
}
