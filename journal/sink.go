package journal

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	// pipeBuf is PIPE_BUF of pipe(7): what a pipe that poll calls writable takes
	// without blocking (it has a free page), and in one piece, so that a line up
	// to this length is never mixed with one of the workload's.
	pipeBuf = 4096
	// slice is how long a wait for the sink lasts before stop is looked at again,
	// in milliseconds. The sink itself ends the wait at once.
	slice = 50
)

// sink writes to a descriptor that is shared with the world: the workload may
// have set O_NONBLOCK on its description or not (it lives on the description, not
// on the descriptor), the reader may be slow or gone. So neither kind of write is
// relied on: poll(2) says when the sink takes something, and it is given no more
// than pipeBuf at a time.
//
// What remains is a blocking pipe that somebody else fills between poll and
// write. Then the write waits, with it the writing goroutine, and nobody else:
// the queue goes on dropping, Flush and Close give up at their limit.
type sink struct {
	fd   int
	stop <-chan struct{} // closed: wait for nothing any more
}

// write writes all of line, waiting as long as the sink takes nothing; false when
// it is lost. EPIPE, EIO, EBADF, ENOSPC: the next line has its own try, this one
// is not tried again, and nothing is logged about it (that line would fail too).
func (s sink) write(line []byte) bool {
	for len(line) > 0 {
		if !s.ready() {
			return false
		}
		n, err := unix.Write(s.fd, line[:min(len(line), pipeBuf)])
		switch {
		case n > 0:
			line = line[n:]
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			// Called ready and takes nothing, for instance since somebody else was
			// quicker. Asking at once could spin.
			unix.Poll(nil, slice)
		default:
			return false
		}
	}
	return true
}

// ready waits until a write would not block, which an error of the sink counts as
// too; false when the journal has been stopped meanwhile. A poll that fails says
// nothing about the sink, so the write is left to find out.
func (s sink) ready() bool {
	for {
		select {
		case <-s.stop:
			return false
		default:
		}
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, slice)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return true
		}
	}
}

// blockWriteSignals blocks, in the calling thread alone, the two signals that a
// write can send to the thread or the group that writes:
//   - SIGPIPE, where the reader is gone (pipe(7), signal(7)). The write fails with
//     EPIPE all the same. Unblocked, it would end a process that does not handle
//     it, and an init that forwards it would hand the workload a broken pipe that
//     is not the workload's. Blocked it stays pending in this thread, for good.
//   - SIGTTOU, where the sink is a terminal with tostop whose foreground is the
//     workload's: it would stop the init. Blocked, the write goes through
//     (termios(3), TOSTOP).
//
// Signals from outside are for the process and go to another thread. The mask of
// threads that the runtime starts is not this one's, and a fork from elsewhere
// has that thread's.
func blockWriteSignals() {
	set := writeSignals()
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil) // fails for no valid set
}

// writeSignalsBlocked tells whether the calling thread blocks them already.
func writeSignalsBlocked() bool {
	var mask unix.Sigset_t
	set := writeSignals()
	return unix.PthreadSigmask(unix.SIG_BLOCK, nil, &mask) == nil && mask.Val[0]&set.Val[0] == set.Val[0]
}

// writeSignals are both below 32: in the first word on every platform.
func writeSignals() (set unix.Sigset_t) {
	set.Val[0] = 1<<(unix.SIGPIPE-1) | 1<<(unix.SIGTTOU-1)
	return set
}
