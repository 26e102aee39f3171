package child

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Reap waits for whatever has ended, without blocking. What a hook leaves
// behind is killed while the hook is still a zombie, so that the number of its
// session can't have been taken by a stranger.
func (t *Table) Reap() Reaped {
	r := Reaped{Left: t.pending > 0}
	for _, pid := range t.settled(&r) {
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

// settled does what has to be done about hooks that are zombies, and returns what
// may be waited for: those, and what is no hook.
func (t *Table) settled(r *Reaped) []int {
	var all []int
	var ended, kept []*Proc
	for pid, p := range t.procs {
		if p.Hook {
			code, status, over := peek(p.PID, unix.WEXITED)
			if !over {
				r.Left = true
				continue
			}
			if p.keep = p.keep && code == exited && status == 0; p.keep {
				kept = append(kept, p)
			} else {
				ended = append(ended, p)
			}
		}
		all = append(all, pid)
	}
	if len(ended) > 0 {
		t.killSessions(ended)
	}
	if len(kept) > 0 {
		t.census(kept)
	}
	return all
}

// exited is si_code of a process that ended by itself (CLD_EXITED, sigaction(2)).
const exited = 1

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
	t.taken(got)
	p := t.procs[got]
	if p == nil {
		t.orphans.Add(1)
		r.Orphans++
		return true
	}
	delete(t.procs, got)
	if p.keep {
		t.kept = append(t.kept, p)
	} else {
		p.endOutput()
	}
	r.Exits = append(r.Exits, exitOf(p, ws))
	return true
}

// endOutput has the rest of a hook's output read, and no more.
func (p *Proc) endOutput() {
	if p.output != nil {
		p.output.expire()
	}
}

// exitOf reads the wait status (wait(2)).
func exitOf(p *Proc, ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Proc: p, Status: 128 + int(ws.Signal()), Signal: ws.Signal(), Core: ws.CoreDump(), Kept: p.keep}
	}
	return Exit{Proc: p, Status: ws.ExitStatus(), Kept: p.keep}
}

// Stopped tells whether a process that was started here is suspended, and by
// which signal. It needs no /proc: the state is looked at and left as it is.
func (t *Table) Stopped(p *Proc) (syscall.Signal, bool) {
	_, status, stopped := peek(p.PID, unix.WSTOPPED)
	return syscall.Signal(status), stopped
}

// isChild tells whether a process is our child.
func isChild(pid int) bool {
	return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil
}

// peek asks waitid(2) for the state of one child and takes nothing. It returns
// si_code and si_status; false: it is in no such state.
func peek(pid, state int) (code, status int, ok bool) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, state|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || info.Signo == 0 {
		return 0, 0, false
	}
	return int(info.Code), childStatus(&info), true
}
