package control

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// caller is a client's connection, as the server sees it.
type caller struct {
	conn *net.UnixConn

	mu   sync.Mutex // one writer at a time, and none of them waits
	rest []byte     // what the client's buffer had no room for
	last bool       // the answer is in rest or on its way: nothing may follow it

	watched bool          // there is a goroutine that will close gone; the owner's
	gone    chan struct{} // closed when the client has hung up, or we have
	ending  chan struct{} // closed when it was given its answer
}

func newCaller(conn *net.UnixConn) *caller {
	return &caller{conn: conn, gone: make(chan struct{}), ending: make(chan struct{})}
}

// read waits for the request. The error is for the client, if it is still there.
func (c *caller) read(patience time.Duration) (Request, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	buf, n := make([]byte, maxRequest), 0
	for {
		got, err := c.conn.Read(buf[n:])
		n += got
		text, more, whole := bytes.Cut(buf[:n], []byte{'\n'})
		switch {
		case len(more) > 0:
			return Request{}, errors.New("malformed request: more than one line")
		case whole, errors.Is(err, io.EOF):
			return decodeRequest(text)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return Request{}, fmt.Errorf("no request within %v", patience)
		case err != nil:
			return Request{}, err
		case n == len(buf):
			return Request{}, fmt.Errorf("request longer than %d bytes", maxRequest)
		}
	}
}

// watch returns when the client has hung up, or the connection is closed. A client
// that has only closed its own direction is one that waits: the kernel tells the
// two apart (POLLHUP and POLLRDHUP of poll(2)), reading does not.
func (c *caller) watch() {
	_ = c.conn.SetReadDeadline(time.Time{})
	// Nothing more is expected, and a client that says more wakes nobody.
	_ = c.conn.CloseRead()
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool { return hungUp(int(fd)) })
}

// hungUp: poll(2) tells of POLLHUP and POLLERR without being asked.
func hungUp(fd int) bool { return ready(fd, 0) }

// ready asks poll(2) without waiting.
func ready(fd int, events int16) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	for {
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, syscall.EINTR) {
			return n > 0 || err != nil
		}
	}
}

// push sends a line without waiting. What the client's buffer has no room for is
// kept for flush if it is the last one, else the line is dropped.
func (c *caller) push(text []byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last {
		return
	}
	c.last = last
	if len(c.rest) > 0 {
		_ = c.send()
	}
	begun := len(c.rest) > 0
	if begun && !last {
		return
	}
	c.rest = append(c.rest, text...)
	_ = c.send()
	if len(c.rest) == len(text) && !begun && !last {
		c.rest = nil
	}
}

// send sends of rest what there is room for. It needs the lock. The error is
// EAGAIN where there was none.
func (c *caller) send() (err error) {
	for len(c.rest) > 0 && err == nil {
		var n int
		failed := onSocket(c.conn, func(fd int) {
			n, err = unix.SendmsgN(fd, c.rest, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		})
		err = errors.Join(failed, err)
		c.rest = c.rest[max(n, 0):]
	}
	if err != nil && !errors.Is(err, syscall.EAGAIN) {
		c.rest = nil // nobody will ever read it
	}
	return err
}

// flush sends what push has kept, for as long as patience: a client that does not
// read its answer does not get it.
func (c *caller) flush(patience time.Duration) {
	_ = c.conn.SetWriteDeadline(time.Now().Add(patience))
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(uintptr) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !errors.Is(c.send(), syscall.EAGAIN)
	})
}

// refuse tells why nobody is asked.
func (c *caller) refuse(why error) {
	if text, err := line(reply{Version: protocol, Refused: why.Error()}); err == nil {
		c.push(text, true)
	}
}

// close ends the connection and joins the goroutine that watches it. What was sent
// stays in the client's buffer.
func (c *caller) close() {
	_ = c.conn.Close()
	if c.watched {
		<-c.gone
	}
}
