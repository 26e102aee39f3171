package probe

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcceptErrors(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, syscall.ENOBUFS, syscall.EINVAL} {
		bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
			oldest := h.dial(t)
			synctest.Wait()
			for range 20 {
				h.memory.fails <- &net.OpError{Op: "accept", Err: cause}
			}
			livezLater := h.dial(t)
			defer livezLater.Close()
			go func() { _, _ = io.WriteString(livezLater, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n") }()
			start := time.Now()
			if got, _ := io.ReadAll(livezLater); !strings.HasSuffix(string(got), alive) {
				t.Errorf("%v: %q", cause, got)
			}
			if d := time.Since(start); d < 10*time.Second || d > 20*time.Second {
				t.Errorf("%v: 20 errors took %v", cause, d)
			}
			// Many short series are not told of one by one either.
			for range 5 {
				h.memory.fails <- &net.OpError{Op: "accept", Err: cause}
				livez(t, h)
			}
			if n := strings.Count(h.log.String(), "probe listener delayed"); n != 1 {
				t.Errorf("%v: log %s", cause, h.log)
			}
			if cause == syscall.EMFILE && drop(t, oldest) != 0 {
				t.Error("no room was made")
			}
		})
	}
}

// TestAdoptsLater: a socket that can't be adopted yet is tried again.
func TestAdoptsLater(t *testing.T) {
	s, err := Listen(paths(), Counters{})
	if err != nil {
		t.Fatal(err)
	}
	noSocket, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer noSocket.Close()
	told := make(chan struct{}, 1)
	s.config.Log = slog.New(slog.NewTextHandler(signalWriter(told), nil))
	good := s.socket
	s.socket = noSocket
	h := &house{Server: s}
	h.serve(t)
	<-told
	s.mu.Lock()
	s.socket = good
	s.mu.Unlock()
	livez(t, h)
}

type signalWriter chan struct{}

func (s signalWriter) Write(p []byte) (int, error) { s <- struct{}{}; return len(p), nil }

// TestLoggerFaults: a logger that panics ends neither the listener nor a pause.
func TestLoggerFaults(t *testing.T) {
	bubble(t, paths(), Counters{LogDropped: func() uint64 { panic("boom") }}, func(t *testing.T, h *house) {
		h.config.Log = slog.New(slog.NewTextHandler(faultyWriter{}, nil))
		h.memory.fails <- errors.New("odd")
		if got := h.raw(t, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); got != "" {
			t.Errorf("got %q", got)
		}
		livez(t, h)
	})
}

type faultyWriter struct{}

func (faultyWriter) Write([]byte) (int, error) { panic("no log") }
