package signals

import (
	"syscall"
	"time"
	"unsafe"
)

// Next waits for a signal until the given time, the zero time being never.
// CHLD stands for any number of children that may have changed state, and for
// Wake. False: the time has come first; one that has passed only looks. Only
// the goroutine that called Open may call it.
//
// The thread that waits takes the signals out of the kernel's hands
// (sigtimedwait(2)). The kernel hands a process's signals to its first thread
// whenever that one waits for them, so one thread wakes up, and it is the one
// that acts. By os/signal three wake up, one after the other: the one that the
// runtime's handler runs on, the one that fills the channel, the one that reads
// it. While this thread is busy, another one gets them through the handler;
// what arrives that way comes out of here all the same.
func (r *Relay) Next(until time.Time) (syscall.Signal, bool) {
	for {
		if all := Set(r.missed.Load()); all != 0 {
			sig := all.after(r.given)
			r.missed.And(^uint64(Of(sig)))
			r.given = sig
			return sig, true
		}
		sig, err := r.wait(until)
		switch err {
		case 0:
			return sig, true
		case syscall.EAGAIN:
			return 0, false
		case syscall.EINTR: // a handler ran in this thread, or a debugger came by
		default:
			// Refused, by a seccomp profile. The runtime's handlers have every
			// signal then, as they do while this thread is busy.
			if !r.pause(until) {
				return 0, false
			}
		}
	}
}

// pause waits for Wake. False: the time has come first.
func (r *Relay) pause(until time.Time) bool {
	var late <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(max(time.Until(until), 0))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-r.woken:
		r.missed.Or(uint64(Of(syscall.SIGCHLD)))
		return true
	case <-late:
		return false
	}
}

// wait takes one signal. The kernel has the lowest number first, so those that
// somebody sends without end would hide the ones behind them: the ones behind
// the last that was taken are asked first, in a circle.
func (r *Relay) wait(until time.Time) (syscall.Signal, syscall.Errno) {
	if r.last != 0 {
		behind := r.set &^ (1<<r.last - 1)
		if sig, err := timedWait(behind, &syscall.Timespec{}); err == 0 {
			r.last = sig
			return sig, 0
		}
		r.last = 0
	}
	var timeout *syscall.Timespec
	if !until.IsZero() {
		t := syscall.NsecToTimespec(int64(max(time.Until(until), 0)))
		timeout = &t
	}
	sig, err := timedWait(r.set, timeout)
	if err == 0 {
		r.last = sig
	}
	return sig, err
}

// Wake makes Next return CHLD, now or when it is called next. Any goroutine may
// call it.
func (r *Relay) Wake() {
	select {
	case r.woken <- struct{}{}:
	default: // one is enough
	}
	_ = syscall.Tgkill(syscall.Getpid(), r.thread, syscall.SIGCHLD) // the thread lives as long as the process
}

// collect takes in what came through the runtime. It lives as long as the
// process.
func (r *Relay) collect() {
	for {
		select {
		case s := <-r.c:
			if sig, ok := s.(syscall.Signal); ok {
				r.missed.Or(uint64(Of(sig)))
			}
		case <-r.child:
		}
		r.Wake()
	}
}

// faults are what the processor itself raises. A thread that blocks them can't
// have them handled: they come through the runtime alone.
const faults = Set(1<<(syscall.SIGILL-1) | 1<<(syscall.SIGTRAP-1) | 1<<(syscall.SIGBUS-1) |
	1<<(syscall.SIGFPE-1) | 1<<(syscall.SIGSEGV-1) | 1<<(syscall.SIGSYS-1))

// setSize is the size of the kernel's signal set, on every architecture but
// MIPS (rt_sigprocmask(2)).
const setSize = Max / 8

// timedWait is rt_sigtimedwait(2); no timeout: for ever.
func timedWait(s Set, timeout *syscall.Timespec) (syscall.Signal, syscall.Errno) {
	n, _, err := syscall.Syscall6(syscall.SYS_RT_SIGTIMEDWAIT,
		uintptr(unsafe.Pointer(&s)), 0, uintptr(unsafe.Pointer(timeout)), setSize, 0, 0)
	return syscall.Signal(n), err
}

// block blocks the set in the calling thread, beside what is blocked already.
func block(s Set) {
	const sigBlock = 0 // SIG_BLOCK, on every architecture but MIPS
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK,
		sigBlock, uintptr(unsafe.Pointer(&s)), 0, setSize, 0, 0)
}
