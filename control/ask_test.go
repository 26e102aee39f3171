package control

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fake listens at an address of its own and does the same to every client.
func fake(t *testing.T, do func(conn *net.UnixConn)) (addr string) {
	t.Helper()
	addr = own(t)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			do(conn)
			_ = conn.Close()
		}
	}()
	return addr
}

// says is a fake that reads the request and answers with a text.
func says(text string) func(*net.UnixConn) {
	return func(conn *net.UnixConn) {
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = io.WriteString(conn, text)
	}
}

// soon gives a request little time to be taken.
func soon(t *testing.T, addr, verb string) error {
	_, err := ask(t.Context(), addr, Request{Verb: verb}, nil, time.Now().Add(150*time.Millisecond))
	return explain(t.Context(), addr, err)
}

// TestNoAnswer: whatever happens in place of an answer is an error that says what.
func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
	}{
		"hung up":       {"", "hung up without an answer"},
		"taken":         {`{"drainit":1,"taken":true}` + "\n", "hung up without an answer"},
		"half":          {`{"drainit":1,"answer":{"code":0}}`, "hung up without an answer"},
		"refused":       {`{"drainit":1,"refused":"not you"}` + "\n", "refused: not you"},
		"refused newly": {`{"drainit":7,"refused":"too old"}` + "\n", "refused: too old"},
		"newer":         {`{"drainit":2,"answer":{"result":"fine"}}` + "\n", "the init speaks version 2 of the control protocol, this client version 1"},
		"another":       {"SSH-2.0-OpenSSH\r\n", "what listens there is no drainit"},
		"another, JSON": {"{}\n", "what listens there is no drainit"},
		"odd":           {`{"drainit":1,"answer":{"code":69}}` + "\n", "unknown result 69"},
		"endless":       {strings.Repeat("x", maxReply+1), "an answer longer than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := soon(t, fake(t, says(c.text)), Status)
			if !strings.HasPrefix(err.Error(), "ask \"@control-test/") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("what a newer one tells beside", func(t *testing.T) {
		addr := fake(t, says(`{"drainit":1,"note":[]}`+"\n"+`{"drainit":1,"answer":{"code":0,"text":"x","more":1}}`+"\n"))
		if a, err := Ask(t.Context(), addr, Request{Verb: Status}, nil); err != nil || a.Text != "x" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// TestDropped: a client that was let go of before its request was read asks again.
func TestDropped(t *testing.T) {
	n := 0
	addr := fake(t, func(conn *net.UnixConn) {
		if n++; n == 3 {
			says(`{"drainit":1,"answer":{"code":1}}` + "\n")(conn)
		}
	})
	if a, err := Ask(t.Context(), addr, Request{Verb: Drain}, nil); err != nil || a.Code != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestNobody: an address where nobody listens.
func TestNobody(t *testing.T) {
	for addr, cause := range map[string]error{own(t): syscall.ECONNREFUSED, t.TempDir() + "/x": syscall.ENOENT} {
		_, err := Ask(t.Context(), addr, Request{Verb: Status}, nil)
		var hint *Error
		if !errors.Is(err, cause) || !errors.As(err, &hint) || !strings.Contains(hint.Hint, "no init listens there") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Ask(t.Context(), "drainit", Request{Verb: Status}, nil); err == nil || !strings.Contains(err.Error(), "neither an absolute path") {
		t.Errorf("%v", err)
	}
}

// TestFrozen: an init that is stopped takes no request; whoever waits for a drain
// learns of that too. One that has taken it is waited for.
func TestFrozen(t *testing.T) {
	h := bound(t) // and does not serve
	for _, verb := range []string{Status, Drain} {
		err := soon(t, h.Addr(), verb)
		var hint *Error
		if !errors.Is(err, errLate) || !errors.As(err, &hint) || !strings.Contains(hint.Hint, "frozen") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	h.serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, h.Addr(), Request{Verb: Status}, nil); !errors.Is(err, errLate) {
		t.Errorf("ctx: %v", err)
	}
	answered := make(chan error)
	go func() { answered <- soon(t, h.Addr(), Drain) }()
	for c := h.next(t); c.Request.Verb != Drain || c.Left; c = h.next(t) {
	}
	select {
	case err := <-answered:
		t.Errorf("a drain was not waited for: %v", err)
	case <-time.After(400 * time.Millisecond):
	}
	h.stop()
	if err := <-answered; !strings.Contains(err.Error(), "refused: the init is ending") {
		t.Errorf("%v", err)
	}
}

// TestCancel: to end the context is to hang up.
func TestCancel(t *testing.T) {
	h := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error)
	go func() {
		_, err := Ask(ctx, h.Addr(), Request{Verb: Drain}, func(string) { cancel() })
		answered <- err
	}()
	id := h.next(t).ID
	h.Say(id, "go away")
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if c := h.next(t); c.ID != id || !c.Left {
		t.Errorf("%+v", c)
	}
}

// TestFullQueue: a queue that is full is tried again, and told of.
func TestFullQueue(t *testing.T) {
	h := bound(t)
	if err := syscall.Listen(int(h.socket.Fd()), 1); err != nil {
		t.Fatal(err)
	}
	_ = syscall.SetNonblock(int(h.socket.Fd()), true) // which Fd has ended
	var waiting []net.Conn
	for {
		conn, err := connect(h.Addr())
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, conn)
	}
	if !h.me.honest(h.Addr()) {
		t.Error("taken for an impostor")
	}
	if err := soon(t, h.Addr(), Status); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	go echo(h.Server)
	go func() {
		time.Sleep(50 * time.Millisecond)
		for _, conn := range waiting {
			_ = conn.Close()
		}
		h.Serve(t.Context())
	}()
	if a, err := Ask(t.Context(), h.Addr(), Request{Verb: Status}, nil); err != nil || a.Text != "did status" {
		t.Errorf("%+v, %v", a, err)
	}
}
