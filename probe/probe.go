// Package probe answers the questions that an orchestrator, a balancer and a
// metrics collector ask about the container: is it alive, may it get work, and
// how is its shutdown going. It holds the listener, the state that it answers,
// and the text of the metrics. It decides nothing: whoever supervises the
// workload tells it what to say by [Server.SetStatus] and [Server.Publish].
//
// The order of use is [Listen] (binds, before anything is started), then
// [Server.Serve] (answers; may come later, the kernel keeps the early probes),
// then [Server.Close]. A probe never waits for anybody: an answer is made from
// two atomic values.
//
// It speaks HTTP/1.x by net/http (RFC 9110, RFC 9112) and closes each
// connection after its answer. Kubernetes, ECS and most balancers open a
// connection for each probe anyway, and so no prober ever meets a kept
// connection that has just been given up.
package probe

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
)

// Status is what the readiness path answers. The zero value is Unavailable.
type Status int32

const (
	// Unavailable: not everything has started. UnreadyStatus, "unavailable".
	Unavailable Status = iota
	// Ready: 200, "ready".
	Ready
	// Draining: announced, or the workload has exited. UnreadyStatus, "draining".
	Draining
)

// Config says where to listen and what to answer where. It is validated by
// package config; nothing is checked a second time here.
type Config struct {
	// Addr is host:port as net.Listen takes it: ":8079" (every address, IPv4 and
	// IPv6), "127.0.0.1:8079", "[::1]:8079". A name such as localhost works and
	// costs a look-up. Port 0 takes a free one, see [Server.Addr].
	Addr string
	// ReadyPath, LivePath and MetricsPath are compared with the path of the
	// request exactly as it was sent, without its query: nothing is unescaped,
	// cleaned or redirected. /health/ready and /health/live answer as well,
	// unless one of these has taken them. An empty one is never asked for.
	ReadyPath, LivePath, MetricsPath string
	// UnreadyStatus is the HTTP status while not ready; 0 is 503.
	UnreadyStatus int
	// Scraped is called after each answer of MetricsPath that told the figures of
	// a snapshot that is Done, once the kernel has taken the whole of it: not for
	// HEAD, and not where the client was gone before that. It is called from the
	// goroutine that answers, so it may be called several times at once, must not
	// block, and must not call Serve. nil: nobody is told.
	Scraped func()
	// Log gets a record of each fault; nil: nobody is told.
	Log *slog.Logger
}

// Counters are read at each scrape, from any goroutine. A nil one counts 0.
type Counters struct {
	Reaped, LogDropped func() uint64
}

// Server is a bound listener. It is made by [Listen]; the zero value is useless.
// Every method may be called from any goroutine, at any time.
type Server struct {
	config   Config
	counters Counters
	addr     netip.AddrPort
	status   atomic.Int32
	snapshot atomic.Pointer[Snapshot]
	conns    conns

	serving atomic.Bool
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when the one Serve has ended

	mu     sync.Mutex   // hands the socket over from Listen to Serve to Close
	socket *os.File     // what Listen has bound by itself; nil once listen owns it
	listen net.Listener // nil until Serve, or what net.Listen gave
	closed bool
}

// SetStatus sets what the next readiness probe is told. It never blocks, and a
// probe whose answer is already being made may still get the one before.
func (s *Server) SetStatus(status Status) { s.status.Store(int32(status)) }

// Publish sets what the next scrape is told. The snapshot must not be changed
// afterwards, nor anything that it refers to. It never blocks; nil is an empty one.
func (s *Server) Publish(snapshot *Snapshot) { s.snapshot.Store(snapshot) }

// Addr is the bound address, host:port; where port 0 was asked for, with the
// port that the kernel chose. It stays the same after Close.
func (s *Server) Addr() string { return s.addr.String() }

func newServer(c Config, counters Counters) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, counters: counters}
	s.quit, s.done = make(chan struct{}), make(chan struct{})
	return s
}

// tell writes a record. A logger that faults must not end what it reports about.
func (s *Server) tell(level slog.Level, event, key string, value any) {
	defer func() { _ = recover() }()
	s.config.Log.LogAttrs(context.Background(), level, event, slog.String(key, fmt.Sprint(value)))
}
