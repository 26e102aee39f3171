package probe

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	// patience is how long a client may take to send its request, and how long
	// it may leave the answer unread.
	patience = 5 * time.Second
	// maxHead bounds the request line and the header fields; net/http adds 4096.
	maxHead = 4096
	// The pause after a failed accept doubles from the first to the second.
	firstPause, longestPause = 5 * time.Millisecond, time.Second
)

// Serve answers until ctx is done or [Server.Close] is called, and has closed
// everything and joined what it started when it returns. It never panics and
// never gives up: a full descriptor table, for one, is waited out. A further
// call opens no second socket; it waits for the end of the first one or of its
// own ctx. After Close it returns at once.
//
// It returns some microseconds after Close, whatever the clients do. The one
// thing it doesn't join is net/http's sleep of half a second before it closes
// the connection of a client that was refused while still sending.
func (s *Server) Serve(ctx context.Context) {
	if !s.serving.CompareAndSwap(false, true) {
		select {
		case <-ctx.Done():
		case <-s.done:
		}
		return
	}
	defer close(s.done)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		defer s.recovered()
		s.accept()
	}()
	select {
	case <-ctx.Done():
	case <-s.quit:
	}
	s.Close()
	<-accepted
	s.conns.served.Wait() // from here on nobody can add to it
}

// Close ends the listener and every connection, answered or not, and returns
// when they are closed: who connects afterwards is refused, who was being
// accepted meanwhile is closed unread. It may be called before Serve, and again.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.quit)
	if s.listen != nil {
		_ = s.listen.Close()
	}
	if s.socket != nil {
		_ = s.socket.Close()
	}
	s.conns.closeAll()
}

// accept runs net/http's own loop, over a listener that returns only what is
// worth an answer, and an error only after Close.
func (s *Server) accept() {
	ln := s.open()
	if ln == nil {
		return
	}
	h := &http.Server{
		Handler:                      newAnswers(s),
		DisableGeneralOptionsHandler: true, // OPTIONS * is a 405 like any other
		ReadTimeout:                  patience,
		WriteTimeout:                 patience,
		MaxHeaderBytes:               maxHead,
		ErrorLog:                     log.New(io.Discard, "", 0),
		Protocols:                    new(http.Protocols),
	}
	h.Protocols.SetHTTP1(true)
	h.SetKeepAlivesEnabled(false)
	_ = h.Serve(&listener{Listener: ln, server: s})
}

// open makes a listener of the socket, as often as it takes, and returns nil
// after Close. Listen leaves that to us because it must be quick.
func (s *Server) open() net.Listener {
	p := pause{server: s}
	for {
		ln, err := s.adopt()
		if err == nil {
			return ln
		}
		if !p.after(err) {
			return nil
		}
	}
}

// adopt gives the socket to the runtime's poller. net.FileListener works on a
// copy of the descriptor, so for a moment there are two.
func (s *Server) adopt() (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.listen != nil {
		return s.listen, nil
	}
	ln, err := net.FileListener(s.socket)
	if err != nil {
		return nil, err
	}
	_ = s.socket.Close()
	s.listen, s.socket = ln, nil
	return ln, nil
}

// listener is what net/http accepts from.
type listener struct {
	net.Listener
	server *Server
	told   time.Time // when the last delay was; Accept's alone
}

// Accept returns the next connection. Errors are waited out, since net/http
// would end its loop at those that it doesn't know to be temporary.
func (l *listener) Accept() (net.Conn, error) {
	p := pause{server: l.server, told: l.told}
	defer func() { l.told = p.told }()
	for {
		accepted, err := l.Listener.Accept()
		if err == nil {
			if c := l.server.conns.add(accepted); c != nil {
				return c, nil
			}
			return nil, net.ErrClosed
		}
		// Room for the newest is made at the cost of the oldest here too.
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.server.conns.dropOldest()
		}
		if !p.after(err) {
			return nil, net.ErrClosed
		}
	}
}

// pause is a series of waits that get longer.
type pause struct {
	server *Server
	next   time.Duration
	told   time.Time
}

// tellAgain is how long a delay is not told of again: connections that fill
// the table come and go many times a second.
const tellAgain = time.Minute

// after waits because of err; false means that the server was closed. A series
// leaves one record a minute, and so do many series.
func (p *pause) after(err error) bool {
	select {
	case <-p.server.quit: // which is why there was an error
		return false
	default:
	}
	if p.next == 0 {
		p.next = firstPause
	}
	if now := time.Now(); p.told.IsZero() || now.Sub(p.told) >= tellAgain {
		p.told = now
		p.server.tell(slog.LevelWarn, "probe listener delayed", "error", err.Error())
	}
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	p.next = min(2*p.next, longestPause)
	select {
	case <-timer.C:
		return true
	case <-p.server.quit:
		return false
	}
}

// recovered, deferred, turns a panic into a record without a stack.
func (s *Server) recovered() {
	if fault := recover(); fault != nil {
		s.tell(slog.LevelError, "probe listener fault", "fault", fault)
	}
}
