package spread

import (
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fake is the world: signals, and runs that take as long as the test says.
type fake struct {
	t     *testing.T
	from  time.Time
	sig   chan syscall.Signal
	woken chan struct{}
	took  func(item int) time.Duration // of a run; nil: no time
	ends  func(item int) Change        // how it ends; nil: well
	told  time.Duration                // how long a run takes to end once it has been told; 0: it does not hear

	mu      sync.Mutex
	changes []Change
	calls   []call
	running map[int]chan struct{} // closed when it is told
	most    int
	tells   []syscall.Signal
}

// call is a run, and when it was asked for.
type call struct {
	at   time.Duration
	argv string
}

func newFake(t *testing.T) *fake {
	return &fake{t: t, from: time.Now(), sig: make(chan syscall.Signal, 16), woken: make(chan struct{}, 1), running: map[int]chan struct{}{}}
}

func (f *fake) next(until time.Time) (syscall.Signal, bool) {
	var timer <-chan time.Time
	if !until.IsZero() {
		timer = time.After(time.Until(until))
	}
	select {
	case s := <-f.sig:
		return s, true
	case <-f.woken:
		return syscall.SIGCHLD, true
	case <-timer:
		return 0, false
	}
}

// wake: one call of Next stands for any number of these.
func (f *fake) wake() {
	select {
	case f.woken <- struct{}{}:
	default:
	}
}

func (f *fake) add(c Change) {
	f.mu.Lock()
	f.changes = append(f.changes, c)
	f.mu.Unlock()
	f.wake()
}

func (f *fake) Start(argv []string, item int) {
	f.calls = append(f.calls, call{time.Since(f.from), strings.Join(argv, " ")})
	told := make(chan struct{})
	f.mu.Lock()
	f.running[item] = told
	f.most = max(f.most, len(f.running))
	f.mu.Unlock()
	go func() {
		end := Change{Item: item}
		if f.ends != nil {
			end = f.ends(item)
			end.Item = item
		}
		if end.Status == 0 {
			f.add(Change{Item: item, Started: true})
			f.run(item, told)
		}
		f.mu.Lock()
		delete(f.running, item)
		f.mu.Unlock()
		f.add(end)
	}()
}

func (f *fake) run(item int, told chan struct{}) {
	if f.took == nil {
		return
	}
	select {
	case <-time.After(f.took(item)):
	case <-told:
		time.Sleep(f.told)
	}
}

func (f *fake) Changes() []Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.changes
	f.changes = nil
	return all
}

func (f *fake) Tell(sig syscall.Signal) {
	f.tells = append(f.tells, sig)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, told := range f.running {
		if f.told > 0 {
			close(told)
		}
	}
}

func (f *fake) options(input string, over time.Duration) Options {
	return Options{
		Command: []string{"kick"}, Over: over, In: strings.NewReader(input),
		Next: f.next, Wake: f.wake, Runs: f,
	}
}

// want holds the outcome of a Run against what is expected, and how long it took.
func (f *fake) want(o Options, status int, text string, took time.Duration) {
	f.t.Helper()
	from := time.Now()
	got, err := Run(o)
	message := ""
	if err != nil {
		message = err.Error()
	}
	if got != status || message != text {
		f.t.Errorf("%d, %q; want %d, %q", got, message, status, text)
	}
	if is := time.Since(from); is != took {
		f.t.Errorf("took %v, want %v", is, took)
	}
}

// starts are the times of the calls.
func (f *fake) starts() []time.Duration {
	var all []time.Duration
	for _, c := range f.calls {
		all = append(all, c.at)
	}
	return all
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(f *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newFake(t)) })
}

// lines is an input of n items.
func lines(n int) string { return strings.Repeat("x\n", n) }

// slow is an input that comes a while after the start.
type slow struct {
	after time.Duration
	r     io.Reader
}

func (s *slow) Read(b []byte) (int, error) {
	time.Sleep(s.after)
	s.after = 0
	return s.r.Read(b)
}

var errTest = errors.New("exit status 3")

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
