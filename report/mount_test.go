package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mounting runs the calling test again in a process with a mount namespace of
// its own, and reports whether this is that process.
func mounting(t *testing.T) bool {
	t.Helper()
	const variable = "REPORT_MOUNTING"
	if os.Getenv(variable) == t.Name() {
		must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	if os.Geteuid() != 0 {
		skip(t, "needs root")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		skip(t, "no mount namespace to be had")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// skip leaves a test out where the machine can't run it; where DRAINIT_CI is
// set that is a failure.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatal("may not be skipped with DRAINIT_CI set: " + why)
	}
	t.Skip(why)
}

// TestNoSpace: what does not fit leaves nothing behind, an old content neither.
func TestNoSpace(t *testing.T) {
	if !mounting(t) {
		return
	}
	dir := t.TempDir()
	must(t, unix.Mount("none", dir, "tmpfs", 0, "size=64k"))
	defer func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	path := filepath.Join(dir, "report")
	put(t, path, "")
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 128<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := Open(path).Write([]byte(text), patience); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	holds(t, path, "")
	if err := Open(filepath.Join(dir, "new")).Write([]byte(text), patience); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}

	// A part of it fits: two pages are wanted, one is there.
	must(t, os.Truncate(filepath.Join(dir, "filler"), 60<<10-int64(os.Getpagesize())*2))
	must(t, os.WriteFile(filepath.Join(dir, "filler 2"), make([]byte, os.Getpagesize()*2), 0o600))
	long := make([]byte, os.Getpagesize()*3)
	if err := Open(path).Write(long, patience); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	holds(t, path, "")
	must(t, Open(path).Write([]byte(text), patience))
	holds(t, path, text)
}

func TestReadOnly(t *testing.T) {
	if !mounting(t) {
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	put(t, path, "old")
	must(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	defer func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	for _, p := range []string{path, path + "2"} {
		if err := Open(p).Write([]byte(text), patience); !errors.Is(err, syscall.EROFS) {
			t.Error(err)
		}
	}
	holds(t, path, "old")
}

// TestMountedFile is written in place, as /dev/termination-log is, which can
// neither be renamed over nor removed.
func TestMountedFile(t *testing.T) {
	if !mounting(t) {
		return
	}
	dir := t.TempDir()
	path, source := filepath.Join(dir, "termination-log"), filepath.Join(dir, "source")
	put(t, path, "")
	put(t, source, "old")
	must(t, unix.Mount(source, path, "", unix.MS_BIND, ""))
	defer func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) }()
	must(t, Open(path).Write([]byte(text), patience))
	holds(t, source, text)
}

// TestDenied: a user who may not write gets an error, and nothing else happens.
func TestDenied(t *testing.T) {
	if !mounting(t) {
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	put(t, path, "old")
	for d := dir; d != "/" && d != "/tmp"; d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	must(t, syscall.Setresuid(-1, 65534, -1)) // of the whole process, which is this test's own
	defer func() { must(t, syscall.Setresuid(-1, 0, -1)) }()
	for _, p := range []string{path, path + "2"} {
		if err := Open(p).Write([]byte(text), patience); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	}
	holds(t, path, "old")
}

// TestDeadFileSystem: one that answers nothing costs Open its own limit, and
// Write the caller's.
func TestDeadFileSystem(t *testing.T) {
	if !mounting(t) {
		return
	}
	dir := t.TempDir()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("the kernel has no FUSE for us: " + err.Error()) // which no package brings
	}
	// The kernel's first question is never read, so everything waits.
	must(t, unix.Mount("none", dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)))
	defer func() {
		must(t, unix.Unmount(dir, unix.MNT_DETACH))
		must(t, unix.Close(fd)) // which ends what waits
	}()
	from := time.Now()
	f := Open(filepath.Join(dir, "report"))
	if took := time.Since(from); f.Existed() || took < lookMax || took > patience {
		t.Errorf("%+v after %v", f, took)
	}
	if err := f.Write([]byte(text), 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// TestOpenThatHangs: the file system has died in between.
func TestOpenThatHangs(t *testing.T) {
	if !mounting(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "report")
	put(t, path, "old")
	f := Open(path)
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err == nil {
		err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM, unix.AT_FDCWD, path)
	}
	if err != nil {
		t.Skip("the kernel has no fanotify for us: " + err.Error())
	}
	before := runtime.NumGoroutine()
	if err := f.Write([]byte(text), 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	must(t, unix.Close(fd)) // everybody who waits for leave to open has it
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it hangs on")
		}
	}
	holds(t, path, "old") // what comes too late is not written
}
