//go:build linux

package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The words of a board; child/child.c has the same list in the same order.
const (
	wordReady = iota
	wordBorn
	wordLast
	wordGo
	wordDone
	wordForks
	wordFailures
	wordSignals
	wordStamp
	wordCount
)

const boardSize = 4096

// A board is a page shared with one workload (mmap(2), MAP_SHARED). The
// workload writes what happened to it and the harness looks when it suits the
// harness: no descriptor to inherit, no wake-up in the middle of a measurement.
type board struct {
	path  string
	page  []byte
	words *[wordCount]atomic.Int64
}

func newBoard(dir string) (*board, error) {
	file, err := os.CreateTemp(dir, "board-")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// The workload may run as another user: see limit.go.
	if err := file.Chmod(0o666); err != nil {
		return nil, err
	}
	if err := file.Truncate(boardSize); err != nil {
		return nil, err
	}
	page, err := unix.Mmap(int(file.Fd()), 0, boardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap %s: %w", file.Name(), err)
	}
	words := (*[wordCount]atomic.Int64)(unsafe.Pointer(&page[0]))
	return &board{path: file.Name(), page: page, words: words}, nil
}

func (b *board) get(word int) int64    { return b.words[word].Load() }
func (b *board) set(word int, n int64) { b.words[word].Store(n) }

// await looks every so often until the word is at least n. It sleeps in a
// system call of the calling thread, since the runtime's timers would wake a
// second thread, on the second of perhaps two cores.
func (b *board) await(word int, n int64, limit time.Duration) bool {
	const interval = 2 * time.Millisecond
	for end := now() + int64(limit); b.get(word) < n; nap(interval) {
		if now() > end {
			return false
		}
	}
	return true
}

func (b *board) close() {
	_ = unix.Munmap(b.page)
	_ = os.Remove(b.path)
}

// now is CLOCK_MONOTONIC in nanoseconds, the clock that the workload reads too
// (clock_gettime(2)): package time does not give it away.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// nap sleeps in the calling thread.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&t, &t) == unix.EINTR {
	}
}
