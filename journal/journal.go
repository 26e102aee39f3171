// Package journal is where the log goes: slog's handlers with a bounded queue
// and one writing goroutine behind them.
//
// Nothing ever waits for a line to be written. The log of a container is a pipe
// of 64 KiB to a runtime that may be slow, stuck or gone, and an init that waits
// for it forwards no signal and reaps nothing. So a record that finds the queue
// full is dropped and counted, and only [Journal.Flush] and [Journal.Close] wait,
// as long as they are told to and no longer.
package journal

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	capacity     = 1024         // records in the queue
	hookCapacity = capacity / 2 // of them lines that hooks wrote
	hookBytes    = 1 << 20      // and what those lines may hold in all
	flushes      = 16           // of the queue's places, for Flush's markers
)

// Options say how and where to log.
type Options struct {
	// Format is "text" (slog.TextHandler), "json" (slog.JSONHandler) or "auto"
	// (tint's coloured text where FD is a terminal, else text). Anything else
	// counts as auto. Times are in UTC, RFC 3339 with milliseconds, in all three.
	Format string
	// Level is the lowest level that is logged; the zero value is INFO.
	Level slog.Level
	// FD is the descriptor written to; 0 stands for standard error. The journal
	// neither closes it nor touches its flags, which other processes share.
	FD int
}

// Journal is an open log. All methods may be called at any time, from any
// goroutine, and none but Flush and Close ever waits.
type Journal struct {
	level  slog.Level
	format slog.Handler // formats into out; Handle is the writer's alone to call
	out    *writer

	queue    chan *item
	tickets  chan struct{} // one held for each Flush marker in the queue
	lines    atomic.Int64  // hook lines queued
	bytes    atomic.Int64  // and their length
	dropped  atomic.Uint64
	start    sync.Once // starts the writer, or rules out that it is ever started
	started  atomic.Bool
	stopOnce sync.Once
	stop     chan struct{} // closed by Close
	done     chan struct{} // closed when the writer has ended, or will never begin
	turn     chan struct{} // held by the one that takes items out and writes them
	wake     chan struct{} // has a value when the writer is to look
}

// item is one place in the queue: a record, or a Flush's marker.
type item struct {
	format  slog.Handler
	record  slog.Record
	hook    bool // counts against the hooks' share
	bytes   int64
	flushed chan struct{} // a marker's: closed when all before it is settled
}

// Open prepares a log. It allocates and, for auto, asks once whether FD is a
// terminal; the goroutine starts with the first record, since this is on the way
// to the workload's start.
func Open(o Options) *Journal {
	if o.FD == 0 {
		o.FD = 2
	}
	stop := make(chan struct{})
	out := &writer{sink: sink{fd: o.FD, stop: stop}}
	return &Journal{
		level:   o.Level,
		format:  newFormat(o, out),
		out:     out,
		queue:   make(chan *item, capacity),
		tickets: make(chan struct{}, flushes),
		stop:    stop,
		done:    make(chan struct{}),
		turn:    make(chan struct{}, 1),
		wake:    make(chan struct{}, 1),
	}
}

// Logger returns a logger that queues. Attributes that are LogValuers are
// resolved in the call, everything else is formatted later by the writer: a
// slice, map or pointer must not be changed after it was logged.
func (j *Journal) Logger() *slog.Logger { return slog.New(&handler{j, j.format}) }

// HookLine logs one line that a hook wrote, as the record "hook output" at INFO
// with attrs and the line. All hooks together may hold half of the queue and
// 1 MiB of it, so that a chatty one costs its own lines and not the init's.
func (j *Journal) HookLine(attrs []slog.Attr, line string) {
	if slog.LevelInfo < j.level {
		return
	}
	r := slog.NewRecord(time.Now().UTC(), slog.LevelInfo, "hook output", 0)
	r.AddAttrs(resolveAll(attrs)...)
	r.AddAttrs(slog.String("line", line))
	j.put(&item{format: j.format, record: r, hook: true, bytes: int64(len(line))})
}

// Dropped is how many records have been lost so far: the queue was full, the
// sink refused the line, or it was still waiting when the journal was closed.
func (j *Journal) Dropped() uint64 { return j.dropped.Load() }

// Flush waits until everything that was logged before the call is written or
// lost, at most limit. Afterwards the journal goes on as before. With a limit of 0
// or less nothing is waited for: what can be written at once still is.
func (j *Journal) Flush(limit time.Duration) {
	if !j.started.Load() || j.flushHere() || limit <= 0 {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	// The ticket bounds how many places markers take: flushing a stuck sink again
	// and again must not push the records out.
	select {
	case j.tickets <- struct{}{}:
	case <-j.done:
		return
	case <-timer.C:
		return
	}
	marker := &item{flushed: make(chan struct{})}
	select {
	case j.queue <- marker: // whoever takes it out gives the ticket back
		j.stir()
	case <-j.done:
		<-j.tickets
		return
	case <-timer.C:
		<-j.tickets
		return
	}
	select {
	case <-marker.flushed:
	case <-j.done:
	case <-timer.C:
	}
}

// Close flushes, stops the writer and waits for its end, all within limit. What
// is logged afterwards is dropped and counted. A writer that the kernel holds in
// a write (see sink) is left behind, to end when it comes back.
func (j *Journal) Close(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	j.Flush(limit)
	j.stopOnce.Do(func() { close(j.stop) })
	j.start.Do(func() { close(j.done) })
	select {
	case <-j.done:
	case <-timer.C:
	}
	j.drain()
}

// put queues an item or counts it as dropped.
func (j *Journal) put(it *item) {
	if it.hook {
		lines, bytes := j.lines.Add(1), j.bytes.Add(it.bytes) // given back by release
		if lines > hookCapacity || bytes > hookBytes {
			j.lose(it)
			return
		}
	}
	j.start.Do(func() {
		j.started.Store(true)
		go j.run()
	})
	select {
	case j.queue <- it:
	default:
		j.lose(it)
		return
	}
	j.stir()
	// A send that came before stop was closed is seen by the writer's own drain;
	// one that came after is seen here. So nothing is lost without being counted.
	select {
	case <-j.stop:
		j.drain()
	default:
	}
}

// stir has the writer look at the queue.
func (j *Journal) stir() {
	select {
	case j.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// drain empties the queue of a closed journal.
func (j *Journal) drain() {
	for {
		select {
		case it := <-j.queue:
			if it.flushed != nil {
				j.settleMarker(it)
			} else {
				j.lose(it)
			}
		default:
			return
		}
	}
}

func (j *Journal) lose(it *item) {
	j.dropped.Add(1)
	j.release(it)
}

// release gives a hook line's share back.
func (j *Journal) release(it *item) {
	if it.hook {
		j.lines.Add(-1)
		j.bytes.Add(-it.bytes)
	}
}

func (j *Journal) settleMarker(it *item) {
	close(it.flushed)
	<-j.tickets
}

// handler is slog's side of the queue.
type handler struct {
	j      *Journal
	format slog.Handler // the journal's, with this logger's attributes and groups
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.j.level }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	h.j.put(&item{format: h.format, record: resolveRecord(r)})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.j, h.format.WithAttrs(attrs)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.j, h.format.WithGroup(name)}
}
