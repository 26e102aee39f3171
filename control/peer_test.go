package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const stranger, other = 1234, 65534

// inBelow is a PID namespace of its own in our network namespace, with our /proc.
func inBelow() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
}

// TestClients: who may talk to a server of root's.
func TestClients(t *testing.T) {
	needRoot(t)
	h := open(t)
	go echo(h.Server)
	for name, c := range map[string]struct {
		attr *syscall.SysProcAttr
		part string
		want string
	}{
		"root":              {nil, "ask", "answer 0 did status <nil>"},
		"another user":      {user(stranger), "ask", "refused: user 1234 is neither root nor the init's own, 0"},
		"another user, raw": {user(stranger), "raw", `"refused":"user 1234 is neither root nor the init's own, 0"`},
		"below":             {inBelow(), "ask", "process 0 listens there, and not in our PID namespace: it is outside of it"},
		"below, raw":        {inBelow(), "raw", "is not in the init's PID namespace: it is in one below"},
	} {
		got := output(t, relative(c.attr, c.part, h.Addr(), Status))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if n := strings.Count(h.log.String(), "\n"); n != 1 || !strings.Contains(h.log.String(), `level=WARN msg="control client refused" error=`) {
		t.Errorf("log %s", h.log)
	}
}

// TestServers: which servers of other users a client believes, and who may talk to
// them.
func TestServers(t *testing.T) {
	needRoot(t)
	addr, pid := neighbour(t, user(stranger))
	if addr != mustDefault(t, pid) {
		t.Errorf("%q", addr)
	}
	unnamed, _ := neighbour(t, user(stranger), own(t))
	for name, c := range map[string]struct {
		attr *syscall.SysProcAttr
		part string
		addr string
		want string
	}{
		"itself":            {user(stranger), "ask", addr, "answer 0 did drain <nil>"},
		"root":              {nil, "ask", addr, "answer 0 did drain <nil>"},
		"another user":      {user(other), "ask", addr, "user 1234 listens there, who is neither root nor ours, 65534"},
		"another user, raw": {user(other), "raw", addr, `"refused":"user 65534 is neither root nor the init's own, 1234"`},
		"unnamed":           {user(stranger), "ask", unnamed, "answer 0 did drain <nil>"},
		"unnamed, root":     {nil, "ask", unnamed, "user 1234 listens there, who is neither root nor ours, 0"},
	} {
		got := output(t, relative(c.attr, c.part, c.addr, Drain))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func mustDefault(t testing.TB, pid int) string {
	t.Helper()
	addr, err := Default(pid)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestImpostor: a name does not make an init.
func TestImpostor(t *testing.T) {
	me, err := whoami()
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		address(me.ns, 4000001): fmt.Sprintf("process %d listens there, and not 4000001", os.Getpid()),
		address("12345678", 1):  "the name is that of another PID namespace",
	} {
		s, err := Listen(addr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = Ask(t.Context(), addr, Request{Verb: Status}, nil)
		var hint *Error
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &hint) || hint.Hint == "" {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestNestedServer: the init of a namespace below is not ours, and talks to those
// of its own, even where /proc shows others.
func TestNestedServer(t *testing.T) {
	needRoot(t)
	addr, _ := neighbour(t, inBelow())
	if _, pid, ok := parseAddress(addr); !ok || pid != 1 {
		t.Errorf("%q", addr)
	}
	if got := output(t, relative(nil, "ask", addr, Status)); !strings.Contains(got, "not in our PID namespace: it is in one below") {
		t.Error(got)
	}
	if got := output(t, relative(nil, "raw", addr, Status)); !strings.Contains(got, `process 0 is not in the init's PID namespace: it is outside of it`) {
		t.Error(got)
	}
	want := "answer 0 did status <nil>\n"
	if !peerPidfd(t) {
		want = "answer 0  ask " + strconv.Quote(addr) + ": refused: process"
	}
	if got := output(t, relative(inBelow(), "family")); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

// peerPidfd tells whether the kernel has SO_PEERPIDFD.
func peerPidfd(t testing.TB) bool {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	fd, err := unix.GetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

// TestSharesByNumber is what older kernels go by: the link, and the status where
// the link may not be read.
func TestSharesByNumber(t *testing.T) {
	me, err := whoami()
	if err != nil {
		t.Fatal(err)
	}
	if err := me.sharesByNumber(os.Getpid()); err != nil {
		t.Error(err)
	}
	if err := me.sharesByNumber(1<<22 + 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nobody: %v", err)
	}
	needRoot(t)
	_, nested := neighbour(t, inBelow())
	_, foreign := neighbour(t, user(other))
	if err := me.sharesByNumber(nested); !errors.Is(err, errNested) {
		t.Errorf("below: %v", err)
	}
	if err := me.sharesByNumber(foreign); err != nil {
		t.Errorf("another user: %v", err)
	}
	for name, c := range map[string]struct {
		attr *syscall.SysProcAttr
		pid  int
		want string
	}{
		"not ours to trace":        {user(stranger), foreign, "<nil>"},
		"not ours to trace, below": {user(stranger), nested, errNested.Error()},
		"another /proc":            {inBelow(), foreign, errForeign.Error()},
	} {
		if got := output(t, relative(c.attr, "shares", strconv.Itoa(c.pid))); got != c.want+"\n" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestPeerGone: a client that is no more is not taken for whatever process has its
// number now.
func TestPeerGone(t *testing.T) {
	if !peerPidfd(t) {
		skip(t, "no SO_PEERPIDFD")
	}
	h := bound(t)
	ln, err := h.adopt()
	if err != nil {
		t.Fatal(err)
	}
	cmd := relative(nil, "raw", h.Addr(), Announce)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := h.me.shares(conn, cmd.Process.Pid); err != nil {
		t.Errorf("alive: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := h.me.shares(conn, os.Getpid()); !errors.Is(err, errGone) {
		t.Errorf("gone: %v", err)
	}
}

func TestNested(t *testing.T) {
	name := filepath.Join(t.TempDir(), "status")
	for text, want := range map[string]string{
		"Name:\tx\nNSpid:\t7\nNSpgid:\t7\n": "1 <nil>",
		"NSpid:\t7\t1\n":                    "2 <nil>",
		"NSpid:\t0\n":                       "0 it has ended",
		"Pid:\t-1\nNSpid:\t-1\n":            "0 it has ended",
		"NSpid:\n":                          "0 read \"FILE\": no number behind NSpid",
		"":                                  "0 read \"FILE\": no \"NSpid:\"",
		"Name:\tNSpid: 1 2 3\n":             "0 read \"FILE\": no \"NSpid:\"",
		"Groups:\t" + strings.Repeat("1000 ", 65536) + "\nNSpid:\t5": "1 <nil>",
	} {
		write(t, name, text)
		n, err := nested(name)
		if got := fmt.Sprint(n, " ", err); got != strings.ReplaceAll(want, "FILE", name) {
			t.Errorf("%.40q: %s, want %s", text, got, want)
		}
	}
	if _, err := nested(name + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestDefault(t *testing.T) {
	one, other := mustDefault(t, 1), mustDefault(t, 77)
	if other != one+"/77" {
		t.Errorf("%q, %q", one, other)
	}
	for addr, want := range map[string]string{
		one:                                 "1 true",
		other:                               "77 true",
		"@drainit/1/2":                      "2 true",
		"@drainit/1/1":                      "0 false",
		"@drainit/1/02":                     "0 false",
		"@drainit/1/-2":                     "0 false",
		"@drainit/1/2/3":                    "0 false",
		"@drainit/1/":                       "0 false",
		"@drainit/":                         "0 false",
		"@drainit/x":                        "0 false",
		"@drainit/1/2@":                     "0 false",
		"@drainit/1\n":                      "0 false",
		"@drainitx/1":                       "0 false",
		"/run/drainit/1":                    "0 false",
		"":                                  "0 false",
		"@drainit/1/9999999999999999999999": "0 false",
	} {
		_, pid, ok := parseAddress(addr)
		if got := fmt.Sprint(pid, " ", ok); got != want && !(!ok && want == "0 false") {
			t.Errorf("%q: %s, want %s", addr, got, want)
		}
	}
}
