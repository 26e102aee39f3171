package child

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// forker is one forking thread. There is one at a time that takes requests: a
// child between fork(2) and execve(2) holds all descriptors that were open, so
// two that fork side by side hold each other's, and one that hangs would have
// the other wait (syscall.ForkExec reads a pipe to its end).
type forker struct{ state atomic.Int32 }

const (
	free      int32 = iota // it forks nothing, and may be waiting for a file system
	forking                // syscall.ForkExec: a processor is kept until execve(2) is done
	dismissed              // another one takes the requests; it will fork no more
)

// Fork serves Start until Stop is called. It locks its goroutine to its
// thread and never lets go of it: a parent-death signal is tied to the thread
// that forked (PR_SET_PDEATHSIG(2const)), so that thread has to live as long as
// the init. While execve(2) is slow, on a file system that does not answer,
// only this goroutine waits.
func (t *Table) Fork() { t.serve(t.forker) }

func (t *Table) serve(f *forker) {
	runtime.LockOSThread()
	restMask()
	for r := range t.ask {
		if s, ok := t.answer(f, r); ok {
			t.started <- s
			if t.Answered != nil {
				t.Answered()
			}
		}
		if f.state.Load() == dismissed {
			<-t.stop
			return
		}
	}
}

// maxGiveUps bounds the threads that are left behind in the init's life.
const maxGiveUps = 2

// GiveUp has another thread serve what waits behind a start that hangs. The late
// answer of that start arrives when it comes; one that had not forked yet is
// asked for again, behind the others. Call it for a start that has hung for long:
// what has just begun is better waited for.
//
// False: there is none, since a thread that hangs in execve(2) keeps a processor
// (syscall.ForkExec), and two have to be left, one for the owner and one for the
// new thread (GOMAXPROCS); or it has been done too often.
func (t *Table) GiveUp() bool {
	if t.givenUp == maxGiveUps {
		return false
	}
	if !t.forker.state.CompareAndSwap(free, dismissed) {
		if runtime.GOMAXPROCS(0)-int(t.hung.Load()+1) < 2 {
			return false
		}
		if !t.forker.state.CompareAndSwap(forking, dismissed) {
			return true // it has just come back
		}
		t.hung.Add(1)
	}
	t.givenUp++
	t.forker = new(forker)
	go t.serve(t.forker)
	return true
}

// forked is the end of a fork, however it came out.
func (t *Table) forked(f *forker) {
	if !f.state.CompareAndSwap(forking, free) {
		t.hung.Add(-1)
	}
}

// Stop ends Fork once it has served what was asked before. No Start may follow.
func (t *Table) Stop() {
	close(t.ask)
	close(t.stop)
}

// answer is start, whose faults cost the process that was to be started and not
// the init.
func (t *Table) answer(f *forker, r request) (s Started, ok bool) {
	defer func() {
		if recover() != nil {
			s, ok = Started{Err: errFault, Tag: r.tag}, true
		}
	}()
	return t.start(f, r)
}

var errFault = errors.New("internal fault")

// start runs on a forking thread; false: another one is asked.
func (t *Table) start(f *forker, r request) (Started, bool) {
	if r.spec.Check != nil {
		if err := r.spec.Check(); err != nil {
			return Started{Err: err, Tag: r.tag}, true
		}
	}
	if !f.state.CompareAndSwap(free, forking) {
		t.ask <- r
		return Started{}, false
	}
	defer t.forked(f)
	p, err := t.fork(&r.spec)
	return Started{Proc: p, Err: err, Tag: r.tag}, true
}

// fork starts the process, and the reader of its output.
func (t *Table) fork(s *Spec) (*Proc, error) {
	files := []uintptr{0, 1, 2}
	var out *output
	if s.Output != nil {
		var err error
		if out, err = openOutput(); err != nil {
			return nil, err
		}
		defer out.closeWriteEnd()
		files = out.files()
	}
	forkMask()
	limit := inheritable()
	lend(s.Inherit, limit, true)
	pid, err := run(s, inherit(files, s.Inherit, limit))
	lend(s.Inherit, limit, false)
	restMask()
	if err != nil {
		if out != nil {
			out.close()
		}
		return nil, err
	}
	if out != nil {
		t.outputs.Go(func() { out.serve(s.Output) })
	}
	return &Proc{PID: pid, Hook: s.Session, Name: s.Name, Kind: s.Kind, keep: s.Keep, supervises: s.Supervises, output: out}, nil
}

// inherit adds descriptors under their own numbers. Those between, which it is
// not to have, are close-on-exec anyway.
func inherit(files []uintptr, fds []int, limit int) []uintptr {
	const none = ^uintptr(0)
	for _, fd := range fds {
		if fd >= limit {
			continue
		}
		for len(files) <= fd {
			files = append(files, none)
		}
		files[fd] = uintptr(fd)
	}
	return files
}

// inheritable is the lowest number that ForkExec can't hand on: it uses the one
// behind the highest for itself, and the kernel makes none at or above the limit.
func inheritable() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return int(min(r.Cur, 1<<16)) - 1
}

// lend has the descriptors from limit on, which were opened before the limit was
// lowered, survive an execve(2), or not.
func lend(fds []int, limit int, survive bool) {
	for _, fd := range fds {
		flag := unix.FD_CLOEXEC
		if survive {
			flag = 0
		}
		if fd >= limit {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag)
		}
	}
}
