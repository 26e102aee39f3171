// Package self looks after the init's own process: what it must not hold on
// to, what it must not inherit from its surroundings, and what it prepares so
// that nothing which happens later can end it.
package self

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Adopt makes orphans below the init its children where it is not PID 1, which
// has that by nature (PR_SET_CHILD_SUBREAPER(2const), Linux 3.4). The error
// says that orphans will go elsewhere.
func Adopt() error {
	if os.Getpid() == 1 {
		return nil
	}
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// memoryLimit is what makes the collector run. It is off otherwise: by default
// it wakes an idle process every two minutes, and the init's heap hardly grows.
// The variables that tune the runtime (GOGC, GOMEMLIMIT, GOMAXPROCS) are meant
// for the workload, so each is overridden.
const memoryLimit = 10 << 20

// processors: two at the least. syscall.ForkExec keeps its processor until
// execve(2) is done, and a slow one must not hold up signals, even where there
// is but one CPU or GOMAXPROCS says so for the workload's sake. No more than
// two: each costs memory, and the init has nothing to do in parallel.
const processors = 2

// forHooks are two more where there are hooks: each start whose execve(2) hangs
// keeps one, and the init gives up so many before it stops starting others.
const forHooks = 2

// spareThreads are made while threads can still be had. When the workload has
// used up the process limit of its container, the runtime's attempt to start
// one more would end the init (the pids controller of cgroups(7), RLIMIT_NPROC
// of getrlimit(2)).
const spareThreads = 8

// Processors sees to the second processor before the first fork needs it, and to
// those that hooks may cost.
func Processors(hooks bool) {
	n := processors
	if hooks {
		n += forHooks
	}
	runtime.GOMAXPROCS(n)
}

// collecting is the memory limit while the collector is kept from running: far
// off, but not endless, since a start may never be answered.
const collecting = 128 << 20

// Collect lets the collector run, or keeps it from it and waits until one that
// runs has ended. syscall.ForkExec keeps its processor until execve(2) is done,
// and a collector that wants to stop the world would wait for it, with
// everything else.
func Collect(may bool) {
	if may {
		debug.SetMemoryLimit(memoryLimit)
		return
	}
	debug.SetMemoryLimit(collecting)
	debug.SetGCPercent(-1) // waits for the end of a running cycle
}

// Seal keeps the descriptors that the init was started with, from 3 on, from
// every process that is started from now on, and returns them. It is called when
// the workload, which has them, has been started, and before any hook is.
func Seal() []int {
	held := inherited()
	for _, fd := range held {
		syscall.CloseOnExec(fd)
	}
	return held
}

// Settle does all that can wait until the workload has been started: held are
// the descriptors that Seal returned. keepInput leaves standard input alone,
// which is the terminal of an interactive workload.
func Settle(held []int, keepInput bool) {
	letGo(held, keepInput)
	trim()
}

// Threads makes the spare threads, and returns when they are there. It is
// called before the workload is started, which may use up the process limit
// within a millisecond, and beside what is done until then. The runtime keeps
// idle threads for later.
func Threads() {
	var made, done sync.WaitGroup
	release := make(chan struct{})
	for range spareThreads {
		made.Add(1)
		done.Go(func() {
			// A goroutine that is locked to its thread leaves no thread for the
			// next one.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		})
	}
	made.Wait()
	close(release)
	done.Wait()
}

// letGo gives up the directory and the descriptors that the init was started
// with: it would keep a file system busy, or a socket open that the workload
// has closed.
func letGo(held []int, keepInput bool) {
	_ = os.Chdir("/")
	for _, fd := range held {
		_ = syscall.Close(fd)
	}
	null, err := syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return // an image without /dev: the streams stay as they are
	}
	if !keepInput {
		_ = syscall.Dup3(null, 0, 0)
	}
	_ = syscall.Dup3(null, 1, 0) // the log goes to standard error
	_ = syscall.Close(null)
}

// fallbackFDs is how many descriptors are looked at where /proc can't be read.
const fallbackFDs = 1024

// inherited returns the descriptors from 3 on that are not close-on-exec.
// Everything that Go itself opens is, and nothing that survived our own
// execve(2) is, so the two can be told apart.
func inherited() []int {
	var all []int
	keep := func(fd int) {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fd > 2 && err == nil && flags&unix.FD_CLOEXEC == 0 {
			all = append(all, fd)
		}
	}
	if names, err := list("/proc/self/fd"); err == nil {
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil {
				keep(fd)
			}
		}
		return all
	}
	for fd := range fallbackFDs {
		keep(fd)
	}
	return all
}

func list(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}
