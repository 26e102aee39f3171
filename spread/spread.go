// Package spread paces: it runs a command for each of many items, evenly over a
// time, so that what is to be closed is closed a few at a time.
package spread

import (
	"fmt"
	"io"
	"syscall"
	"time"
)

// Parallel is how many runs there may be at the same time. Further ones wait
// until one has ended.
const Parallel = 32

// StopWait is how long runs have to end when spread itself is told to stop.
const StopWait = time.Second

// Options are what to run, when, and by what means.
type Options struct {
	Command []string // never empty
	Over    time.Duration
	// Reading: Over counts from the call of Run on, so that what reading the
	// items takes is not on top of it. Otherwise it counts from their end.
	Reading bool
	// Jitter returns a random number from 0 up to 1, by which each start is put
	// off within its own slot; nil: none is.
	Jitter func() float64
	In     io.Reader // has the items; it is read by a goroutine of its own

	// Next waits for a signal until a time, the zero time being never; false:
	// the time has come first. CHLD stands for Wake and for anything that has
	// become of the runs, any other signal is one to stop at.
	Next func(until time.Time) (syscall.Signal, bool)
	Wake func() // makes Next return CHLD; any goroutine may call it
	Runs runs
}

// runs is what starts processes. None of its methods waits for anything.
type runs interface {
	Start(argv []string, item int) // asks for a process
	Changes() []Change             // what has become of those that were asked for
	Tell(sig syscall.Signal)       // signals those that run, and those that are still to be started
}

// Change is that a run has started, has ended, or could not be started.
type Change struct {
	Item    int
	Started bool
	// Err is why it counts as failed; nil: it has started, or exited with 0.
	Err error
	// Status is that of a shell, 126 or 127, where the command can't be run for
	// any item; 0 else.
	Status int
}

// Run reads all items and runs the command for each. The status is 0 when every
// run exited with 0, 1 when one did not, 126 or 127 when the command can't be run
// at all, 125 when the items can't be read, and 128+n when signal n came. Where
// it is not 0 the error says why, in one line.
func Run(o Options) (int, error) {
	l := &loop{Options: o, from: time.Now()}
	if status, err := l.read(); status != 0 {
		return status, err
	}
	l.begin()
	for !l.over() {
		sig, ok := l.Next(l.deadline())
		if ok && sig != syscall.SIGCHLD {
			l.halt(sig)
		}
		for _, c := range l.Runs.Changes() {
			l.change(c)
		}
		l.start()
	}
	return l.verdict()
}

// loop is the state of one Run.
type loop struct {
	Options
	from  time.Time // when Run was called, or the items had been read
	items []item

	next    int       // the item that comes next
	at      time.Time // when it is due
	started int       // runs that have been asked for
	running int       // of them, those that have not ended
	works   bool      // the command is one that can be run
	failed  int
	first   error // of the failed runs
	refused Change

	stop   syscall.Signal // 0: none
	stopBy time.Time
}

// read waits for the items, or for a signal.
func (l *loop) read() (status int, err error) {
	done := make(chan error, 1)
	go func() {
		items, err := read(l.In)
		l.items = items // before the channel, so it is the loop's from then on
		done <- err
		l.Wake()
	}()
	for {
		if sig, ok := l.Next(time.Time{}); ok && sig != syscall.SIGCHLD {
			return 128 + int(sig), fmt.Errorf("stopped while reading the items")
		}
		select {
		case err := <-done:
			if err != nil {
				return 125, fmt.Errorf("read the items: %w", err)
			}
			return 0, nil
		default:
		}
	}
}

// begin takes the moment from which on the starts are counted.
func (l *loop) begin() {
	now := time.Now()
	if l.Reading {
		l.Over = max(l.Over-now.Sub(l.from), 0)
	}
	l.from = now
	l.plan()
	l.start()
}

// plan sets when the next item is due.
func (l *loop) plan() {
	if l.next == len(l.items) {
		return
	}
	jitter := 0.0
	if l.Jitter != nil {
		jitter = l.Jitter()
	}
	l.at = l.from.Add(slot(l.next, len(l.items), l.Over, jitter))
}

// slot is when item i of n starts: the time is cut into n slots of one length,
// and a run starts where its slot begins, or by jitter, which is less than 1,
// within it.
func slot(i, n int, over time.Duration, jitter float64) time.Duration {
	begin := func(i int) time.Duration { // over * i / n, which could overflow
		whole, rest := over/time.Duration(n), over%time.Duration(n)
		return whole*time.Duration(i) + rest*time.Duration(i)/time.Duration(n)
	}
	from, to := begin(i), begin(i+1)
	return from + time.Duration(jitter*float64(to-from))
}

// start asks for every run that is due.
func (l *loop) start() {
	for l.mayStart() && !time.Now().Before(l.at) {
		it, i := l.items[l.next], l.next
		l.next++
		l.plan()
		if it.bad != nil {
			l.fail(i, it.bad)
			continue
		}
		l.started++
		l.running++
		l.Runs.Start(argv(l.Command, it.text), i)
	}
}

// mayStart: the first run has to show that the command can be run, before
// another one is asked for.
func (l *loop) mayStart() bool {
	return !l.ending() && l.next < len(l.items) && l.running < Parallel && (l.works || l.running == 0)
}

// ending: nothing is started any more.
func (l *loop) ending() bool { return l.stop != 0 || l.refused.Status != 0 }

// deadline is when the loop has to act without being called; zero: never.
func (l *loop) deadline() time.Time {
	switch {
	case l.stop != 0:
		return l.stopBy
	case l.mayStart():
		return l.at
	}
	return time.Time{}
}

// change takes in what has become of a run.
func (l *loop) change(c Change) {
	if c.Started {
		l.works = true
		return
	}
	l.running--
	switch {
	case c.Status != 0 && !l.works:
		l.refused = c
	case c.Err != nil:
		l.fail(c.Item, c.Err)
	}
}

func (l *loop) fail(i int, err error) {
	if l.failed++; l.failed == 1 {
		l.first = fmt.Errorf("the first with %s: %w", show(l.items[i].text), err)
	}
}

// halt takes in a signal to stop. A second one finds it done.
func (l *loop) halt(sig syscall.Signal) {
	if l.stop != 0 {
		return
	}
	l.stop, l.stopBy = sig, time.Now().Add(StopWait)
	l.Runs.Tell(syscall.SIGTERM)
}

func (l *loop) over() bool {
	switch {
	case l.running == 0:
		return l.ending() || l.next == len(l.items)
	case l.stop != 0:
		return !time.Now().Before(l.stopBy)
	}
	return false
}

func (l *loop) verdict() (int, error) {
	switch {
	case l.refused.Status != 0:
		return l.refused.Status, l.refused.Err
	case l.stop != 0:
		return 128 + int(l.stop), fmt.Errorf("stopped: %d of %d runs were started", l.started, len(l.items))
	case l.failed > 0:
		return 1, fmt.Errorf("%d of %d runs failed, %w", l.failed, len(l.items), l.first)
	}
	return 0, nil
}

// shown is how much of an item a message shows, in bytes.
const shown = 100

func show(text string) string {
	if len(text) > shown {
		return fmt.Sprintf("%q...", text[:shown])
	}
	return fmt.Sprintf("%q", text)
}
