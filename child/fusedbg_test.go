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

func fuseServer(t *testing.T, fd int, hung chan<- uint64) {
	buf := make([]byte, 1<<17)
	le := binary.LittleEndian
	reply := func(unique uint64, e int32, body []byte) {
		out := make([]byte, 16+len(body))
		le.PutUint32(out, uint32(len(out)))
		le.PutUint32(out[4:], uint32(e))
		le.PutUint64(out[8:], unique)
		copy(out[16:], body)
		syscall.Write(fd, out)
	}
	attr := func(node uint64) []byte {
		a := make([]byte, 88)
		le.PutUint64(a, node)
		mode := uint32(syscall.S_IFREG | 0o644)
		if node == 1 { mode = syscall.S_IFDIR | 0o755 }
		le.PutUint32(a[60:], mode)
		le.PutUint32(a[64:], 1)
		return a
	}
	for {
		n, err := syscall.Read(fd, buf)
		if err != nil { if err == syscall.EINTR {continue}; return }
		op, unique, node := le.Uint32(buf[4:]), le.Uint64(buf[8:]), le.Uint64(buf[16:])
		_ = n
		switch op {
		case 26: // INIT
			b := make([]byte, 64)
			le.PutUint32(b, 7); le.PutUint32(b[4:], 31); le.PutUint32(b[20:], 4096)
			reply(unique, 0, b)
		case 1: // LOOKUP
			b := make([]byte, 40+88); le.PutUint64(b, 2); copy(b[40:], attr(2)); reply(unique, 0, b)
		case 3: // GETATTR
			b := make([]byte, 16+88); copy(b[16:], attr(node)); reply(unique, 0, b)
		case 14: // OPEN
			b := make([]byte, 16); reply(unique, 0, b)
		case 25: hung <- unique // FLUSH
		case 18, 2, 36: if op == 18 {reply(unique, 0, nil)}
		default: reply(unique, -38, nil)
		}
	}
}

func TestFuseHang(t *testing.T) {
	if !isolatedBy(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}) { return }
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil { t.Fatal(err) }
	dir := t.TempDir()
	if err := unix.Mount("x", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil { t.Fatal(err) }
	hung := make(chan uint64, 10)
	go fuseServer(t, fd, hung)
	table := newOwner(t)
	p := startOne(t, table, hookSpec("companion", "c", "exec sleep 600"))
	w := startOne(t, table, shell("(setsid python3 -c 'import os; os.open(\""+dir+"/f\", os.O_RDONLY); os.execv(\"/bin/sleep\", [\"sleep\",\"600\"])' &); exec sleep 600"))
	u := <-hung
	for range 5 {
		b := time.Now()
		n, ok := table.Remains()
		fmt.Println("remains", n, ok, time.Since(b), "stuck", len(table.marks.stuck))
	}
	b := time.Now()
	fmt.Println(table.SignalRest(w.PID, syscall.SIGKILL, false), time.Since(b))
	awaitExit(t, table, w)
	// the hung one is killed too? flush waits killably
	n, ok := table.Remains()
	fmt.Println("after kill", n, ok, reap(table).Left)
	_ = u
	table.SignalHook(p, syscall.SIGKILL)
	awaitExit(t, table, p)
	time.Sleep(100*time.Millisecond)
	fmt.Println(table.Remains()); fmt.Println("stuck", len(table.marks.stuck))
	os.Stdout.Sync()
	unix.Unmount(dir, unix.MNT_DETACH|unix.MNT_FORCE)
	syscall.Close(fd)
}
