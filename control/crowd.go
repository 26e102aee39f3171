package control

import (
	"sync"
	"syscall"
	"time"
)

const (
	// maxCallers is how many connections are open at a time; others wait in the
	// kernel's queue.
	maxCallers = 64
	// maxShare is the part of the descriptors that may be open that connections
	// may take: hooks' pipes, probes and /proc need some too.
	maxShare = 8
	// haste is what a client may idle away when others wait: one that means it
	// sends its request as soon as it is connected.
	haste = 100 * time.Millisecond
)

// limit is maxCallers, or less where the process may not open many files.
func limit() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return maxCallers
	}
	return max(min(maxCallers, int(min(r.Cur, 1<<20))/maxShare), 2)
}

// crowd knows the open connections. Those that wait for a drain take half of the
// places at most and keep them; for any other there is room as soon as one idles:
// it has not asked, or does not read its answer.
type crowd struct {
	mu     sync.Mutex
	most   int
	inside map[*caller]standing
	byID   map[uint64]*caller // those that are owed an answer
	lastID uint64
	drains int
	closed bool

	changed chan struct{}  // of capacity 1: somebody may have become one to go
	served  sync.WaitGroup // added to by the accepting goroutine alone
}

// standing is how a caller stands with the crowd.
type standing struct {
	idle  time.Time // since when; zero: it waits for the loop
	id    uint64    // 0: has not asked, or has got its answer
	drain bool
}

func newCrowd(most int) *crowd {
	return &crowd{most: most, inside: map[*caller]standing{}, byID: map[uint64]*caller{}, changed: make(chan struct{}, 1)}
}

// enter waits until there is room; false after closeAll, or once quit is closed.
func (cr *crowd) enter(c *caller, quit <-chan struct{}) bool {
	for {
		if entered, closed := cr.try(c); entered || closed {
			return entered
		}
		next, evicted := cr.evict(haste)
		if !evicted && !cr.await(next, quit) {
			return false
		}
	}
}

func (cr *crowd) try(c *caller) (entered, closed bool) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if cr.closed || len(cr.inside) >= cr.most {
		return false, cr.closed
	}
	cr.inside[c] = standing{idle: time.Now()}
	return true, false
}

// await waits for a change, or for the time that evict has told; 0: for a change.
func (cr *crowd) await(next time.Duration, quit <-chan struct{}) bool {
	var due <-chan time.Time
	if next > 0 {
		timer := time.NewTimer(next)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-quit:
		return false
	case <-due:
	case <-cr.changed:
	}
	return true
}

// evict ends the connection that has idled for longest, if that is as long as
// age. Else it tells when it will be, 0: nobody idles.
func (cr *crowd) evict(age time.Duration) (next time.Duration, evicted bool) {
	cr.mu.Lock()
	c, since := cr.idlest()
	if c == nil {
		cr.mu.Unlock()
		return 0, false
	}
	if idled := time.Since(since); idled < age {
		cr.mu.Unlock()
		return age - idled, false
	}
	cr.remove(c)
	cr.mu.Unlock()
	_ = c.conn.Close() // its goroutine notices by an error
	return 0, true
}

// idlest needs the lock.
func (cr *crowd) idlest() (oldest *caller, since time.Time) {
	for c, st := range cr.inside {
		if !st.idle.IsZero() && (oldest == nil || st.idle.Before(since)) {
			oldest, since = c, st.idle
		}
	}
	return oldest, since
}

// ask gives a caller that has sent its request a number; 0: it was evicted, or it
// is one drain too many, which full tells.
func (cr *crowd) ask(c *caller, drain bool) (id uint64, full bool) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if _, inside := cr.inside[c]; !inside {
		return 0, false
	}
	if drain {
		if cr.drains >= cr.most/2 {
			return 0, true
		}
		cr.drains++
	}
	cr.lastID++
	cr.inside[c], cr.byID[cr.lastID] = standing{id: cr.lastID, drain: drain}, c
	return cr.lastID, false
}

// find returns who is owed the answer to id; nil: nobody.
func (cr *crowd) find(id uint64) *caller {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	return cr.byID[id]
}

// claim returns who is owed the answer to id, once; nil: nobody, or no longer.
func (cr *crowd) claim(id uint64) *caller {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	c := cr.byID[id]
	delete(cr.byID, id)
	return c
}

// answered is for a caller that has got its answer: for what it has not read yet
// it must not keep others out.
func (cr *crowd) answered(c *caller) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	if _, inside := cr.inside[c]; inside {
		cr.remove(c)
		cr.inside[c] = standing{idle: time.Now()}
	}
}

// leave takes a caller out.
func (cr *crowd) leave(c *caller) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.remove(c)
}

// remove needs the lock.
func (cr *crowd) remove(c *caller) {
	st, inside := cr.inside[c]
	if !inside {
		return
	}
	delete(cr.inside, c)
	delete(cr.byID, st.id)
	if st.drain {
		cr.drains--
	}
	select {
	case cr.changed <- struct{}{}:
	default:
	}
}

// closeAll ends every connection, and lets nobody in any more.
func (cr *crowd) closeAll() {
	cr.mu.Lock()
	cr.closed = true
	var all []*caller
	for c := range cr.inside {
		all = append(all, c)
	}
	cr.mu.Unlock()
	for _, c := range all {
		c.refuse(errEnding) // nothing, after an answer
		_ = c.conn.Close()
	}
}
