package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"drainit/child"
	"drainit/control"
	"drainit/hooks"
	"drainit/probe"
)

const (
	sec   = time.Second
	ms    = time.Millisecond
	never = time.Duration(-1)
)

// fake is everything outside the loop, in virtual time.
type fake struct {
	mu       sync.Mutex
	over     bool   // the run has ended
	name     string // of the run, for what must never happen
	signals  chan os.Signal
	children chan os.Signal
	answers  chan child.Started

	workload  behaviour
	phases    []behaviour
	steps     []behaviour // their starts
	undo      []behaviour // and stops; quick ones where there is none
	beside    []behaviour // companions
	calls     chan control.Call
	toldState *control.State // that a client was told
	reports   [][]byte
	looks     int           // for whose processes are, to signal them
	slowly    time.Duration // that signalling hooks takes
	flushed   time.Duration // the time that the log had at the end
	chldLate  time.Duration // how long CHLD takes to arrive
	noProc    bool          // /proc can't be read
	denied    syscall.Errno // what signalling the workload says

	all      []*fakeProc
	known    map[*child.Proc]*fakeProc
	pending  int
	reaps    int
	killAll  int
	specs    map[int]child.Spec // by tag
	began    time.Time
	records  []record
	statuses []probe.Status
	last     *probe.Snapshot
	snaps    []*probe.Snapshot
	events   []string // what was asked of the world, in order
}

// record is one line of the log.
type record struct {
	at    time.Duration
	level slog.Level
	msg   string
	attrs map[string]string
}

// newFake is called inside the bubble, since its channels belong to it.
func newFake(workload behaviour, phases ...behaviour) *fake {
	return &fake{
		signals: make(chan os.Signal, 64), children: make(chan os.Signal, 1),
		answers: make(chan child.Started, 64), workload: workload, phases: phases,
		calls: make(chan control.Call, 64),
		known: map[*child.Proc]*fakeProc{}, specs: map[int]child.Spec{}, began: time.Now(),
	}
}

func (f *fake) world() World {
	return World{
		Next: f.next, Procs: f, Probe: f, Control: f, Recheck: f.recheck, Report: f.report,
		Asked: func() {}, Ready: func() { f.note("ready") }, Log: slog.New(f), HookLine: func([]slog.Attr, string) {},
		Flush: f.flush, Env: []string{"PATH=/bin"}, Dir: "/srv", Version: "v0",
	}
}

// next is how the loop waits.
func (f *fake) next(until time.Time) (syscall.Signal, bool) {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timeout = time.After(time.Until(until))
	}
	select { // a signal that is there comes before the time that has come
	case s := <-f.signals:
		return s.(syscall.Signal), true
	case <-f.children:
		return syscall.SIGCHLD, true
	default:
	}
	select {
	case s := <-f.signals:
		return s.(syscall.Signal), true
	case <-f.children:
		return syscall.SIGCHLD, true
	case <-timeout:
		return 0, false
	}
}

// wake makes next return CHLD.
func (f *fake) wake() {
	select {
	case f.children <- syscall.SIGCHLD:
	default:
	}
}

func (f *fake) since() time.Duration { return time.Since(f.began) }

func (f *fake) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, fmt.Sprintf("%v ", f.since())+fmt.Sprintf(format, args...))
}

// kill sends a signal to the init after a while.
func (f *fake) kill(after time.Duration, sig syscall.Signal) {
	time.AfterFunc(after, func() { f.signals <- sig })
}

// flush takes as long as it may.
func (f *fake) flush(limit time.Duration) {
	f.flushed = limit
	time.Sleep(limit)
}

// Drain does, too.
func (f *fake) Drain(limit time.Duration) { time.Sleep(limit) }

func (f *fake) recheck(h hooks.Hook) error {
	var i int
	if _, err := fmt.Sscanf(h.Name, "phase-%d", &i); err != nil {
		return nil
	}
	return f.phases[i-1].changed
}

func (f *fake) report(line []byte, _ time.Duration) error {
	f.reports = append(f.reports, line)
	return nil
}

// Addr is the control socket's.
func (f *fake) Addr() string { return "@fake" }

// Calls is the control socket's.
func (f *fake) Calls() <-chan control.Call { return f.calls }

// Say is the control socket's.
func (f *fake) Say(id uint64, text string) { f.note("say to %d: %s", id, text) }

// Answer is the control socket's.
func (f *fake) Answer(id uint64, a control.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Status != nil {
		f.toldState = a.Status
		return
	}
	f.events = append(f.events, fmt.Sprintf("%v answer %d to %d", f.since(), a.Code, id))
}

// ask has a client call after a while.
func (f *fake) ask(after time.Duration, c control.Call) {
	time.AfterFunc(after, func() { f.calls <- c; f.wake() })
}

// SetStatus is the probe's.
func (f *fake) SetStatus(s probe.Status) {
	f.note("readiness %d", s)
	f.statuses = append(f.statuses, s)
}

// Publish is the probe's.
func (f *fake) Publish(s *probe.Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.snaps = s, append(f.snaps, s)
}

// Enabled makes fake a slog.Handler.
func (f *fake) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps the record.
func (f *fake) Handle(_ context.Context, r slog.Record) error {
	rec := record{at: f.since(), level: r.Level, msg: r.Message, attrs: map[string]string{}}
	r.Attrs(func(a slog.Attr) bool { rec.attrs[a.Key] = a.Value.String(); return true })
	f.records = append(f.records, rec)
	f.note("log %s", r.Message)
	return nil
}

// WithAttrs is not used.
func (f *fake) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup is not used.
func (f *fake) WithGroup(string) slog.Handler { return f }

// messages returns the log's events in order.
func (f *fake) messages() []string {
	var all []string
	for _, r := range f.records {
		if r.level > slog.LevelDebug {
			all = append(all, r.msg)
		}
	}
	return all
}

// find returns the records of one event.
func (f *fake) find(msg string) []record {
	var all []record
	for _, r := range f.records {
		if r.msg == msg {
			all = append(all, r)
		}
	}
	return all
}

// main returns the workload; nil: it never ran.
func (f *fake) main() *fakeProc {
	for _, p := range f.all {
		if p.hook < 0 && p.proc != nil {
			return p
		}
	}
	return nil
}

// has tells whether one of the events that were asked of the world ends so.
func (f *fake) has(text string) bool {
	for _, e := range f.events {
		if strings.HasSuffix(e, text) {
			return true
		}
	}
	return false
}

var errRefused = errors.New("permission denied")
