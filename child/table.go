// Package child starts, signals and reaps every process that the init has:
// the workload, the hooks, and the orphans that it adopts. It holds the
// program's only wait4(2), and no policy.
//
// One goroutine, the owner, calls the Table's methods; another, which is
// locked to its thread for life, forks (Fork), and one more where that hangs
// (GiveUp). The owner alone reaps and
// signals, so that a pid that it signals can't have been recycled: a child's
// number is taken until it has been waited for.
package child

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Proc is a process that was started here.
type Proc struct {
	PID  int
	Hook bool // it leads a session of its own, and what it leaves behind is ended with it
	Name string
	Kind string

	output     *output
	keep       bool // what it leaves behind stays its own
	supervises bool // it tells its children to stop itself
	lost       bool // its number has been another's since it was reaped
}

func (p *Proc) mark() mark { return mark{p.Name, p.Kind} }

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
	// Kept: what it left behind, if anything, is known to the table as its own
	// until Forget (Spec.Keep).
	Kept bool
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

	self      int
	procs     map[int]*Proc
	kept      []*Proc // hooks that have ended, and what they left is theirs
	pending   int     // starts that have not been answered
	ask       chan request
	started   chan Started
	stop      chan struct{}
	forker    *forker      // that takes the requests
	givenUp   int          // those before it
	hung      atomic.Int32 // and of them those that are in execve(2)
	orphans   atomic.Uint64
	proc      procFS
	marks     marks
	inherited mark
	hooks     bool           // a hook has been started
	working   bool           // something that is no hook has been asked for
	outputs   sync.WaitGroup // readers of hooks' output
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
		self:      syscall.Getpid(),
		procs:     make(map[int]*Proc),
		ask:       make(chan request, inFlight),
		started:   make(chan Started, inFlight),
		stop:      make(chan struct{}),
		forker:    new(forker),
		proc:      procFS{newReader[int, seen]()},
		marks:     newMarks(),
		inherited: inheritedMark(),
	}
}

// Start asks for a process. The answer arrives on Started, and has to be given
// to Register before the process exists for the table.
func (t *Table) Start(s Spec, tag int) {
	if t.pending++; t.pending == 1 && t.Collect != nil {
		t.Collect(false)
	}
	t.hooks, t.working = t.hooks || s.Session, t.working || !s.Session
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
		t.taken(s.Proc.PID)
		t.procs[s.Proc.PID] = s.Proc
	}
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
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // a hook that is started late may add itself
		t.outputs.Wait()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
