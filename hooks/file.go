package hooks

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// headSize bounds what is read of a file to find its directives.
const headSize = 64 << 10

// file is a directory's file behind its links.
type file struct {
	path string
	stat unix.Stat_t
	head []byte // up to headSize+1 bytes; nil before read, and where it may not be read
}

// look follows links, as executing the file would.
func look(path string) (*file, error) {
	f := &file{path: path}
	if err := retry(func() error { return unix.Stat(path, &f.stat) }); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *file) regular() bool { return f.stat.Mode&unix.S_IFMT == unix.S_IFREG }

// executable reports any x bit: somebody meant the file to be run, be it by us
// or not.
func (f *file) executable() bool { return f.stat.Mode&0o111 != 0 }

// runnable is the kernel's own word (faccessat(2) with AT_EACCESS): mode, access
// lists, capabilities and noexec mounts for the effective user. Root needs one x
// bit.
func (f *file) runnable() bool {
	return retry(func() error { return unix.Faccessat(unix.AT_FDCWD, f.path, unix.X_OK, unix.AT_EACCESS) }) == nil
}

// notRunnable tells a missing x bit, which chmod mends, from a mode, an owner or
// a mount that keeps this user out.
func (f *file) notRunnable() Problem {
	mode := f.stat.Mode & 0o7777
	if !f.executable() {
		return Problem{f.path, fmt.Sprintf("not executable (mode %04o)", mode),
			"chmod +x it (a ConfigMap or Secret: defaultMode 0555), or rename it if it is no hook"}
	}
	return Problem{f.path, fmt.Sprintf("not executable by uid %d (mode %04o, owner %d:%d)", unix.Geteuid(), mode, f.stat.Uid, f.stat.Gid),
		"give this user the x bit, and mount the directory without noexec"}
}

// program reports a file that the kernel would take for a program by its first
// bytes, x bit or not.
func (f *file) program() bool { return bytes.HasPrefix(f.head, []byte("#!")) || isELF(f.head) }

func isELF(head []byte) bool { return bytes.HasPrefix(head, []byte("\x7fELF")) }

// read fills head. A file that this user may not read stays without: mode 0111
// is a legal hook that declares nothing. Only a regular file is ever opened:
// opening a FIFO waits for a peer and opening a device can act on it. O_NONBLOCK
// and the second stat are for the name that changes hands in between.
func (f *file) read() error {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(f.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &f.stat); err != nil {
		return err
	}
	if !f.regular() {
		return errors.New("changed while it was read")
	}
	return f.readFrom(fd)
}

func (f *file) readFrom(fd int) error {
	// Sized by the file, so that a directory of small scripts costs little; the
	// byte more tells that a file goes on.
	head := make([]byte, min(max(f.stat.Size, 0), headSize)+1)
	n := 0
	for n < len(head) {
		var m int
		err := retry(func() (err error) { m, err = unix.Read(fd, head[n:]); return err })
		if err != nil {
			return err
		}
		if m == 0 {
			break
		}
		n += m
	}
	f.head = head[:n]
	return nil
}

// retry runs a call again that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
