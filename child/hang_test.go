package child

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hangInExec plays a process that hangs in the midst of an execve(2): the kernel
// closes what is close-on-exec, and with it a file of a file system that does not
// answer. What reads its memory map, or its stat, hangs with it.
func hangInExec() {
	if _, err := os.Open(os.Getenv("CHILD_FILE")); err != nil {
		os.Exit(1)
	}
	_ = syscall.Exec("/bin/sleep", []string{"sleep", "600"}, nil)
	os.Exit(1)
}

// Requests of fuse(4), as in linux/fuse.h.
const (
	fuseLookup  = 1
	fuseGetattr = 3
	fuseOpen    = 14
	fuseFlush   = 25
	fuseInit    = 26
)

// deaf serves a file system with one file, whose closing is never answered.
func deaf(fd int, closing chan<- struct{}) {
	buf := make([]byte, 128<<10)
	for {
		if n, err := syscall.Read(fd, buf); err == syscall.EINTR {
			continue
		} else if err != nil || n < 40 {
			return
		}
		var body []byte
		code := -int32(syscall.ENOSYS)
		switch binary.NativeEndian.Uint32(buf[4:]) {
		case fuseInit:
			body = make([]byte, 64)
			binary.NativeEndian.PutUint32(body, 7)      // major
			binary.NativeEndian.PutUint32(body[4:], 31) // minor
		case fuseLookup:
			body = append(make([]byte, 40), attributes(2, syscall.S_IFREG)...)
			binary.NativeEndian.PutUint64(body, 2)
		case fuseGetattr:
			body = append(make([]byte, 16), attributes(1, syscall.S_IFDIR)...)
		case fuseOpen:
			body = make([]byte, 16)
		case fuseFlush:
			closing <- struct{}{}
			continue
		}
		if body != nil {
			code = 0
		}
		head := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		head = binary.NativeEndian.AppendUint32(head, uint32(code))
		_, _ = syscall.Write(fd, append(append(head, buf[8:16]...), body...))
	}
}

func attributes(node uint64, kind uint32) []byte {
	b := make([]byte, 88)
	binary.NativeEndian.PutUint64(b, node)
	binary.NativeEndian.PutUint32(b[60:], kind|0o755)
	binary.NativeEndian.PutUint32(b[64:], 1) // links
	return b
}

// TestProcessThatHangs: one that hangs, and whose stat hangs with it, holds up the
// first look a little and the next ones not at all. It is the workload's, and is
// killed with it.
func TestProcessThatHangs(t *testing.T) {
	needRoot(t)
	// What hangs must not be seen by other tests.
	if !isolatedBy(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}) {
		return
	}
	for _, err := range []error{
		unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, closing := t.TempDir(), make(chan struct{}, 10)
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("deaf", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if err != nil {
		t.Skip("the kernel has no FUSE for us: " + err.Error()) // which no package brings
	}
	go deaf(fd, closing)
	table := newOwner(t)
	companion := startOne(t, table, hookSpec("companion", "c", "setsid sleep 601 & exec sleep 602"))
	s := shell("(setsid " + os.Args[0] + " &) ; exec sleep 600")
	s.Env = append(s.Env, "CHILD_ACT=hang", "CHILD_FILE="+dir+"/file")
	workload := startOne(t, table, s)
	<-closing
	for i, limit := range []time.Duration{3 * readPatience, readPatience, readPatience} {
		began := time.Now()
		if n, known := table.Remains(); n != 2 || !known {
			t.Errorf("%d remain, %v", n, known)
		}
		if took := time.Since(began); took > limit {
			t.Errorf("look %d took %v", i, took)
		}
	}
	if r := table.SignalRest(workload.PID, syscall.SIGKILL, false); r.Count != 2 || !r.Known {
		t.Errorf("%+v", r)
	}
	awaitExit(t, table, workload)
	table.SignalHook(companion, syscall.SIGKILL)
	awaitExit(t, table, companion)
	_ = unix.Unmount(dir, unix.MNT_DETACH|unix.MNT_FORCE) // which ends all waiting
	eventually(t, "nothing left", func() bool { return !reap(table).Left })
	eventually(t, "the late answers", func() bool {
		n, known := table.Remains()
		return n == 0 && known && len(table.proc.reader.stuck)+len(table.marks.reader.stuck) == 0
	})
}
