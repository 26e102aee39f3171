package report

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// line is what the tests write.
const text = `{"reason":"TERM"}` + "\n"

// patience is a limit that is never used up.
const patience = 20 * time.Second

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// holds compares the content of a file.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), b, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// older sets a file's time back, so that whatever is written to it has another.
func older(t *testing.T, path string) {
	t.Helper()
	must(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
}

// TestWrite: what was there at the start, what has become of it, and what is
// there in the end.
func TestWrite(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(t *testing.T, path string) // nil: nothing
		want          error
		holds         string // of the path; empty: not looked at
	}{
		"absent":                 {holds: text},
		"empty":                  {before: func(t *testing.T, p string) { put(t, p, "") }, holds: text},
		"old and shorter":        {before: func(t *testing.T, p string) { put(t, p, "old") }, holds: text},
		"old and longer":         {before: func(t *testing.T, p string) { put(t, p, strings.Repeat("old", 2000)) }, holds: text},
		"old, another mode":      {before: func(t *testing.T, p string) { put(t, p, "old") }, after: func(t *testing.T, p string) { must(t, os.Chmod(p, 0o600)) }, holds: text},
		"written to":             {before: func(t *testing.T, p string) { put(t, p, "") }, after: func(t *testing.T, p string) { put(t, p, "mine") }, want: ErrTaken, holds: "mine"},
		"written to, same size":  {before: func(t *testing.T, p string) { put(t, p, "that"); older(t, p) }, after: func(t *testing.T, p string) { put(t, p, "mine") }, want: ErrTaken, holds: "mine"},
		"written to, same time":  {before: func(t *testing.T, p string) { put(t, p, "it"); older(t, p) }, after: sameTime, want: ErrTaken, holds: "mine"},
		"emptied":                {before: func(t *testing.T, p string) { put(t, p, "old"); older(t, p) }, after: func(t *testing.T, p string) { put(t, p, "") }, holds: text},
		"created with content":   {after: func(t *testing.T, p string) { put(t, p, "mine") }, want: ErrTaken, holds: "mine"},
		"created empty":          {after: func(t *testing.T, p string) { put(t, p, "") }, holds: text},
		"removed":                {before: func(t *testing.T, p string) { put(t, p, "old") }, after: func(t *testing.T, p string) { must(t, os.Remove(p)) }, holds: text},
		"renamed over":           {before: func(t *testing.T, p string) { put(t, p, "old") }, after: func(t *testing.T, p string) { put(t, p+"2", "mine"); must(t, os.Rename(p+"2", p)) }, want: ErrTaken, holds: "mine"},
		"renamed over by empty":  {before: func(t *testing.T, p string) { put(t, p, "") }, after: func(t *testing.T, p string) { put(t, p+"2", ""); must(t, os.Rename(p+"2", p)) }, want: errOther},
		"directory":              {before: func(t *testing.T, p string) { must(t, os.Mkdir(p, 0o755)) }, want: errKind},
		"socket":                 {before: socket, want: errKind},
		"became a directory":     {before: func(t *testing.T, p string) { put(t, p, "") }, after: func(t *testing.T, p string) { must(t, os.Remove(p)); must(t, os.Mkdir(p, 0o755)) }, want: errOther},
		"became a pipe":          {before: func(t *testing.T, p string) { put(t, p, "") }, after: func(t *testing.T, p string) { must(t, os.Remove(p)); fifo(t, p) }, want: errOther},
		"a pipe appeared":        {after: fifo, want: errOther},
		"a pipe, nobody reads":   {before: fifo, want: syscall.ENXIO},
		"a pipe, another one":    {before: fifo, after: func(t *testing.T, p string) { fifo(t, p+"2"); must(t, os.Rename(p+"2", p)) }, want: errOther},
		"a device":               {before: link("/dev/null")},
		"a device without space": {before: link("/dev/full"), want: syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report")
			if c.before != nil {
				c.before(t, path)
			}
			f := Open(path)
			if f.Existed() != (c.before != nil) {
				t.Errorf("existed: %v", f.Existed())
			}
			if c.after != nil {
				c.after(t, path)
			}
			if err := f.Write([]byte(text), patience); !errors.Is(err, c.want) || strings.Contains(errorText(err), "\n") {
				t.Errorf("%v, want %v", err, c.want)
			}
			if c.holds != "" {
				holds(t, path, c.holds)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sameTime writes, and puts the time back.
func sameTime(t *testing.T, path string) {
	info, err := os.Stat(path)
	must(t, err)
	put(t, path, "mine")
	must(t, os.Chtimes(path, time.Time{}, info.ModTime()))
}

func fifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}

func link(target string) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.Symlink(target, path)) }
}

func socket(t *testing.T, path string) {
	l, err := net.Listen("unix", path)
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

// TestWriteKeepsTheInode: /dev/termination-log is a mount of one.
func TestWriteKeepsTheInode(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "report"), filepath.Join(dir, "the same")
	put(t, path, "old")
	must(t, os.Link(path, other))
	must(t, Open(path).Write([]byte(text), patience))
	holds(t, other, text)
}

func TestCreatedMode(t *testing.T) {
	umask := syscall.Umask(0o022)
	defer syscall.Umask(umask)
	path := filepath.Join(t.TempDir(), "report")
	must(t, Open(path).Write([]byte(text), patience))
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestSwapped: what appears between looking and opening gets nothing.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	path, target := filepath.Join(dir, "report"), filepath.Join(dir, "target")
	f := Open(path)
	must(t, os.Symlink(target, path))
	until := time.Now().Add(patience)
	if err := f.create([]byte(text), until); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	put(t, target, "")
	if info, err := f.stat(); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := f.open(); !errors.Is(err, syscall.ELOOP) {
		t.Error(err)
	}
	other, err := os.OpenFile(target, os.O_RDWR, 0)
	must(t, err)
	defer other.Close()
	put(t, target, "secret")
	if err := f.fill(other, []byte(text), until); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	holds(t, target, "secret")
}

// TestStrangersLink: a link that the workload puts in the file's place leads the
// init nowhere.
func TestStrangersLink(t *testing.T) {
	for name, content := range map[string]string{"full": "secret", "empty": ""} {
		for _, existed := range []bool{true, false} {
			dir := t.TempDir()
			path, target := filepath.Join(dir, "report"), filepath.Join(dir, "target")
			put(t, target, content)
			if existed {
				put(t, path, "")
			}
			f := Open(path)
			if existed {
				must(t, os.Remove(path))
			}
			must(t, os.Symlink(target, path))
			if err := f.Write([]byte(text), patience); err == nil {
				t.Errorf("%s: no error", name)
			}
			holds(t, target, content)
		}
	}
	dir := t.TempDir()
	path, target := filepath.Join(dir, "report"), filepath.Join(dir, "target")
	f := Open(path)
	must(t, os.Symlink(target, path))
	if err := f.Write([]byte(text), patience); err == nil {
		t.Error("no error")
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target was created: %v", err)
	}
}

// TestOperatorsLink is followed, as long as it leads to the same file.
func TestOperatorsLink(t *testing.T) {
	dir := t.TempDir()
	path, target, other := filepath.Join(dir, "report"), filepath.Join(dir, "target"), filepath.Join(dir, "other")
	put(t, target, "old")
	put(t, other, "")
	must(t, os.Symlink(target, path))
	f := Open(path)
	must(t, f.Write([]byte(text), patience))
	holds(t, target, text)

	f = Open(path)
	must(t, os.Remove(path))
	must(t, os.Symlink(other, path))
	if err := f.Write([]byte(text), patience); !errors.Is(err, errOther) {
		t.Error(err)
	}
	holds(t, other, "")
}

// openPipe makes a pipe with a reader.
func openPipe(t *testing.T) (string, *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	fifo(t, path)
	r, err := os.OpenFile(path, os.O_RDWR, 0) // of both ends, so that it need not wait for the other
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return path, r
}

func TestPipe(t *testing.T) {
	path, r := openPipe(t)
	must(t, Open(path).Write([]byte(text), patience))
	b := make([]byte, MaxLine)
	if n, err := r.Read(b); err != nil || string(b[:n]) != text {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// TestFullPipe: one that nobody empties costs the limit, and one that somebody
// does gets the line.
func TestFullPipe(t *testing.T) {
	path, r := openPipe(t)
	must(t, r.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	full, err := r.Write(make([]byte, 4<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(full, err)
	}
	from := time.Now()
	err = Open(path).Write([]byte(text), 50*time.Millisecond)
	if took := time.Since(from); !errors.Is(err, os.ErrDeadlineExceeded) || took > patience {
		t.Errorf("%v after %v", err, took)
	}
	if err = Open(path).put([]byte(text), time.Now().Add(50*time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("what is left behind: %v", err)
	}
	done := make(chan error)
	go func() { done <- Open(path).Write([]byte(text), patience) }()
	b := make([]byte, full)
	for range 2 {
		if _, err := r.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNoFile: nothing is written nowhere.
func TestNoFile(t *testing.T) {
	f := Open("")
	if f != nil || f.Existed() || f.Write([]byte(text), patience) != nil {
		t.Error(f)
	}
}

// TestNoPlace: the errors of a place that is not to be had.
func TestNoPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "")
	for path, want := range map[string]error{
		filepath.Join(t.TempDir(), "no", "report"): fs.ErrNotExist,
		file + "/report": syscall.ENOTDIR,
		"/proc/report":   fs.ErrNotExist,
	} {
		err := Open(path).Write([]byte(text), patience)
		if !errors.Is(err, want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestNoTime writes nothing when there is none left.
func TestNoTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	put(t, path, "old")
	if err := Open(path).Write([]byte(text), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	holds(t, path, "old")
	if err := Open(path+"2").put([]byte(text), time.Now()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if _, err := os.Lstat(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was created: %v", err)
	}
}
