package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// mark is what a hook's processes carry in the environment that they were
// executed with. The zero value is that of everything else.
type mark struct{ name, kind string }

// The variables that make the mark.
const (
	hookVariable = "DRAINIT_HOOK="
	kindVariable = "DRAINIT_HOOK_KIND="
)

// inheritedMark is the one that the init itself has, below another one, and with
// it everything that it starts and that is no hook.
func inheritedMark() mark {
	return mark{os.Getenv(hookVariable[:len(hookVariable)-1]), os.Getenv(kindVariable[:len(kindVariable)-1])}
}

// marks remembers whose processes are. A mark is read once in the life of a
// process: one that was a hook's stays it, whatever environment it executes
// other programs with and whichever user it becomes.
type marks struct {
	reader reader[identity, reading]
	known  map[identity]mark
}

// reading is what was found out about one process.
type reading struct {
	mark   mark
	found  bool // there was an environment, and it may be remembered
	forked bool // it has the init's own command line, as between fork(2) and execve(2)
	again  bool // it may be in the midst of an execve(2)
	blank  bool // and if it is not, it has no environment
}

func newMarks() marks {
	return marks{reader: newReader[identity, reading](), known: map[identity]mark{}}
}

// note remembers whose a process is.
func (m *marks) note(id identity, is mark) {
	if id.start != 0 {
		m.known[id] = is
	}
}

// startOf returns the start of the process of that number that is remembered; 0:
// none is.
func (m *marks) startOf(pid int) uint64 {
	for id := range m.known {
		if id.pid == pid {
			return id.start
		}
	}
	return 0
}

// forget drops what is remembered of processes that are no more.
func (m *marks) forget(gone func(identity) bool) {
	for id := range m.known {
		if gone(id) {
			delete(m.known, id)
		}
	}
}

// learn reads the marks of processes by until. It returns those that may have
// been forked just now, and how many answers are missing. starting: a start is
// under way, so there may be such.
func (m *marks) learn(ids []identity, starting bool, until time.Time) (forked map[int]bool, missing int) {
	forked = map[int]bool{}
	begin := func() func(identity) reading {
		var f environment
		return func(id identity) reading { return f.read(id, starting) }
	}
	blank := make(map[identity]int)
	for range execTries {
		var again []identity
		missing += m.reader.each(ids, until, begin, func(id identity, r reading) {
			if r.blank {
				blank[id]++
			}
			switch {
			case r.found || blank[id] == blankTries:
				m.note(id, r.mark)
			case r.again:
				again = append(again, id)
			}
			if r.forked {
				forked[id.pid] = true
			}
		})
		if ids = again; len(ids) == 0 || passed(until) {
			break
		}
		time.Sleep(execPause) // once for all of them
	}
	return forked, missing
}

// environment reads processes' environments. It belongs to one goroutine.
type environment struct {
	buf  []byte
	stat statReader
}

// maxEnviron is more than an environment can have: the kernel lets arguments and
// environment have 6 MiB together (execve(2)). The mark stands at the end of it.
const maxEnviron = 8 << 20

// In the midst of an execve(2) a process shows no arguments, and a little longer
// no environment. That is over soon, or the process hangs in it. One that shows
// arguments and no environment each time has none.
const (
	execTries  = 20
	execPause  = time.Millisecond
	blankTries = 3
)

// read looks at one process. An environment that is empty, or may not be read,
// has no mark.
func (f *environment) read(id identity, starting bool) reading {
	var r reading
	if r.forked = starting && sameProgram(id.pid); r.forked {
		return r
	}
	env, err := f.environ(id.pid)
	if len(env) > 0 || err == syscall.EACCES {
		r.mark, r.found = markIn(env), true
		return r
	}
	p := f.stat.read(id.pid)
	r.again = p.alive && p.start == id.start
	r.blank = r.again && err == nil && commandLine(id.pid)
	return r
}

// environ reads proc_pid_environ(5).
func (f *environment) environ(pid int) ([]byte, error) {
	env, err := readUpTo("/proc/"+strconv.Itoa(pid)+"/environ", f.buf, maxEnviron)
	f.buf = env[:cap(env)]
	return env, err
}

// commandLine tells whether a process shows its arguments (proc_pid_cmdline(5)).
func commandLine(pid int) bool {
	var head [1]byte
	n, _ := readFile("/proc/"+strconv.Itoa(pid)+"/cmdline", head[:])
	return n > 0
}

// markIn finds the mark in an environment.
func markIn(environ []byte) mark {
	return mark{name: valueOf(environ, hookVariable), kind: valueOf(environ, kindVariable)}
}

// valueOf returns what stands behind the first entry that begins with a prefix.
func valueOf(environ []byte, prefix string) string {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(prefix)); ok {
			return string(value)
		}
	}
	return ""
}

// sameProgram tells whether a process still has the init's own command line, as
// a child has between fork(2) and execve(2).
func sameProgram(pid int) bool {
	var theirs, own [512]byte
	n, _ := readFile("/proc/"+strconv.Itoa(pid)+"/cmdline", theirs[:])
	m, _ := readFile("/proc/self/cmdline", own[:])
	return n > 0 && bytes.Equal(theirs[:n], own[:m])
}
