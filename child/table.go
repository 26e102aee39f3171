// Package child starts, signals and reaps every process that the init has:
// the workload, the hooks, and the orphans that it adopts. It holds the
// program's only wait4(2), and no policy.
//
// One goroutine, the owner, calls the Table's methods; another, which is
// locked to its thread for life, forks (Fork). The owner alone reaps and
// signals, so that a pid that it signals can't have been recycled: a child's
// number is taken until it has been waited for.
package child

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Proc is a process that was started here.
type Proc struct {
	PID    int
	Hook   bool // it leads a session of its own, and what it leaves behind is ended with it
	Name   string
	output *output
}

// Started is the answer to a Start: Proc is nil when Err is not.
type Started struct {
	Proc *Proc
	Err  error
	Tag  int // the caller's own, as passed to Start
}

// Exit is the end of a process that was started here.
type Exit struct {
	Proc   *Proc
	Status int // as a shell counts: the exit status, or 128+n when signal n ended it
	Signal syscall.Signal
	Core   bool
}

// Reaped is what one Reap found.
type Reaped struct {
	Exits   []Exit
	Orphans int
	// Left: there are children, alive or not yet reaped. False is exact: since
	// every orphan below the init becomes its child, nothing at all is left of
	// what it started.
	Left bool
}

// Table is the registry of the processes.
type Table struct {
	// Answered is called after each answer, from the forking goroutine, so that
	// an owner that waits for something else can be woken. Set before Fork runs.
	Answered func()

	// Collect is told whether the garbage collector may run: syscall.ForkExec
	// keeps its processor until execve(2) is done, and a collector that wants to
	// stop the world waits for it, with everything else. Set before the first Start.
	Collect func(may bool)

	self    int
	procs   map[int]*Proc
	pending int // starts that have not been answered
	ask     chan request
	started chan Started
	orphans atomic.Uint64
	proc    procFS
	hooks   bool           // a hook has been started
	outputs sync.WaitGroup // readers of hooks' output
}

type request struct {
	spec Spec
	tag  int
}

// inFlight bounds the starts that are asked for and not yet answered, so that
// asking never blocks: each hook is asked for once at a time, and one whose
// execve(2) hangs has all behind it wait.
const inFlight = 4096

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{
		self:    syscall.Getpid(),
		procs:   make(map[int]*Proc),
		ask:     make(chan request, inFlight),
		started: make(chan Started, inFlight),
	}
}

// Fork serves Start until Stop is called. It locks its goroutine to its
// thread and never lets go of it: a parent-death signal is tied to the thread
// that forked (PR_SET_PDEATHSIG(2const)), so that thread has to live as long as
// the init. While execve(2) is slow, on a file system that does not answer,
// only this goroutine waits.
func (t *Table) Fork() {
	runtime.LockOSThread()
	restMask()
	for r := range t.ask {
		t.started <- t.answer(r)
		if t.Answered != nil {
			t.Answered()
		}
	}
}

// Stop ends Fork once it has served what was asked before. No Start may follow.
func (t *Table) Stop() { close(t.ask) }

// Start asks for a process. The answer arrives on Started, and has to be given
// to Register before the process exists for the table.
func (t *Table) Start(s Spec, tag int) {
	if t.pending++; t.pending == 1 && t.Collect != nil {
		t.Collect(false)
	}
	t.hooks = t.hooks || s.Session
	t.ask <- request{s, tag}
}

// Started is where the answers arrive.
func (t *Table) Started() <-chan Started { return t.started }

// Register takes in an answer. The caller reaps afterwards: the process may
// have ended before.
func (t *Table) Register(s Started) {
	if t.pending--; t.pending == 0 && t.Collect != nil {
		t.Collect(true)
	}
	if s.Proc != nil {
		t.procs[s.Proc.PID] = s.Proc
	}
}

// answer is start, whose faults cost the process that was to be started and not
// the init.
func (t *Table) answer(r request) (s Started) {
	defer func() {
		if recover() != nil {
			s = Started{Err: errFault, Tag: r.tag}
		}
	}()
	return t.start(r)
}

var errFault = errors.New("internal fault")

// start runs on the forking thread.
func (t *Table) start(r request) Started {
	if r.spec.Check != nil {
		if err := r.spec.Check(); err != nil {
			return Started{Err: err, Tag: r.tag}
		}
	}
	files := []uintptr{0, 1, 2}
	var out *output
	if r.spec.Output != nil {
		var err error
		if out, err = openOutput(); err != nil {
			return Started{Err: err, Tag: r.tag}
		}
		defer out.closeWriteEnd()
		files = out.files()
	}
	forkMask()
	pid, err := run(&r.spec, files)
	restMask()
	if err != nil {
		if out != nil {
			out.close()
		}
		return Started{Err: err, Tag: r.tag}
	}
	if out != nil {
		t.outputs.Go(func() { out.serve(r.spec.Output) })
	}
	return Started{Proc: &Proc{PID: pid, Hook: r.spec.Session, Name: r.spec.Name, output: out}, Tag: r.tag}
}

// Orphans is how many processes that were not started here have been reaped.
// Safe to call from any goroutine.
func (t *Table) Orphans() uint64 { return t.orphans.Load() }

// Drain waits until the output of hooks has been read to its end, at most
// limit.
func (t *Table) Drain(limit time.Duration) {
	if !t.hooks {
		return
	}
	done := make(chan struct{})
	go func() { t.outputs.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// Reap waits for whatever has ended, without blocking. What a hook leaves
// behind is killed while the hook is still a zombie, so that the number of its
// session can't have been taken by a stranger.
func (t *Table) Reap() Reaped {
	r := Reaped{Left: t.pending > 0}
	for pid, p := range t.procs {
		if p.Hook && !ended(pid) {
			r.Left = true
			continue
		}
		if p.Hook {
			t.killSession(p)
		}
		t.take(pid, 0, &r)
	}
	// Orphans become children of the process's first thread (the kernel's
	// find_new_reaper), which is the one that calls this; what Fork starts are
	// children of its thread. So a process that was just forked, one whose
	// execve(2) fails, which syscall.ForkExec waits for itself, and a hook that
	// ends in this moment are out of reach here (WNOTHREAD, wait(2)).
	if syscall.Gettid() == t.self {
		for t.take(-1, unix.WNOTHREAD, &r) {
		}
	} else if t.pending == 0 { // should we ever not be on it
		for t.take(-1, 0, &r) {
		}
	}
	return r
}

// take waits for one process and reports whether there may be more.
func (t *Table) take(pid, options int, r *Reaped) bool {
	var ws syscall.WaitStatus
	got, err := syscall.Wait4(pid, &ws, syscall.WNOHANG|options, nil)
	switch {
	case err == syscall.EINTR:
		return true
	case err != nil: // ECHILD: there are none
		return false
	case got == 0:
		r.Left = true
		return false
	}
	p := t.procs[got]
	if p == nil {
		t.orphans.Add(1)
		r.Orphans++
		return true
	}
	delete(t.procs, got)
	if p.output != nil {
		p.output.expire()
	}
	r.Exits = append(r.Exits, exitOf(p, ws))
	return true
}

// exitOf reads the wait status (wait(2)).
func exitOf(p *Proc, ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Proc: p, Status: 128 + int(ws.Signal()), Signal: ws.Signal(), Core: ws.CoreDump()}
	}
	return Exit{Proc: p, Status: ws.ExitStatus()}
}

// ended tells whether a child is a zombie, without reaping it.
func ended(pid int) bool { return peek(pid, unix.WEXITED) != 0 }

// Stopped tells whether a process that was started here is suspended, and by
// which signal. It needs no /proc: the state is looked at and left as it is.
func (t *Table) Stopped(p *Proc) (syscall.Signal, bool) {
	status := peek(p.PID, unix.WSTOPPED)
	return syscall.Signal(status), status != 0
}

// peek asks waitid(2) for the state of one child and takes nothing. It returns
// si_status, or a number that is not 0 when that is 0; 0: no such state.
func peek(pid, state int) int {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, state|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return 0
	}
	return max(childStatus(&info), 1)
}
