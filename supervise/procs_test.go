package supervise

import (
	"fmt"
	"syscall"
	"time"

	"drainit/child"
	"drainit/hooks"
)

// behaviour is what a fake process does. never: it doesn't.
type behaviour struct {
	answer  time.Duration // how long its start takes
	slow    time.Duration // how long it has run by the time that the init hears of it
	refused error         // it can't be started
	changed error         // its file has turned bad since the start
	self    time.Duration // it exits by itself so long after it started
	onStop  time.Duration // and so long after it was told to stop
	onKill  time.Duration // and so long after KILL
	status  int           // with this
	leaves  []behaviour   // descendants that are there when it exits
	stopped syscall.Signal
}

// quiet runs until it is told to stop, and obeys.
func quiet() behaviour { return behaviour{self: never, status: 143} }

// fakeProc is a process of the fake world.
type fakeProc struct {
	behaviour
	proc   *child.Proc // nil: a descendant, which nobody started here
	hook   int         // the phase that it runs; -1: it is the workload's
	alive  bool
	zombie bool // it has ended and was not reaped

	registered bool
	dying      bool
	signal     syscall.Signal // that ended it
	toldAt     time.Time
	killedAt   time.Time
	got        []syscall.Signal
}

// Start asks for a process.
func (f *fake) Start(s child.Spec, tag int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending++
	f.specs[tag] = s
	if s.Check != nil { // asked by the goroutine that forks, not by the loop
		if err := s.Check(); err != nil {
			f.answers <- child.Started{Err: err, Tag: tag}
			f.wake()
			return
		}
	}
	f.events = append(f.events, fmt.Sprintf("%v start %d", f.since(), tag))
	b := f.behaviour(tag)
	if b.answer == never {
		return
	}
	time.AfterFunc(b.answer, func() { f.answered(b, tag) })
}

// behaviour is what a tag's process does.
func (f *fake) behaviour(t int) behaviour {
	if t == workloadTag {
		return f.workload
	}
	i, stop := t&(1<<23-1)-1, t&(1<<23) != 0
	switch {
	case hooks.Kind(t>>24) == hooks.Companion:
		return f.beside[i]
	case hooks.Kind(t>>24) == hooks.Phase:
		return f.phases[i]
	case !stop:
		return f.steps[i]
	case i < len(f.undo):
		return f.undo[i]
	}
	return behaviour{}
}

// Left counts what steps left behind.
func (f *fake) Left(all []*child.Proc) ([]int, bool) {
	var counts []int
	for _, p := range all {
		counts = append(counts, f.leftOf(p, func(*fakeProc) {}))
	}
	return counts, !f.noProc
}

// SignalLeft signals it.
func (f *fake) SignalLeft(all []*child.Proc, sig syscall.Signal) int {
	n := 0
	for _, p := range all {
		n += f.leftOf(p, func(q *fakeProc) { f.deliver(q, sig) })
	}
	f.note("%v to %d left", sig, n)
	return n
}

func (f *fake) leftOf(p *child.Proc, do func(*fakeProc)) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, q := range f.all {
		if q.alive && q.proc == nil && q.hook == f.known[p].hook {
			n++
			do(q)
		}
	}
	return n
}

// Forget lets go of it.
func (f *fake) Forget(p *child.Proc) { f.note("forget %d", p.PID-100) }

func (f *fake) answered(b behaviour, tag int) {
	if b.refused != nil {
		f.answers <- child.Started{Err: b.refused, Tag: tag}
		f.wake()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	p := f.spawn(b, tag-1)
	p.proc = &child.Proc{PID: 100 + tag, Hook: tag != workloadTag}
	f.known[p.proc] = p
	time.AfterFunc(b.slow, func() {
		f.answers <- child.Started{Proc: p.proc, Tag: tag}
		f.wake()
	})
}

// spawn adds a process that runs.
func (f *fake) spawn(b behaviour, hook int) *fakeProc {
	p := &fakeProc{behaviour: b, hook: hook, alive: true}
	f.all = append(f.all, p)
	f.endAfter(p, b.self, 0)
	return p
}

// endAfter ends a process after a while, by a signal or by itself.
func (f *fake) endAfter(p *fakeProc, d time.Duration, sig syscall.Signal) {
	if d == never {
		return
	}
	time.AfterFunc(d, func() { f.end(p, sig) })
}

func (f *fake) end(p *fakeProc, sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !p.alive || f.over {
		return
	}
	p.alive, p.zombie, p.signal = false, true, sig
	for _, b := range p.leaves {
		f.spawn(b, p.hook)
	}
	time.AfterFunc(f.chldLate, func() {
		select {
		case f.children <- syscall.SIGCHLD:
		default: // it coalesces
		}
	})
}

// Started is where the answers arrive.
func (f *fake) Started() <-chan child.Started { return f.answers }

// Register takes in an answer: only now the process has a number to reap.
func (f *fake) Register(s child.Started) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending--
	if p := f.known[s.Proc]; p != nil {
		p.registered = true
	}
}

// tooMany is more than any run in these tests has reason for.
const tooMany = 200_000

// Reap returns what has ended.
func (f *fake) Reap() child.Reaped {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reaps++; f.reaps > tooMany {
		panic(f.name + ": the loop spins")
	}
	var r child.Reaped
	for _, p := range f.all {
		switch {
		case p.alive:
			r.Left = true
		case p.zombie && p.registered:
			p.zombie = false
			r.Exits = append(r.Exits, p.exit())
		case p.zombie && p.proc == nil && f.pending == 0:
			p.zombie = false
			r.Orphans++
		}
	}
	r.Left = r.Left || f.pending > 0
	return r
}

func (p *fakeProc) exit() child.Exit {
	if p.signal != 0 {
		return child.Exit{Proc: p.proc, Status: 128 + int(p.signal), Signal: p.signal}
	}
	kept := p.status == 0 && p.hook>>24 == int(hooks.Step) && p.hook&(1<<23) == 0
	return child.Exit{Proc: p.proc, Status: p.status, Kept: kept}
}

// Signal sends a signal to the workload.
func (f *fake) Signal(p *child.Proc, sig syscall.Signal, group bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	target := f.known[p]
	to := "workload"
	if group {
		to = "group"
	}
	f.events = append(f.events, fmt.Sprintf("%v %v to %s", f.since(), sig, to))
	switch {
	case !target.alive && !target.zombie:
		return syscall.ESRCH
	case f.denied != 0:
		return f.denied
	}
	f.deliver(target, sig)
	return nil
}

// stops are the signals that tell the fakes to stop.
var stops = map[syscall.Signal]bool{syscall.SIGTERM: true, syscall.SIGINT: true, syscall.SIGQUIT: true}

func (f *fake) deliver(p *fakeProc, sig syscall.Signal) {
	p.got = append(p.got, sig)
	switch {
	case !p.alive:
	case sig == syscall.SIGKILL:
		if p.killedAt.IsZero() {
			p.killedAt = time.Now()
			f.endAfter(p, p.onKill, sig)
		}
	case sig == syscall.SIGCONT:
		p.stopped = 0
		if p.dying {
			f.endAfter(p, p.onStop, 0)
		}
	case stops[sig]:
		if p.toldAt.IsZero() {
			p.toldAt = time.Now()
		}
		if p.dying = true; p.stopped == 0 {
			f.endAfter(p, p.onStop, 0)
		}
	}
}

// SignalHooks does so to several hooks.
func (f *fake) SignalHooks(all []*child.Proc, sig syscall.Signal) {
	f.looks++
	time.Sleep(f.slowly)
	for _, p := range all {
		f.SignalHook(p, sig)
	}
}

// SignalHook sends a signal to a phase.
func (f *fake) SignalHook(p *child.Proc, sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	target := f.known[p]
	f.events = append(f.events, fmt.Sprintf("%v %v to phase %d", f.since(), sig, target.hook+1))
	f.deliver(target, sig)
}

// SignalRest sends a signal to all that is the workload's.
func (f *fake) SignalRest(_ int, sig syscall.Signal, resume bool) child.Rest {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := child.Rest{Known: !f.noProc}
	for _, p := range f.all {
		if p.hook >= 0 || !p.alive {
			continue
		}
		if f.denied != 0 {
			r.Denied++
			continue
		}
		r.Count++
		f.deliver(p, sig)
		if resume && p.stopped != 0 {
			f.deliver(p, syscall.SIGCONT)
		}
	}
	f.events = append(f.events, fmt.Sprintf("%v %v to the rest", f.since(), sig))
	return r
}

// Remains counts what is the workload's.
func (f *fake) Remains() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, p := range f.all {
		if p.hook < 0 && p.alive {
			n++
		}
	}
	return n, !f.noProc
}

// Stopped tells whether the workload is suspended.
func (f *fake) Stopped(p *child.Proc) (syscall.Signal, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	target := f.known[p]
	return target.stopped, target.alive && target.stopped != 0
}

// Hooks tells whether a phase runs, as far as the table knows.
func (f *fake) Hooks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.all {
		if p.hook >= 0 && (p.alive || p.zombie) {
			return true
		}
	}
	return false
}

// GiveUp lets what waits behind a start that hangs go on; here nothing waits.
func (f *fake) GiveUp() bool {
	f.note("give up")
	return true
}

// KillAll is PID 1's last resort.
func (f *fake) KillAll() { f.killAll++ }
