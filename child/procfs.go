package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// procFS reads /proc (proc(5)). It is optional: without it only the known
// process groups can be reached.
type procFS struct {
	stat [512]byte
	env  []byte
}

// process is what stat tells of one process.
type process struct {
	pid, parent, group, session int
	state                       byte
}

// usable tells whether /proc shows the processes of our own PID namespace. One
// that was mounted for another (unshare --pid without a mount of its own)
// shows other processes under our numbers: it must not be believed.
func (procFS) usable() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(syscall.Getpid())
}

// list returns all processes that can be seen but the zombies, which are
// nobody's to signal. Those that end meanwhile are left out, and so is what has
// not been read when the limit is over; 0: there is none.
func (f *procFS) list(limit time.Duration) ([]process, bool) {
	began := time.Now()
	if !f.usable() {
		return nil, false
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, false
	}
	all := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := f.read(pid); ok {
			all = append(all, p)
		}
		if limit > 0 && time.Since(began) > limit {
			break
		}
	}
	return all, true
}

// read returns one process; false when it has ended or is a zombie.
func (f *procFS) read(pid int) (process, bool) {
	n := readFile("/proc/"+strconv.Itoa(pid)+"/stat", f.stat[:])
	p, ok := parseStat(f.stat[:n])
	p.pid = pid
	return p, ok && p.state != 'Z' && p.state != 'X'
}

// parseStat reads the state, the parent, the group and the session out of
// proc_pid_stat(5). The name of the program stands in parentheses and may hold
// anything, parentheses and blanks too, so it ends at the last one.
func parseStat(line []byte) (process, bool) {
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return process{}, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 4 || len(fields[0]) != 1 {
		return process{}, false
	}
	if fields[0][0] == 'Z' && len(fields) > 17 && string(fields[17]) != "1" && string(fields[17]) != "0" {
		fields[0] = []byte{'S'} // its first thread has ended, others have not
	}
	var n [3]int
	for i := range n {
		v, err := strconv.Atoi(string(fields[i+1]))
		if err != nil {
			return process{}, false
		}
		n[i] = v
	}
	return process{state: fields[0][0], parent: n[0], group: n[1], session: n[2]}, true
}

// How much room there is for a process's environment at first, and at most: the
// kernel lets arguments and environment have 6 MiB together (execve(2)). The
// mark stands at the end of it.
const (
	minEnviron = 64 << 10
	maxEnviron = 8 << 20
)

// hook returns the value of DRAINIT_HOOK in the environment that a process was
// executed with; empty where there is none or it may not be read.
func (f *procFS) hook(pid int) string {
	name := "/proc/" + strconv.Itoa(pid) + "/environ"
	n := readFile(name, f.env)
	for n == len(f.env) && n < maxEnviron {
		f.env = make([]byte, max(2*n, minEnviron))
		n = readFile(name, f.env)
	}
	for entry := range bytes.SplitSeq(f.env[:n], []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(hookVariable)); ok {
			return string(value)
		}
	}
	return ""
}

// sameProgram tells whether a process still has the init's own command line, as
// a child has between fork(2) and execve(2).
func (f *procFS) sameProgram(pid int) bool {
	var theirs, own [512]byte
	n := readFile("/proc/"+strconv.Itoa(pid)+"/cmdline", theirs[:])
	m := readFile("/proc/self/cmdline", own[:])
	return n > 0 && bytes.Equal(theirs[:n], own[:m])
}

// hookVariable is what every hook has in its environment.
const hookVariable = "DRAINIT_HOOK="

// readFile fills buf from a file and returns how many bytes it got.
func readFile(name string, buf []byte) int {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer syscall.Close(fd)
	total := 0
	for total < len(buf) {
		n, err := syscall.Read(fd, buf[total:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		total += n
	}
	return total
}
