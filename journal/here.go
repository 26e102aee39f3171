package journal

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// flushHere writes out the queue in the calling goroutine, as long as that does
// not have to wait for anything; false when the writer has to go on. At the end
// of a container it saves two threads the waking of each other.
//
// It can't be held up: a write that would block is refused by the kernel
// (RWF_NOWAIT, pwritev2(2), for pipes since Linux 6.4), and a sink or a kernel
// that does not know that is left to the writer. So is a caller whose thread
// does not block what a write may raise (see blockWriteSignals), and the report
// of lost lines.
func (j *Journal) flushHere() bool {
	select {
	case j.turn <- struct{}{}:
	default: // the writer is at it
		return false
	}
	defer func() { <-j.turn }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if j.out.begun != nil || j.dropped.Load() != j.out.reported || !writeSignalsBlocked() {
		return false
	}
	for {
		select {
		case it := <-j.queue:
			if !j.settleHere(it) {
				j.stir()
				return false
			}
		default:
			return true
		}
	}
}

// settleHere settles one item; false: the writer has to.
func (j *Journal) settleHere(it *item) bool {
	w := j.out
	if it.flushed != nil {
		j.settleMarker(it)
		return true
	}
	if !w.format(it.format, it.record) {
		j.lose(it)
		return true
	}
	for rest := w.line; len(rest) > 0; {
		n, err := unix.Pwritev2(w.sink.fd, [][]byte{rest}, -1, unix.RWF_NOWAIT)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			w.begun, w.line = it, append(w.line[:0], rest...)
			return false
		}
		rest = rest[n:]
	}
	w.works = true
	j.release(it)
	return true
}
