package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// drop waits for the server to end the connection and says when it did so.
func drop(t *testing.T, c net.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
	return time.Since(start)
}

func livez(t *testing.T, h *house) {
	t.Helper()
	start := time.Now()
	if r, body := h.ask(t, "GET", "/livez"); r.StatusCode != 200 || body != alive {
		t.Errorf("/livez: %d %q", r.StatusCode, body)
	}
	if d := time.Since(start); d > time.Second { // 0 in a bubble
		t.Errorf("/livez took %v", d)
	}
}

func TestSilentClientIsDropped(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		silent := h.dial(t)
		livez(t, h)
		if d := drop(t, silent); d != patience {
			t.Errorf("dropped after %v", d)
		}
	})
}

// TestDrippingClientIsDropped: what comes in byte by byte earns no extra time.
func TestDrippingClientIsDropped(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		c := h.dial(t)
		go func() {
			for _, b := range []byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") {
				time.Sleep(time.Second)
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
			}
		}()
		if d := drop(t, c); d != patience {
			t.Errorf("dropped after %v", d)
		}
	})
}

// TestBodyIsNotAwaited: the answer comes before the body, whose sender is dropped.
func TestBodyIsNotAwaited(t *testing.T) {
	for _, head := range []string{
		"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nslow",
		"GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
		"PUT /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nlong",
	} {
		bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
			c := h.dial(t)
			go func() { _, _ = io.WriteString(c, head) }()
			start, got := time.Now(), make([]byte, 4096)
			n, err := c.Read(got)
			if err != nil || !strings.HasPrefix(string(got[:n]), "HTTP/1.1 ") || strings.Contains(string(got[:n]), " 100 ") {
				t.Errorf("%q: %q, %v", head, got[:n], err)
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("%q: answer took %v", head, d)
			}
			livez(t, h)
			if d := drop(t, c); d > patience {
				t.Errorf("%q: dropped after %v", head, d)
			}
		})
	}
}

func TestUnreadAnswerIsGivenUp(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		c := h.dial(t) // a pipe has no buffer: a write waits for its reader
		_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
		synctest.Wait()
		if h.connections() != 1 {
			t.Fatal("not open")
		}
		time.Sleep(patience + time.Millisecond)
		synctest.Wait()
		if n := h.connections(); n != 0 {
			t.Errorf("%d still open", n)
		}
	})
}

// TestCrowd: silent connections never keep a probe out; the oldest ones go.
func TestCrowd(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		var first net.Conn
		for i := range 1000 {
			c := h.dial(t)
			if i == 0 {
				first = c
			}
			synctest.Wait()
		}
		if d := drop(t, first); d != 0 {
			t.Errorf("the oldest was dropped after %v", d)
		}
		livez(t, h)
		synctest.Wait()
		if n := h.connections(); n > maxConns {
			t.Errorf("%d open", n)
		}
	})
}

func TestCloseDuringAcceptErrors(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		for range 50 {
			h.memory.fails <- errors.New("odd")
		}
		time.Sleep(10 * time.Second)
		start := time.Now()
		h.stop()
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v", d)
		}
	})
}

// TestCloseIsPrompt: neither the silent client, nor the refused one that is
// still sending, nor the one that doesn't read makes Close or Serve wait.
func TestCloseIsPrompt(t *testing.T) {
	for _, request := range []string{
		"", "GET /li", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "GET /" + strings.Repeat("a", 70_000),
		"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
	} {
		bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
			c := h.dial(t)
			go func() { _, _ = io.WriteString(c, request) }()
			if strings.Contains(request, "999") || len(request) > 70_000 {
				_, _ = c.Read(make([]byte, 4096)) // has its answer; net/http sleeps
			}
			synctest.Wait()
			start := time.Now()
			h.stop()
			if d := time.Since(start); d != 0 {
				t.Errorf("%.20q: took %v", request, d)
			}
			if d := drop(t, c); d != 0 {
				t.Errorf("%.20q: dropped after %v", request, d)
			}
		})
	}
}

func TestAcceptedWhileClosing(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		h.conns.closeAll()
		c := h.dial(t)
		if n, err := c.Write([]byte("GET")); n != 0 || err == nil {
			t.Errorf("%d bytes were read, %v", n, err)
		}
	})
}

func TestServeTwice(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		synctest.Wait() // the first one is h's
		var ended atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		go func() { h.Serve(ctx); ended.Add(1) }()
		go func() { h.Serve(context.Background()); ended.Add(1) }()
		synctest.Wait()
		livez(t, h)
		cancel()
		synctest.Wait()
		if ended.Load() != 1 {
			t.Errorf("%d have ended", ended.Load())
		}
		livez(t, h) // the second's context ends the second
		h.stop()
		synctest.Wait()
		if ended.Load() != 2 {
			t.Errorf("%d have ended", ended.Load())
		}
		h.Serve(context.Background())
	})
}

func TestContextEndsServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newServer(paths(), Counters{}), newMemory()
		s.listen = m
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		s.Serve(ctx)
		if d := time.Since(start); d != time.Minute {
			t.Error(d)
		}
		if _, err := m.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listener: %v", err)
		}
	})
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	h := serveReal(t, paths())
	stop, writer := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(writer)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			h.SetStatus(Status(i % 3))
			h.Publish(&Snapshot{Service: fmt.Sprint(i), Signals: map[string]uint64{"TERM": uint64(i)}})
		}
	}()
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 20 {
				h.ask(t, "GET", "/readyz")
				h.ask(t, "GET", "/metrics")
			}
		}()
	}
	for range 8 {
		<-done
	}
	close(stop)
	<-writer
}
