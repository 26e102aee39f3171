package probe

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory is a listener without a network, which works in a synctest bubble. An
// error sent to fails is what the next Accept returns.
type memory struct {
	queue chan net.Conn
	fails chan error
	quit  chan struct{}
	once  sync.Once
}

func newMemory() *memory {
	return &memory{queue: make(chan net.Conn, 2*maxConns), fails: make(chan error, 100), quit: make(chan struct{})}
}

func (m *memory) Accept() (net.Conn, error) {
	select { // failures first
	case err := <-m.fails:
		return nil, err
	default:
	}
	select {
	case c := <-m.queue:
		return c, nil
	case err := <-m.fails:
		return nil, err
	case <-m.quit:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.quit) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

func (m *memory) dial() net.Conn {
	client, server := net.Pipe()
	m.queue <- server
	return client
}

// house is a server that serves, on a memory listener or a real one.
type house struct {
	*Server
	memory *memory
	log    *lockedBuffer
	ended  chan struct{}
}

func serveMemory(t testing.TB, c Config, counters Counters) *house {
	h := &house{memory: newMemory(), log: new(lockedBuffer)}
	c.Log = slog.New(slog.NewTextHandler(h.log, nil))
	h.Server = newServer(c, counters)
	h.listen = h.memory
	h.serve(t)
	return h
}

func serveReal(t testing.TB, c Config) *house {
	t.Helper()
	s, err := Listen(c, Counters{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{Server: s}
	h.serve(t)
	return h
}

func (h *house) serve(t testing.TB) {
	h.ended = make(chan struct{})
	go func() { defer close(h.ended); h.Serve(context.Background()) }()
	t.Cleanup(func() { h.stop() })
}

func (h *house) stop() { h.Close(); <-h.ended }

func (h *house) dial(t testing.TB) net.Conn {
	t.Helper()
	if h.memory != nil {
		return h.memory.dial()
	}
	c, err := net.Dial("tcp", h.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connections is how many are open.
func (h *house) connections() int {
	h.conns.mu.Lock()
	defer h.conns.mu.Unlock()
	return h.conns.open.Len()
}

// raw sends the bytes and returns everything that comes back until the end.
func (h *house) raw(t testing.TB, request string) string {
	t.Helper()
	c := h.dial(t)
	defer c.Close()
	go func() { _, _ = io.WriteString(c, request) }() // a refused client may not get it all out
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	got, err := io.ReadAll(c)
	if os.IsTimeout(err) {
		t.Fatalf("hangs at %.100q", request)
	}
	return string(got)
}

// ask sends one request and returns the answer and its body.
func (h *house) ask(t testing.TB, method, target string) (*http.Response, string) {
	t.Helper()
	got := h.raw(t, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, target))
	return parse(t, method, got)
}

func parse(t testing.TB, method, got string) (*http.Response, string) {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%v in %q", err, got)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("body: %v in %q", err, got)
	}
	return r, string(body)
}

func paths() Config {
	return Config{Addr: "127.0.0.1:0", ReadyPath: "/readyz", LivePath: "/livez", MetricsPath: "/metrics"}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
