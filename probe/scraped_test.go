package probe

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const getMetrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

// counted is a configuration whose scrapes are counted.
func counted() (Config, *atomic.Int32) {
	c, n := paths(), new(atomic.Int32)
	c.Scraped = func() { n.Add(1) }
	return c, n
}

// TestScraped: a whole answer with the final figures counts, and no other.
func TestScraped(t *testing.T) {
	c, n := counted()
	bubble(t, c, Counters{}, func(t *testing.T, h *house) {
		want := func(what string, times int32) {
			t.Helper()
			synctest.Wait()
			if got := n.Load(); got != times {
				t.Errorf("%s: %d, want %d", what, got, times)
			}
		}
		h.ask(t, "GET", "/metrics")
		want("no snapshot", 0)
		h.Publish(&Snapshot{StoppedAt: time.Now()})
		h.ask(t, "GET", "/metrics")
		want("the shutdown goes on", 0)
		h.Publish(&Snapshot{Done: true})
		h.ask(t, "HEAD", "/metrics")
		h.ask(t, "POST", "/metrics")
		h.ask(t, "GET", "/readyz")
		h.ask(t, "GET", "/metrics/")
		want("no answer with figures", 0)
		h.ask(t, "GET", "/metrics?name[]=up")
		want("a scrape", 1)
		h.ask(t, "GET", "/metrics")
		want("another scrape", 2)
	})
}

// TestScrapedInFull: what the client has not been given does not count. The
// connection is a pipe without a buffer, so that each byte is seen to leave.
func TestScrapedInFull(t *testing.T) {
	c, n := counted()
	bubble(t, c, Counters{}, func(t *testing.T, h *house) {
		h.Publish(full(time.Now()))
		whole := len(h.raw(t, getMetrics))
		done := full(time.Now())
		done.Done = true
		h.Publish(done)
		for what, read := range map[string]int{"gone at once": 0, "gone after the head": 200, "gone before the last byte": whole - 20} {
			client := h.dial(t)
			_, _ = io.WriteString(client, getMetrics)
			if _, err := io.ReadFull(client, make([]byte, read)); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			synctest.Wait()
			if n.Load() != 0 {
				t.Errorf("%s: counted while it is still being written", what)
			}
			client.Close()
			synctest.Wait()
			if n.Load() != 0 {
				t.Errorf("%s: counted", what)
			}
		}
		silent := h.dial(t)
		_, _ = io.WriteString(silent, getMetrics)
		time.Sleep(patience + time.Millisecond)
		synctest.Wait()
		if n.Load() != 0 {
			t.Error("an answer that nobody read was counted")
		}
	})
}

// TestScrapedNobody: it need not be told.
func TestScrapedNobody(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		h.Publish(&Snapshot{Done: true})
		h.ask(t, "GET", "/metrics")
		synctest.Wait()
		if h.log.String() != "" {
			t.Errorf("log: %s", h.log)
		}
	})
}

// TestScrapedFault: a fault of the one who is told harms nobody.
func TestScrapedFault(t *testing.T) {
	c := paths()
	c.Scraped = func() { panic("boom") }
	bubble(t, c, Counters{}, func(t *testing.T, h *house) {
		h.Publish(&Snapshot{Done: true})
		if _, body := h.ask(t, "GET", "/metrics"); !strings.Contains(body, "drainit_ready") {
			t.Errorf("got %q", body)
		}
		livez(t, h)
		if !strings.Contains(h.log.String(), "fault=boom") {
			t.Errorf("log: %s", h.log)
		}
	})
}

// TestCloseWhenScraped is the end of a shutdown that waits for its last scrape:
// the listener is closed from within the call, and the client, which has not
// read a byte by then, has the whole answer.
func TestCloseWhenScraped(t *testing.T) {
	for range 100 {
		var h *house
		closed, c := make(chan struct{}), paths()
		c.Scraped = func() { h.Close(); close(closed) }
		s, err := Listen(c, Counters{})
		if err != nil {
			t.Fatal(err)
		}
		s.Publish(&Snapshot{Done: true, Shutdown: time.Second})
		h = &house{Server: s}
		h.serve(t)
		client := h.dial(t)
		_, _ = io.WriteString(client, getMetrics)
		<-closed
		<-h.ended
		got, err := io.ReadAll(client)
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
		if r, body := parse(t, http.MethodGet, string(got)); r.StatusCode != http.StatusOK || !strings.Contains(body, "app_shutdown_duration_seconds{service=\"\"} 1\n") {
			t.Fatalf("got %q", got)
		}
		if c, err := net.Dial("tcp", h.Addr()); err == nil {
			c.Close()
			t.Fatal("still accepts")
		}
	}
}
