package child

import (
	"bufio"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxLine is where a line of a hook's output is cut.
const maxLine = 16 << 10

// drainAfter is how long the rest of a hook's output is read once it has
// ended: what is in the pipe is there at once, and a process that keeps the
// pipe open delays nobody.
const drainAfter = 50 * time.Millisecond

// output is the pipe between a hook and the log.
type output struct {
	read  *os.File
	write int
	null  *os.File
}

// openOutput makes the pipe. The read end is non-blocking, so that it can have
// a deadline; the write end is not, as a program expects of its output.
func openOutput() (*output, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		syscall.Close(fds[0])
		syscall.Close(fds[1])
		return nil, err
	}
	_ = syscall.SetNonblock(fds[0], true)
	return &output{read: os.NewFile(uintptr(fds[0]), "hook output"), write: fds[1], null: null}, nil
}

// files are the hook's standard streams.
func (o *output) files() []uintptr {
	w := uintptr(o.write)
	return []uintptr{o.null.Fd(), w, w}
}

// closeWriteEnd gives up what only the hook is to hold.
func (o *output) closeWriteEnd() {
	syscall.Close(o.write)
	o.null.Close()
}

func (o *output) close() { o.read.Close() }

// expire bounds what is still read.
func (o *output) expire() { _ = o.read.SetReadDeadline(time.Now().Add(drainAfter)) }

// serve reads until the end of the output. It never stops reading for the
// sink's sake: the sink may not block.
func (o *output) serve(sink func(string)) {
	defer o.close()
	defer func() { _ = recover() }() // a fault here costs lines, not the container
	readLines(o.read, sink)
}

// readLines calls sink for each line, without its end. Longer ones are cut,
// and their rest is dropped.
func readLines(r io.Reader, sink func(string)) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		cut := errors.Is(err, bufio.ErrBufferFull)
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if len(line) > 0 || err == nil {
			sink(string(line))
		}
		for cut {
			_, err = in.ReadSlice('\n')
			cut = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return
		}
	}
}
