package control

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// honest asks for the status and says how long that took.
func honest(t testing.TB, h *house) time.Duration {
	t.Helper()
	begun := time.Now()
	if _, err := Ask(t.Context(), h.Addr(), Request{Verb: Status}, nil); err != nil {
		t.Error(err)
	}
	return time.Since(begun)
}

// loop answers all but drains, whose ids it returns; their Left it counts.
type loop struct {
	drains chan uint64
	left   chan uint64
}

func (h *house) loop() loop {
	l := loop{make(chan uint64, 1000), make(chan uint64, 1000)}
	go func() {
		for c := range h.Calls() {
			switch {
			case c.Left:
				l.left <- c.ID
			case c.Request.Verb == Drain:
				l.drains <- c.ID
			default:
				h.Answer(c.ID, Answer{Status: &State{}})
			}
		}
	}()
	return l
}

// TestSilentFlood: clients that say nothing keep nobody out, and throw out nobody
// who waits.
func TestSilentFlood(t *testing.T) {
	h := open(t)
	l := h.loop()
	drain := h.dial(t).ask(Drain)
	id := <-l.drains
	for range 500 {
		h.dial(t)
	}
	if took := honest(t, h); took > 4*time.Second { // 500 in 64 places, 100 ms each
		t.Errorf("an honest client waited %v", took)
	}
	if n := h.inside(); n > maxCallers {
		t.Errorf("%d inside", n)
	}
	h.Answer(id, Answer{Text: "done"})
	if r := drain.hear(); !r.Taken {
		t.Errorf("%+v", r)
	}
	if r := drain.hear(); r.Answer == nil {
		t.Errorf("%+v", r)
	}
	if len(l.left) > 0 {
		t.Errorf("%d have left", len(l.left))
	}
}

// TestUnreadFlood: nor do those that ask and do not read.
func TestUnreadFlood(t *testing.T) {
	h := open(t)
	big := Answer{Status: &State{Service: strings.Repeat("x", maxReply/4)}} // more than a buffer holds
	go func() {
		for c := range h.Calls() {
			h.Answer(c.ID, big)
		}
	}()
	for range maxCallers * 2 {
		h.dial(t).ask(Status)
	}
	if took := honest(t, h); took > 4*time.Second {
		t.Errorf("an honest client waited %v", took)
	}
}

// TestThousandClients: all are answered, and no more than there is room for are in
// at a time.
func TestThousandClients(t *testing.T) {
	h := open(t)
	h.loop()
	n := 1000
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err == nil && r.Cur < 2000 {
		n = int(r.Cur) / 2
	}
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() { honest(t, h) })
	}
	clients.Wait()
	eventually(t, "all gone", func() bool { return h.inside() == 0 })
}

// TestDrainFlood: those that wait for the drain are many at most, and leave room.
func TestDrainFlood(t *testing.T) {
	h := open(t)
	l := h.loop()
	var waiting []*wire
	for range maxCallers / 2 {
		w := h.dial(t).ask(Drain)
		if r := w.hear(); !r.Taken {
			t.Fatalf("%+v", r)
		}
		waiting = append(waiting, w)
	}
	for range 100 {
		if r := h.dial(t).ask(Drain).hear(); r.Refused != "too many clients wait for the drain already" {
			t.Fatalf("%+v", r)
		}
	}
	honest(t, h)
	_ = waiting[0].Close() // makes room for another one
	<-l.left
	eventually(t, "room", func() bool {
		w := h.dial(t).ask(Drain)
		return w.hear().Taken
	})
	for len(l.drains) > 0 {
		h.Answer(<-l.drains, Answer{Text: "done"})
	}
	for _, w := range waiting[1:] {
		if r := w.hear(); r.Answer == nil {
			t.Errorf("%+v", r)
		}
	}
}

// TestStalledLoop: while the loop is busy, clients wait, and those that have had
// enough are forgotten, but never by halves.
func TestStalledLoop(t *testing.T) {
	h := open(t)
	var clients sync.WaitGroup
	for range 200 {
		clients.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := Ask(ctx, h.Addr(), Request{Verb: Drain}, nil); err == nil {
				t.Error("answered")
			}
		})
	}
	clients.Wait()
	h.dial(t).send("x\n").hear() // those before it are not in the queue any more
	// Those that the loop will not hear of any more cost nothing.
	eventually(t, "room", func() bool { return h.inside() <= cap(h.calls) })
	owed := map[uint64]bool{}
	eventually(t, "all gone", func() bool {
		for len(h.Calls()) > 0 {
			if c := <-h.Calls(); c.Left == owed[c.ID] {
				owed[c.ID] = !c.Left
			} else {
				t.Errorf("%+v", c)
			}
		}
		return h.inside() == 0
	})
	for id, is := range owed {
		if is {
			t.Errorf("%d has not left", id)
		}
	}
	h.loop()
	honest(t, h)
}

// TestNoDescriptors: a full table is waited out without work, and is made room in
// at the cost of those that say nothing.
func TestNoDescriptors(t *testing.T) {
	h := open(t)
	l := h.loop()
	drain := h.dial(t).ask(Drain)
	id := <-l.drains
	ask, answer := later(t, h)
	restore := exhaust(t)
	defer restore()
	ask()
	eventually(t, "told", func() bool { return strings.Contains(h.log.String(), "control socket delayed") })
	before := used(t)
	time.Sleep(500 * time.Millisecond)
	if spent := used(t) - before; spent > 200*time.Millisecond {
		t.Errorf("%v of processor time spent in 500ms", spent)
	}
	restore()
	if got := answer(); got != "answer 0  <nil>\n" {
		t.Errorf("%q", got)
	}
	if n := strings.Count(h.log.String(), "\n"); n != 1 {
		t.Errorf("log %s", h.log)
	}
	silent := h.dial(t)
	eventually(t, "in", func() bool { return h.inside() == 2 })
	ask, answer = later(t, h)
	restore = exhaust(t)
	defer restore()
	ask()
	if got := answer(); got != "answer 0  <nil>\n" {
		t.Errorf("%q", got)
	}
	silent.over()
	h.Answer(id, Answer{})
	if r := drain.hear(); !r.Taken {
		t.Errorf("%+v", r)
	}
}

// later starts a client that waits for the word, since without descriptors nothing
// can be started.
func later(t testing.TB, h *house) (ask func(), answer func() string) {
	t.Helper()
	cmd := relative(nil, "later", h.Addr(), Status)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() { _, _ = io.WriteString(in, "\n") }, func() string { _ = cmd.Wait(); return out.String() }
}

// exhaust leaves the process without a descriptor until the returned function is
// called.
func exhaust(t testing.TB) (restore func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	probe, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	low := syscall.Rlimit{Cur: uint64(probe.Fd()) + 20, Max: was.Max}
	_ = probe.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var all []*os.File
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		all = append(all, f)
	}
	return sync.OnceFunc(func() {
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
		for _, f := range all {
			_ = f.Close()
		}
	})
}

// TestCrowd: the longest idle one goes, but not before its time; who waits for the
// loop stays; an answer is claimed once.
func TestCrowd(t *testing.T) {
	h := bound(t)
	next := func() *caller { _, c := accepted(t, h); return c }
	cr, quit := newCrowd(2), make(chan struct{})
	first, second, third := next(), next(), next()
	begun := time.Now()
	for _, c := range []*caller{first, second, third} {
		if !cr.enter(c, quit) {
			t.Fatal("not let in")
		}
	}
	if took := time.Since(begun); took < haste {
		t.Errorf("the first one had to go after %v", took)
	}
	if id, _ := cr.ask(first, true); id != 0 {
		t.Error("the first one has not gone")
	}
	second2, _ := cr.ask(second, true)
	third2, full := cr.ask(third, true)
	if second2 == 0 || third2 != 0 || !full {
		t.Errorf("ids %d, %d, full %v", second2, third2, full)
	}
	third2, _ = cr.ask(third, false)
	fourth, late := next(), make(chan bool)
	go func() { late <- cr.enter(fourth, quit) }()
	select {
	case <-late:
		t.Error("let in at the cost of those who wait")
	case <-time.After(2 * haste):
	}
	if cr.claim(third2) != third || cr.claim(third2) != nil || cr.claim(77) != nil {
		t.Error("claimed twice")
	}
	cr.answered(third)
	if !<-late {
		t.Error("not let in in place of one that was answered")
	}
	cr.leave(third) // has gone already
	cr.answered(third)
	if len(cr.inside) != 2 || len(cr.byID) != 1 || cr.find(second2) != second {
		t.Errorf("%d inside, %d owed", len(cr.inside), len(cr.byID))
	}
	close(quit)
	if cr.enter(first, quit) {
		t.Error("let in at the end")
	}
}

// TestStrangers: those who may not talk can only stand in the queue.
func TestStrangers(t *testing.T) {
	needRoot(t)
	h := open(t)
	h.loop()
	cmd := relative(user(stranger), "flood", h.Addr())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	eventually(t, "flood", func() bool { return strings.Contains(h.log.String(), "user 1234") })
	for range 5 {
		if took := honest(t, h); took > 3*time.Second {
			t.Errorf("an honest client waited %v", took)
		}
	}
	if n := strings.Count(h.log.String(), "\n"); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}

// TestLastDescriptor: that there is none left is no matter while nobody waits.
func TestLastDescriptor(t *testing.T) {
	h := open(t)
	h.loop()
	ask, answer := later(t, h)
	spare, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	restore := exhaust(t)
	defer restore()
	_ = spare.Close()
	ask()
	if got := answer(); got != "answer 0  <nil>\n" {
		t.Errorf("%q", got)
	}
	if log := h.log.String(); log != "" {
		t.Errorf("log %s", log)
	}
}

// TestIdle: clients that wait cost nothing while they do, those that have closed
// their own direction neither; and none can make work by talking on.
func TestIdle(t *testing.T) {
	h := open(t)
	var all []*wire
	for i := range 20 {
		w, _ := h.waits(t)
		if i%2 == 0 {
			_ = w.CloseWrite()
		}
		all = append(all, w)
	}
	if _, err := io.WriteString(all[1], "more\n"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("more than one request: %v", err)
	}
	before := used(t)
	time.Sleep(500 * time.Millisecond)
	if spent := used(t) - before; spent > 30*time.Millisecond {
		t.Errorf("%v of processor time spent in 500ms", spent)
	}
	h.quiet(t)
}
