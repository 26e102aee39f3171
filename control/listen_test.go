package control

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestListenErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "text")
	if err := os.Symlink(filepath.Join(dir, "file"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	h := open(t)
	for addr, want := range map[string]struct {
		cause error
		text  string
	}{
		h.Addr():                           {syscall.EADDRINUSE, "the name is taken: address already in use"},
		filepath.Join(dir, "file"):         {syscall.EADDRINUSE, "the name is taken by what is no socket"},
		filepath.Join(dir, "link"):         {syscall.EADDRINUSE, "the name is taken by what is no socket"},
		dir:                                {syscall.EADDRINUSE, "the name is taken by what is no socket"},
		filepath.Join(dir, "no", "file"):   {os.ErrNotExist, "no such file or directory"},
		"run/control":                      {nil, "neither an absolute path nor @ and a name"},
		"@":                                {nil, "neither an absolute path nor @ and a name"},
		"":                                 {nil, "neither an absolute path nor @ and a name"},
		"@a\x00b":                          {nil, "a zero byte in it"},
		"/" + strings.Repeat("long/", 100): {nil, "longer than 107 bytes"},
	} {
		s, err := Listen(addr, Options{})
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "listen ") || !strings.Contains(err.Error(), want.text) ||
			want.cause != nil && !errors.Is(err, want.cause) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFile: a socket file is for its owner alone, gets replaced when nobody listens
// on it any more, and is removed at the end unless it is another one by then.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if _, err := Listen(path, Options{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("in use: %v", err)
	}
	_ = stale.Close()
	s, err := Listen(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if umask := syscall.Umask(0); umask != 0 {
		t.Errorf("umask %o", umask)
	}
	if is, err := os.Lstat(path); err != nil || is.Mode() != os.ModeSocket|0o600 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
	go echo(s)
	go s.Serve(context.Background())
	if a, err := Ask(t.Context(), path, Request{Verb: Announce}, nil); err != nil || a.Text != "did announce" {
		t.Errorf("%+v, %v", a, err)
	}
	s.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
	s, err = Listen(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(path)
	write(t, path, "another one")
	s.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another one: %v", err)
	}
}

// TestDescriptors: no child inherits the socket.
func TestDescriptors(t *testing.T) {
	h := bound(t)
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, h.socket.Fd(), syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: a child would inherit the socket", flags, errno)
	}
}
