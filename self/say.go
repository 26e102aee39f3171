package self

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sayMax is how long a text may take to be said.
const sayMax = 100 * time.Millisecond

// Say writes to standard error: past os.File, which would have the runtime end
// the process when the reader is gone, and not for longer than sayMax where
// nobody reads. What poll(2) calls writable takes PIPE_BUF bytes without waiting
// (pipe(7)); the rest of a longer text is left out. The caller's thread blocks
// SIGPIPE.
func Say(text string) {
	const pipeBuf = 4096
	fds := []unix.PollFd{{Fd: 2, Events: unix.POLLOUT}}
	if n, err := unix.Poll(fds, int(sayMax.Milliseconds())); n > 0 || err != nil {
		_, _ = syscall.Write(2, []byte(text[:min(len(text), pipeBuf)]))
	}
}
