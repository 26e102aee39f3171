package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func d(v time.Duration) *time.Duration { return &v }

// TestCalls: what is asked is what the loop gets, and what it answers is what the
// client gets.
func TestCalls(t *testing.T) {
	h := open(t)
	status := 3
	full := &State{
		State: "phases", Readiness: "draining", Service: "<web> & é", Version: "1", Reason: "TERM",
		UptimeSeconds: 1.5, StageSeconds: 0.25, LeftSeconds: new(float64), DeadlineSeconds: new(float64),
		WorkloadPID: 7, WorkloadStatus: &status,
		Phases: []HookState{{"a", "ok", 1}, {"b", "running", 0}}, Steps: []HookState{{"s", "started", 2}},
		Companions: []CompanionState{{"c", "running", 9, 2}, {"d", "waiting", 0, 0}},
	}
	for i, c := range []struct {
		request Request
		answer  Answer
	}{
		{Request{Verb: Status}, Answer{Status: full}},
		{Request{Verb: Status}, Answer{Status: &State{State: "running"}}},
		{Request{Verb: Announce}, Answer{Text: "announced"}},
		{Request{Verb: Undrain}, Answer{Code: 1, Text: "a phase has begun"}},
		{Request{Verb: Drain}, Answer{Code: 2}},
		{Request{Verb: Drain, Budget: d(0), AnnounceDelay: d(time.Hour)}, Answer{}},
	} {
		woken := h.woken.Load()
		go func() {
			call := <-h.Calls()
			if call.ID != uint64(i+1) || call.Left || !reflect.DeepEqual(call.Request, c.request) {
				t.Errorf("call %+v, asked %+v", call, c.request)
			}
			h.Say(call.ID, "one\ntwo")
			h.Say(call.ID, "")
			h.Answer(call.ID, c.answer)
			h.Answer(call.ID, Answer{Code: 1, Text: "twice"})
			h.Say(call.ID, "late")
		}()
		var said []string
		a, err := Ask(t.Context(), h.Addr(), c.request, func(text string) { said = append(said, text) })
		if err != nil || !reflect.DeepEqual(a, c.answer) {
			t.Errorf("%+v: %+v, %v", c.request, a, err)
		}
		if len(said) != 1 || said[0] != "one\ntwo" {
			t.Errorf("progress %q", said)
		}
		eventually(t, "woken", func() bool { return h.woken.Load() == woken+1 })
	}
	h.quiet(t) // nobody who was answered has left
	h.Say(99, "x")
	h.Answer(99, Answer{})
	if log := h.log.String(); log != "" {
		t.Errorf("log %s", log)
	}
}

// TestHalfClosed: a client that closes its own direction waits like any other, and
// its hang-up is noticed.
func TestHalfClosed(t *testing.T) {
	h := open(t)
	for _, request := range []string{"{\"drainit\":1,\"verb\":\"drain\"}\n", `{"drainit":1,"verb":"drain"}`} {
		w := h.dial(t).send(request)
		if err := w.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		id := h.next(t).ID
		if !w.hear().Taken {
			t.Error("not taken")
		}
		h.quiet(t)
		h.Say(id, "so far")
		if r := w.hear(); r.Progress != "so far" {
			t.Errorf("%+v", r)
		}
		h.Answer(id, Answer{Text: "done"})
		if r := w.hear(); r.Answer == nil || r.Answer.Text != "done" {
			t.Errorf("%+v", r)
		}
		if rest := w.over(); rest != "" {
			t.Errorf("rest %q", rest)
		}
	}
	w := h.dial(t).ask(Drain)
	_ = w.CloseWrite()
	id := h.next(t).ID
	_ = w.Close()
	if c := h.next(t); c.ID != id || !c.Left {
		t.Errorf("%+v", c)
	}
}

// TestHangUp: however a client ends, it has left.
func TestHangUp(t *testing.T) {
	h := open(t)
	for name, end := range map[string]func(*wire){
		"close":             func(w *wire) { _ = w.Close() },
		"close, all read":   func(w *wire) { w.hear(); _ = w.Close() },
		"shutdown of both":  func(w *wire) { w.hear(); _ = w.CloseRead(); _ = w.CloseWrite() },
		"the other way":     func(w *wire) { _ = w.CloseWrite(); _ = w.CloseRead() },
		"after a half":      func(w *wire) { _ = w.CloseWrite(); h.quiet(t); _ = w.Close() },
		"before it is read": func(w *wire) { _ = w.Close() },
	} {
		w := h.dial(t).ask(Drain)
		if name == "before it is read" {
			end(w)
		}
		id := h.next(t).ID
		end(w)
		if c := h.next(t); c.ID != id || !c.Left || c.Request.Verb != "" {
			t.Errorf("%s: %+v", name, c)
		}
		eventually(t, name+": woken twice", func() bool { return h.woken.Load() == 2*int32(id) })
		h.Answer(id, Answer{}) // crosses it
		eventually(t, name+": gone", func() bool { return h.inside() == 0 })
	}
	h.quiet(t)
}

// TestLeftAfterAnswer: who was answered has not left, whichever is noticed first.
func TestLeftAfterAnswer(t *testing.T) {
	h := open(t)
	_, id := h.waits(t)
	c := h.crowd.find(id)
	h.Answer(id, Answer{})
	h.left(c, id)
	h.quiet(t)
}

// TestKilled: a client that is killed has left, and one that is stopped waits.
func TestKilled(t *testing.T) {
	h := open(t)
	cmd := relative(nil, "ask", h.Addr(), Drain)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id := h.next(t).ID
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	for range 1000 { // more than its buffer holds
		h.Say(id, strings.Repeat("x", 2000))
	}
	h.quiet(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if c := h.next(t); c.ID != id || !c.Left {
		t.Errorf("%+v", c)
	}
}

// TestSaid: progress that nobody reads costs nothing but progress.
func TestSaid(t *testing.T) {
	h := open(t)
	w, id := h.waits(t)
	text := strings.Repeat("é", maxText/2-1) + "xé" // cut before the last one
	for range 500 {
		h.Say(id, text)
	}
	h.Answer(id, Answer{Text: "done"})
	lines := 0
	for {
		r := w.hear()
		if r.Answer != nil {
			break
		}
		if lines++; r.Progress != text[:len(text)-2] {
			t.Fatalf("%q", r.Progress)
		}
	}
	if lines == 0 || lines == 500 {
		t.Errorf("%d lines", lines)
	}
}

// TestPush: lines are never cut in two, nothing follows the last one, and of what
// there is no room for only that is kept.
func TestPush(t *testing.T) {
	h := bound(t)
	w, c := accepted(t, h)
	defer c.close()
	full := []byte(strings.Repeat("x", 1<<20))
	c.push(full, false)
	half := len(c.rest)
	if half == 0 || half == len(full) {
		t.Fatalf("%d bytes kept of a line that has begun", half)
	}
	c.push([]byte("one\n"), false)
	if len(c.rest) != half {
		t.Errorf("%d bytes kept, not %d: a line behind one that has begun", len(c.rest), half)
	}
	c.rest = nil // the buffer is full between two lines now
	c.push([]byte("two\n"), false)
	if len(c.rest) != 0 {
		t.Errorf("%q kept, and is not the last", c.rest)
	}
	c.push([]byte("three\n"), true)
	c.push([]byte("four\n"), true)
	if string(c.rest) != "three\n" {
		t.Errorf("%q kept", c.rest)
	}
	go func() { c.flush(enough); _ = c.conn.Close() }()
	if got := w.over(); !strings.HasSuffix(got, "xthree\n") {
		t.Errorf("%q", got[max(len(got)-20, 0):])
	}
}

// TestMalformed: what can't be understood is refused in words, and never reaches
// the loop.
func TestMalformed(t *testing.T) {
	h := open(t)
	long := `{"drainit":1,"verb":"` + strings.Repeat("x", 1<<20) + "\"}\n"
	for text, want := range map[string]string{
		"\n":                                     "malformed",
		"GET / HTTP/1.1\r\n\r\n":                 "malformed request",
		"null\n":                                 "malformed",
		"[]\n":                                   "malformed",
		"{}\n":                                   "malformed",
		`{"drainit":1}` + "\n":                   `unknown verb ""`,
		`{"drainit":"1","verb":"status"}` + "\n": "malformed",
		`{"drainit":1,"verb":7}` + "\n":          "malformed",
		`{"drainit":1,"verb":"reboot"}` + "\n":   `unknown verb "reboot"`,
		`{"drainit":1,"verb":"status","force":true}` + "\n":    `unknown field "force"`,
		`{"drainit":1,"verb":"status"} x` + "\n":               "malformed",
		`{"drainit":1,"verb":"status"}` + "\nmore":             "more than one line",
		`{"drainit":1,"verb":"status","budget_ns":1}` + "\n":   "status takes no duration",
		`{"drainit":1,"verb":"drain","budget_ns":-1}` + "\n":   "negative",
		`{"drainit":1,"verb":"drain","budget_ns":1.5}` + "\n":  "malformed",
		`{"drainit":1,"verb":"drain","budget_ns":1e99}` + "\n": "malformed",
		`{"drainit":2,"verb":"status","new":1}` + "\n":         "version 2 of the control protocol, this init version 1",
		`{"drainit":1,"verb":"sta`:                             "malformed",
		long:                                                   "longer than 4096 bytes",
		strings.Repeat("\x00", maxRequest):                     "longer than 4096 bytes",
		strings.Repeat("[", maxRequest-1) + "\n":               "malformed",
	} {
		w := h.dial(t)
		_, _ = io.WriteString(w, text) // may be cut off by the refusal
		_ = w.CloseWrite()
		if r := w.hear(); !strings.Contains(r.Refused, want) || len(r.Refused) > 200 {
			t.Errorf("%.60q: %+v", text, r)
		}
		w.over()
	}
	w := h.dial(t)
	_ = w.CloseWrite()
	if r := w.hear(); r.Refused != "malformed request" {
		t.Errorf("nothing: %+v", r)
	}
	h.quiet(t)
	if h.woken.Load() != 0 {
		t.Error("the loop was woken")
	}
}

// TestSilent: a client that says nothing, or drips, is dropped, and told why.
func TestSilent(t *testing.T) {
	h := bound(t)
	h.patience = 100 * time.Millisecond
	h.serve(t)
	silent, dripping := h.dial(t), h.dial(t)
	begun := time.Now()
	go func() {
		for _, b := range []byte(`{"drainit":1,"verb":"status"}`) {
			time.Sleep(20 * time.Millisecond)
			if _, err := dripping.Write([]byte{b}); err != nil {
				return
			}
		}
	}()
	for _, w := range []*wire{silent, dripping} {
		if r := w.hear(); r.Refused != "no request within 100ms" {
			t.Errorf("%+v", r)
		}
		w.over()
	}
	if took := time.Since(begun); took < h.patience || took > time.Second {
		t.Errorf("after %v", took)
	}
	w, id := h.waits(t) // which is not asked for
	time.Sleep(2 * h.patience)
	h.quiet(t)
	h.Answer(id, Answer{})
	if w.hear().Answer == nil {
		t.Error("a waiting client was dropped")
	}
}

// TestUnread: a client that never reads its answer gets it dropped, and keeps
// nobody from theirs.
func TestUnread(t *testing.T) {
	h := bound(t)
	h.patience = time.Second
	h.serve(t)
	big := &State{Service: strings.Repeat("x", maxReply/4)} // more than a buffer holds
	w := h.dial(t).ask(Status)
	begun := time.Now()
	h.Answer(h.next(t).ID, Answer{Status: big})
	if took := time.Since(begun); took > h.patience {
		t.Errorf("Answer took %v", took)
	}
	go echo(h.Server)
	if a, err := Ask(t.Context(), h.Addr(), Request{Verb: Status}, nil); err != nil || a.Text != "did status" {
		t.Errorf("%+v, %v", a, err)
	}
	eventually(t, "dropped", func() bool { return h.inside() == 0 })
	if n := len(w.over()); n == 0 || n > maxReply/4 {
		t.Errorf("%d bytes", n)
	}
}

// TestLargeStatus: nothing of a status is cut, however slowly it is read.
func TestLargeStatus(t *testing.T) {
	h := open(t)
	big := &State{State: "running"}
	for i := range 5000 {
		big.Phases = append(big.Phases, HookState{fmt.Sprint(strings.Repeat("phase", 20), i), "waiting", 0.125})
	}
	states := make(chan *State, 4)
	go func() {
		for c := range h.Calls() {
			h.Answer(c.ID, Answer{Status: <-states})
		}
	}()
	states <- big
	states <- big
	a, err := Ask(t.Context(), h.Addr(), Request{Verb: Status}, nil)
	if err != nil || !reflect.DeepEqual(a.Status, big) {
		t.Errorf("%v", err)
	}
	w := h.dial(t).ask(Status)
	time.Sleep(50 * time.Millisecond)
	w.hear()
	if r := w.hear(); r.Answer == nil || !reflect.DeepEqual(r.Answer.Status, big) {
		t.Error("read slowly")
	}
	states <- &State{UptimeSeconds: math.NaN()}
	if _, err := Ask(t.Context(), h.Addr(), Request{Verb: Status}, nil); err == nil || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("not a number: %v", err)
	}
	states <- &State{Service: strings.Repeat("x", maxReply)}
	if _, err := Ask(t.Context(), h.Addr(), Request{Verb: Status}, nil); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("too long: %v", err)
	}
}

// TestAnswerThenClose: an answer that was given is delivered, even when the init
// ends at that moment.
func TestAnswerThenClose(t *testing.T) {
	for range 50 {
		func() {
			h := open(t)
			defer h.stop()
			w, id := h.waits(t)
			h.Answer(id, Answer{Code: 1})
			h.Close()
			if r := w.hear(); r.Answer == nil || r.Answer.Code != 1 {
				t.Errorf("%+v", r)
			}
		}()
	}
}

// TestClose: everybody is sent away, and everything is joined.
func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	h := open(t)
	silent := h.dial(t)
	w, id := h.waits(t)
	for range 100 { // until the loop's channel is full, and beyond
		h.dial(t).ask(Announce)
	}
	eventually(t, "in", func() bool { return h.inside() == h.crowd.most })
	h.stop()
	if r := w.hear(); r.Refused != "the init is ending" {
		t.Errorf("%+v", r)
	}
	silent.over()
	h.Answer(id, Answer{})
	h.Say(id, "x")
	for len(h.Calls()) > 0 {
		if c := <-h.Calls(); c.Left {
			t.Errorf("%+v: it is us who have hung up", c)
		}
	}
	if _, err := connect(h.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Close: %v", err)
	}
	h.Serve(context.Background()) // returns at once
	eventually(t, "goroutines", func() bool { return runtime.NumGoroutine() <= before })
	again := bound(t) // the name is free
	again.Close()
	again.Serve(context.Background())
}

// TestCloseIsNoHangUp: nobody has left because the server ended.
func TestCloseIsNoHangUp(t *testing.T) {
	h := bound(t)
	_, c := accepted(t, h)
	h.crowd.enter(c, nil)
	id, _ := h.crowd.ask(c, true)
	h.Close()
	for range 30 { // which would be chosen at random
		h.left(c, id)
	}
	if n := len(h.Calls()); n > 0 {
		t.Errorf("%d calls, the first %+v", n, <-h.Calls())
	}
}

func TestServeTwice(t *testing.T) {
	h := open(t)
	h.waits(t) // the first one serves
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Serve(ctx) }()
	h.waits(t)
	cancel()
	<-done
	h.waits(t)
}

func TestContextEndsServe(t *testing.T) {
	h := bound(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Serve(ctx)
	if _, err := connect(h.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v", err)
	}
}

// TestFaults: neither a loop that panics when it is woken nor a log that does ends
// anything.
func TestFaults(t *testing.T) {
	h := bound(t)
	h.options.Wake = func() { panic("boom") }
	h.serve(t)
	go echo(h.Server)
	for range 3 {
		if a, err := Ask(t.Context(), h.Addr(), Request{Verb: Undrain}, nil); err != nil || a.Text != "did undrain" {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if log := h.log.String(); !strings.Contains(log, `msg="control socket fault" fault=boom`) {
		t.Errorf("log %s", log)
	}
}

// TestConcurrent is for the race detector: clients that come and go at any moment
// beside a loop that talks to all of them, and to none.
func TestConcurrent(t *testing.T) {
	h := open(t)
	loop := make(chan struct{})
	owed := map[uint64]bool{}
	go func() {
		defer close(loop)
		for c := range h.Calls() {
			switch {
			case c.ID == 0:
				return
			case c.Left:
				delete(owed, c.ID)
			default:
				owed[c.ID] = true
			}
			for id := range owed {
				h.Say(id, "still here")
				if id%3 == 0 {
					h.Answer(id, Answer{Status: &State{}})
					delete(owed, id)
				}
			}
			h.Answer(c.ID+1000, Answer{}) // nobody
		}
	}()
	var clients sync.WaitGroup
	for i := range 200 {
		clients.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			defer cancel()
			_, _ = Ask(ctx, h.Addr(), Request{Verb: []string{Drain, Status}[i%2]}, nil)
		})
	}
	clients.Wait()
	h.dial(t).send("x\n").hear() // those before it are not in the queue any more
	eventually(t, "all gone", func() bool { return h.inside() == 0 })
	h.stop()
	h.calls <- Call{}
	<-loop
	if len(owed) > 0 {
		t.Errorf("the loop still waits for %v", owed)
	}
}
