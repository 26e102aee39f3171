package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{
		":8079":               "[::]:8079 every",
		"0.0.0.0:8079":        "0.0.0.0:8079",
		"127.0.0.1:1":         "127.0.0.1:1",
		"[::1]:8079":          "[::1]:8079",
		"[::]:65535":          "[::]:65535",
		"[::ffff:10.0.0.1]:9": "10.0.0.1:9",
		"localhost:8079":      "",
		"[fe80::1%lo]:8079":   "",
		":http":               "",
		":70000":              "",
		":-1":                 "",
		"8079":                "",
		"":                    "",
	} {
		addr, every, ok := literal(text)
		got := ""
		if ok {
			got = addr.String()
		}
		if every && ok {
			got += " every"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestListenAddresses serves each address on a free port and asks it.
func TestListenAddresses(t *testing.T) {
	for _, c := range []struct {
		addr    string
		answers []string
	}{
		{":0", []string{"127.0.0.1", "::1"}},
		{"[::]:0", []string{"127.0.0.1", "::1"}},
		{"0.0.0.0:0", []string{"127.0.0.1"}},
		{"127.0.0.1:0", []string{"127.0.0.1"}},
		{"[::1]:0", []string{"::1"}},
		{"localhost:0", nil},
	} {
		if strings.Contains(c.addr, "::") && !hasIPv6() {
			t.Logf("%s: no IPv6 here", c.addr)
			continue
		}
		config := paths()
		config.Addr = c.addr
		h := serveReal(t, config)
		port := netip.MustParseAddrPort(h.Addr()).Port()
		if port == 0 {
			t.Errorf("%s: %s", c.addr, h.Addr())
		}
		livez(t, h)
		for _, host := range c.answers {
			if host == "::1" && !hasIPv6() {
				continue
			}
			conn, err := net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr(host), port).String())
			if err != nil {
				t.Errorf("%s: %v", c.addr, err)
				continue
			}
			_ = conn.Close()
		}
		h.stop()
		// EADDRNOTAVAIL: [::] where IPv6 is disabled but there
		if _, err := net.Dial("tcp", h.Addr()); !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("%s after Close: %v", c.addr, err)
		}
	}
}

func hasIPv6() bool {
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return false
	}
	return ln.Close() == nil
}

func TestListenErrors(t *testing.T) {
	taken, err := Listen(Config{Addr: "127.0.0.1:0"}, Counters{})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr()[strings.LastIndexByte(taken.Addr(), ':'):]
	for addr, want := range map[string]struct {
		cause error
		text  string
	}{
		taken.Addr():        {syscall.EADDRINUSE, `listen "` + taken.Addr() + `": bind: address already in use`},
		port:                {syscall.EADDRINUSE, ""},
		"localhost" + port:  {syscall.EADDRINUSE, `listen "localhost` + port + `": bind: address already in use`},
		"203.0.113.77:8079": {syscall.EADDRNOTAVAIL, ""},
		"8079":              {nil, ""},
		"127.0.0.1:70000":   {nil, ""},
	} {
		s, err := Listen(Config{Addr: addr}, Counters{})
		if err == nil {
			s.Close()
			t.Errorf("%s: bound", addr)
			continue
		}
		if want.cause != nil && !errors.Is(err, want.cause) || want.text != "" && err.Error() != want.text {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestBindEvery: IPv4 alone where there is no IPv6, but not where it is taken.
func TestBindEvery(t *testing.T) {
	for cause, want := range map[error]string{
		nil: "[::]:8079", syscall.EAFNOSUPPORT: "0.0.0.0:8079", syscall.EADDRNOTAVAIL: "0.0.0.0:8079",
		syscall.EADDRINUSE: "[::]:8079",
	} {
		_, at, err := bindEvery(8079, func(at netip.AddrPort) (*os.File, netip.AddrPort, error) {
			if at.Addr().Is4() || cause == nil {
				return nil, at, nil
			}
			return nil, at, os.NewSyscallError("bind", cause)
		})
		if at.String() != want || (err != nil) != (cause == syscall.EADDRINUSE) {
			t.Errorf("%v: %v, %v", cause, at, err)
		}
	}
}

// TestSocketOptions: the workload doesn't inherit it, a successor can bind it.
func TestSocketOptions(t *testing.T) {
	s, err := Listen(paths(), Counters{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fd := s.socket.Fd()
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, errno)
	}
	if on, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR); on != 1 || err != nil {
		t.Errorf("SO_REUSEADDR %d, %v", on, err)
	}
}

// TestSuccessor: an answered connection is in TIME_WAIT on our side, which must
// not keep the restarted container from its port.
func TestSuccessor(t *testing.T) {
	first := serveReal(t, paths())
	livez(t, first)
	first.stop()
	config := paths()
	config.Addr = first.Addr()
	livez(t, serveReal(t, config))
}

func TestCloseBeforeServe(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		s, err := Listen(Config{Addr: addr}, Counters{})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		s.Close()
		s.Serve(context.Background())
		if _, err := net.Dial("tcp", s.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// TestEarlyProbe: a probe that comes between Listen and Serve is answered.
func TestEarlyProbe(t *testing.T) {
	s, err := Listen(paths(), Counters{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	h := &house{Server: s}
	h.serve(t)
	got := make([]byte, 4096)
	if n, err := c.Read(got); err != nil || !strings.HasSuffix(string(got[:n]), alive) {
		t.Errorf("%q, %v", got[:n], err)
	}
}

// TestRealCrowd is TestCrowd and TestSilentClientIsDropped with real sockets.
func TestRealCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	t.Parallel()
	h := serveReal(t, paths())
	var last net.Conn
	for range 1000 {
		last = h.dial(t)
		defer last.Close()
	}
	start := time.Now()
	livez(t, h)
	if _, err := last.Read(make([]byte, 1)); err == nil {
		t.Error("the silent one got an answer")
	}
	if d := time.Since(start); d < patience-time.Second || d > patience+3*time.Second {
		t.Errorf("the last one was dropped after %v", d)
	}
	silent := h.dial(t)
	defer silent.Close()
	start = time.Now()
	h.stop()
	if d := time.Since(start); d > time.Second {
		t.Errorf("Close took %v", d)
	}
}

func BenchmarkListen(b *testing.B) {
	for b.Loop() {
		s, err := Listen(Config{Addr: ":48079"}, Counters{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkNetListen(b *testing.B) {
	for b.Loop() {
		ln, err := net.Listen("tcp", ":48079")
		if err != nil {
			b.Fatal(err)
		}
		_ = ln.Close()
	}
}
