package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// The pause after a failed accept doubles from the first to the second.
	firstPause, longestPause = 5 * time.Millisecond, time.Second
	// tellAgain is how long the same is not told of again.
	tellAgain = time.Minute
)

// Serve answers until ctx is done or [Server.Close] is called, and has closed
// everything and joined what it started when it returns. It never panics and
// never gives up: a full descriptor table, for one, is waited out. A further
// call waits for the end of the first one or of its own ctx.
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
	s.crowd.served.Wait() // from here on nobody can add to it
}

// Close ends the socket and every connection, answered or not, and removes a
// socket file. What Answer was given before has reached the client, as far as it
// fits into the client's buffer. It may be called before Serve, and again.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.quit)
	s.removeFile()
	if s.listen != nil {
		_ = s.listen.Close()
	}
	if s.socket != nil {
		_ = s.socket.Close()
	}
	s.crowd.closeAll()
}

// accept takes connections until Close.
func (s *Server) accept() {
	ln := s.open()
	if ln == nil {
		return
	}
	for p := (pause{server: s}); ; {
		conn, err := ln.AcceptUnix()
		if err == nil {
			p.next = 0
			s.admit(conn)
			continue
		}
		full := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
		if full && !pending(ln) {
			err = nil // the kernel looks for a free descriptor first
		} else if full { // room is made at the cost of those that say nothing
			s.crowd.evict(haste)
		}
		if !p.after(err) {
			return
		}
	}
}

// pending tells whether somebody waits to be accepted.
func pending(ln *net.UnixListener) (waits bool) {
	raw, err := ln.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) { waits = ready(int(fd), unix.POLLIN) })
	return waits || err != nil
}

// open makes a listener of the socket, as often as it takes; nil after Close.
func (s *Server) open() *net.UnixListener {
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
func (s *Server) adopt() (*net.UnixListener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, net.ErrClosed
	case s.listen != nil:
		return s.listen, nil
	}
	ln, err := net.FileListener(s.socket)
	if err != nil {
		return nil, err
	}
	_ = s.socket.Close()
	s.socket, s.listen = nil, ln.(*net.UnixListener)
	return s.listen, nil
}

// admit lets a connection in as soon as there is room, or turns it away.
func (s *Server) admit(conn *net.UnixConn) {
	defer s.recovered()
	c := newCaller(conn)
	if err := s.trustClient(conn); err != nil {
		c.refuse(err)
		_ = conn.Close()
		return
	}
	if s.crowd.enter(c, s.quit) {
		s.crowd.served.Go(func() { s.attend(c) })
		return
	}
	_ = conn.Close()
}

// trustClient returns why a client is not to be answered.
func (s *Server) trustClient(conn *net.UnixConn) error {
	cred, err := credentials(conn)
	if err != nil {
		return err
	}
	switch user := int(cred.Uid); {
	case user != 0 && user != s.me.user:
		err = fmt.Errorf("user %d is neither root nor the init's own, %d", user, s.me.user)
	default:
		if err = s.me.shares(conn, int(cred.Pid)); err != nil {
			err = fmt.Errorf("process %d is not in the init's PID namespace: %w", cred.Pid, err)
		}
	}
	if now := time.Now(); err != nil && !errors.Is(err, errGone) && (s.told.IsZero() || now.Sub(s.told) >= tellAgain) {
		s.told = now
		s.tell(slog.LevelWarn, "control client refused", slog.String("error", err.Error()))
	}
	return err
}

// pause is a series of waits that get longer.
type pause struct {
	server *Server
	next   time.Duration
	told   time.Time
}

// after waits because of err, which nil keeps quiet about; false means that the
// server was closed.
func (p *pause) after(err error) bool {
	select {
	case <-p.server.quit: // which is why there was an error
		return false
	default:
	}
	if p.next == 0 {
		p.next = firstPause
	}
	if now := time.Now(); err != nil && (p.told.IsZero() || now.Sub(p.told) >= tellAgain) {
		p.told = now
		p.server.tell(slog.LevelWarn, "control socket delayed", slog.String("error", err.Error()))
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
		s.tell(slog.LevelError, "control socket fault", slog.String("fault", fmt.Sprint(fault)))
	}
}
