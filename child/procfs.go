package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is what stat tells of one process.
type process struct {
	pid, parent, group, session int
	state                       byte
	start                       uint64 // when it was forked, in clock ticks since boot; 0: not known
}

// identity tells a process from all that have had its number before: the number
// is not taken again within a clock tick. It stays the same over execve(2).
type identity struct {
	pid   int
	start uint64
}

func (p process) identity() identity { return identity{p.pid, p.start} }

// procFS reads /proc (proc(5)). It is optional: without it only the known
// process groups can be reached.
type procFS struct{ reader reader[int, seen] }

// seen is what reading a process's stat came to.
type seen struct {
	process
	alive bool // and no zombie
}

// usable tells whether /proc shows the processes of our own PID namespace. One
// that was mounted for another (unshare --pid without a mount of its own)
// shows other processes under our numbers: it must not be believed.
func (*procFS) usable() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(syscall.Getpid())
}

// listing is one look at all processes.
type listing struct {
	all   []process // that can be seen, but for zombies, which are nobody's to signal
	whole bool      // none is missing; false: something took too long, and another look may show more
}

// list looks by until, the zero time being never; false: /proc can't be read.
func (f *procFS) list(until time.Time) (listing, bool) {
	pids, err := f.pids()
	if err != nil || len(f.reader.stuck) == maxStuck && f.reader.late() == 0 {
		return listing{}, false
	}
	l := listing{all: make([]process, 0, len(pids))}
	begin := func() func(int) seen { return new(statReader).read }
	missing := f.reader.each(pids, until, begin, func(_ int, s seen) {
		if s.alive {
			l.all = append(l.all, s.process)
		}
	})
	for pid := range f.reader.stuck {
		if p, alive := unseen(pid); alive {
			l.all = append(l.all, p)
		}
	}
	l.whole = missing == 0
	return l, len(f.reader.stuck) < maxStuck
}

// pids lists the numbers of processes.
func (f *procFS) pids() ([]int, error) {
	if !f.usable() {
		return nil, syscall.ENOENT
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// unseen is a process whose stat can't be read, since it hangs. What the kernel
// tells all the same are its group, its session, and whether it is our child; who
// else's it may be is not known.
func unseen(pid int) (p process, alive bool) {
	group, err := unix.Getpgid(pid)
	session, _ := unix.Getsid(pid)
	p = process{pid: pid, parent: unknownParent, group: group, session: session, state: 'D'}
	if isChild(pid) {
		p.parent = syscall.Getpid()
	}
	return p, err == nil
}

const unknownParent = -1

// statReader reads processes' stat. It belongs to one goroutine.
type statReader struct{ buf [512]byte }

func (f *statReader) read(pid int) seen {
	n, _ := readFile("/proc/"+strconv.Itoa(pid)+"/stat", f.buf[:])
	p, ok := parseStat(f.buf[:n])
	p.pid = pid
	return seen{p, ok && p.state != 'Z' && p.state != 'X'}
}

// parseStat reads the state, the parent, the group, the session and the start
// out of proc_pid_stat(5). The name of the program stands in parentheses and may
// hold anything, parentheses and blanks too, so it ends at the last one.
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
	p := process{state: fields[0][0], parent: n[0], group: n[1], session: n[2]}
	if len(fields) > 19 {
		p.start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	}
	return p, true
}

// readFile fills buf from a file and returns how many bytes it got. The error is
// that of opening it: one that has ended shows nothing.
func readFile(name string, buf []byte) (int, error) {
	b, err := readUpTo(name, buf, len(buf))
	return len(b), err
}

// readUpTo reads at most limit bytes of a file into buf, or a larger one.
func readUpTo(name string, buf []byte, limit int) ([]byte, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	total := 0
	for total < limit {
		if total == len(buf) {
			buf = append(buf, make([]byte, max(len(buf), minRead))...)
		}
		n, err := syscall.Read(fd, buf[total:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		total += n
	}
	return buf[:total], nil
}

// minRead is how much room there is at first for a file of unknown size.
const minRead = 64 << 10
