package probe

import (
	"container/list"
	"net"
	"sync"
	"syscall"
)

// maxConns is how many connections are open at a time. Beyond it the oldest
// goes, not the newest: a prober asks at once, so what has been open for longest
// is the silent one, and no number of silent clients keeps a probe from its answer.
const maxConns = 256

// maxShare is the part of the descriptors that may be open that connections may
// take: hooks' pipes and /proc need some too, and a client must not cost them.
const maxShare = 4

// limit is maxConns, or less where the process may not open many files.
func limit() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return maxConns
	}
	return max(min(maxConns, int(min(r.Cur, 1<<20))/maxShare), 1)
}

// conns knows the open connections, oldest first. The zero value is empty.
type conns struct {
	mu     sync.Mutex
	most   int       // 0: not asked yet
	open   list.List // of *conn
	closed bool
	served sync.WaitGroup // added to by the accepting goroutine alone
}

// conn is one connection, as net/http sees it. Its Close is called by net/http
// alone, as the last thing that its goroutine does with it.
type conn struct {
	net.Conn
	of    *conns
	place *list.Element // nil once it is out of the list; guarded by of.mu
	ended sync.Once
}

// add takes a connection in, which may cost the oldest one its life. It returns
// nil after closeAll, and has closed the connection then, unread.
func (cs *conns) add(accepted net.Conn) *conn {
	c := &conn{Conn: accepted, of: cs}
	cs.mu.Lock()
	if cs.closed {
		cs.mu.Unlock()
		_ = accepted.Close()
		return nil
	}
	if cs.most == 0 {
		cs.most = limit()
	}
	full := cs.open.Len() >= cs.most
	cs.served.Add(1)
	c.place = cs.open.PushBack(c)
	cs.mu.Unlock()
	if full {
		cs.dropOldest()
	}
	return c
}

// dropOldest ends the oldest connection; its goroutine notices by a read error.
// It is closed outside the lock, which that goroutine needs to leave.
func (cs *conns) dropOldest() bool {
	cs.mu.Lock()
	oldest := cs.open.Front()
	if oldest == nil {
		cs.mu.Unlock()
		return false
	}
	c := oldest.Value.(*conn)
	cs.remove(c)
	cs.mu.Unlock()
	_ = c.Conn.Close()
	return true
}

// closeAll ends every connection, and each that add is asked to take from now on.
func (cs *conns) closeAll() {
	cs.mu.Lock()
	cs.closed = true
	cs.mu.Unlock()
	for cs.dropOldest() {
	}
}

// remove needs the lock.
func (cs *conns) remove(c *conn) {
	if c.place != nil {
		cs.open.Remove(c.place)
		c.place = nil
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	c.ended.Do(c.of.served.Done)
	return err
}

// CloseWrite is what net/http calls after it has refused a client that is still
// sending, before it sleeps for half a second lest a reset destroys the answer.
// Nobody who waits for the end waits for that sleep: the goroutine does nothing
// after it but close. Until then it counts as open, and can be dropped.
func (c *conn) CloseWrite() error {
	defer c.ended.Do(c.of.served.Done)
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
