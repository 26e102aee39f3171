package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// ErrTaken is what Write returns where the workload has written something
// itself: its own word for how it ended is worth more than ours.
var ErrTaken = errors.New("the workload has written to it")

var (
	errOther = errors.New("it is another file than at the start")
	errKind  = errors.New("a report goes to a regular file, a named pipe or a character device")
	errFault = errors.New("internal fault")
)

// File is where the report goes. nil is nowhere.
type File struct {
	path string
	link bool        // the path is a symbolic link
	was  fs.FileInfo // what it leads to; nil: nothing, as far as is known
}

// lookMax is how long Open waits for the file system.
const lookMax = 100 * time.Millisecond

// Open remembers what is at an absolute path, so that Write can tell later what
// the workload has done to it. It opens and creates nothing. Where the file
// system does not answer soon, the file counts as one that was not there. An
// empty path: nil.
func Open(path string) *File {
	if path == "" {
		return nil
	}
	found := make(chan *File, 1)
	go func() {
		defer func() { _ = recover() }() // as if there were no answer
		found <- look(path)
	}()
	select {
	case f := <-found:
		return f
	case <-time.After(lookMax):
		return &File{path: path}
	}
}

func look(path string) *File {
	f := &File{path: path}
	if info, err := os.Lstat(path); err == nil {
		f.link = info.Mode().Type() == fs.ModeSymlink
	}
	if info, err := os.Stat(path); err == nil {
		f.was = info
	}
	return f
}

// Existed tells whether the file was there when it was opened. A nil File was not.
func (f *File) Existed() bool { return f != nil && f.was != nil }

// Write makes line the file's content. What was there before the start, and has
// not changed since, is replaced; the file keeps its inode, since
// /dev/termination-log is a mount of one. A file that is not there is created,
// mode 0644. A named pipe or a device gets the line behind what it has got.
//
// ErrTaken: the workload has written there. os.ErrDeadlineExceeded: the file
// system, or the reader of a pipe, is not done within limit; what hangs is left
// behind, so line must not change any more. Any other error is the system's own,
// or says that the file is not the one of the start. With none of them has
// anything of the workload's been touched; a regular file of the init's own is
// empty where there was no space for all of the line. A nil File takes everything.
func (f *File) Write(line []byte, limit time.Duration) error {
	if f == nil {
		return nil
	}
	until := time.Now().Add(limit)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	done := make(chan error, 1)
	go func() {
		err := errFault
		defer func() { _ = recover(); done <- err }()
		err = f.put(line, until)
	}()
	var err error
	select {
	case err = <-done:
	case <-timer.C:
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", f.path, plain(err))
	}
	return nil
}

// plain is the error without the path, which the caller names.
func plain(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// flags: a pipe that nobody reads is an error and no wait (fifo(7)), and no
// terminal becomes ours.
const flags = os.O_WRONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// late: the file system took so long that nobody waits any more.
func late(until time.Time) bool { return !time.Now().Before(until) }

// put opens what is there, or creates it where nothing is, and writes.
func (f *File) put(line []byte, until time.Time) error {
	info, err := f.stat()
	switch {
	case late(until):
		return os.ErrDeadlineExceeded
	case errors.Is(err, fs.ErrNotExist):
		return f.create(line, until)
	}
	// What is there is looked at before, since merely opening a stranger's device
	// may do something; and by fill, since it may be another one by then.
	if err == nil {
		err = f.mayWrite(info)
	}
	if err != nil {
		return err
	}
	file, err := f.open()
	if err != nil {
		return err
	}
	return closed(file, f.fill(file, line, until))
}

// fill writes to what was opened, if that is the file of the start.
func (f *File) fill(file *os.File, line []byte, until time.Time) error {
	info, err := file.Stat()
	if err == nil {
		err = f.mayWrite(info)
	}
	if err != nil {
		return err
	}
	return write(file, info.Mode(), line, until)
}

// create writes a file that is nobody else's.
func (f *File) create(line []byte, until time.Time) error {
	file, err := os.OpenFile(f.path, flags|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return closed(file, write(file, 0, line, until))
}

// closed closes the file; some file systems say only then that there was no space.
func closed(file *os.File, err error) error {
	if e := file.Close(); err == nil {
		return e
	}
	return err
}

func (f *File) open() (*os.File, error) {
	if f.follow() {
		return os.OpenFile(f.path, flags, 0)
	}
	return os.OpenFile(f.path, flags|syscall.O_NOFOLLOW, 0)
}

// follow: a link that led somewhere at the start was the operator's. Any other
// may be the workload's, and lead to a file that the workload may not write.
func (f *File) follow() bool { return f.link && f.was != nil }

func (f *File) stat() (fs.FileInfo, error) {
	if f.follow() {
		return os.Stat(f.path)
	}
	return os.Lstat(f.path)
}

// mayWrite holds what is there now against what was there at the start.
func (f *File) mayWrite(now fs.FileInfo) error {
	same := f.was != nil && os.SameFile(f.was, now) && f.was.Mode().Type() == now.Mode().Type()
	switch {
	case now.Mode().IsRegular():
		unchanged := same && now.Size() == f.was.Size() && now.ModTime().Equal(f.was.ModTime())
		if now.Size() > 0 && !unchanged {
			return ErrTaken
		}
		if f.was != nil && !same {
			return errOther
		}
		return nil
	case !same:
		return errOther
	case now.Mode()&fs.ModeNamedPipe != 0, now.Mode()&fs.ModeCharDevice != 0:
		return nil
	}
	return errKind
}

// write replaces the content of a regular file, in place, and appends to
// anything else.
func write(file *os.File, mode fs.FileMode, line []byte, until time.Time) error {
	if late(until) {
		return os.ErrDeadlineExceeded
	}
	if !mode.IsRegular() {
		_ = file.SetWriteDeadline(until) // a device that can't have one does not wait either
		_, err := file.Write(line)
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.Write(line)
	if err != nil {
		_ = file.Truncate(0) // a report that is not all there is worse than none
	}
	return err
}
