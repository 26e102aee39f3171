package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// backlog is how many connections the kernel keeps for Serve (listen(2)).
const backlog = 1024

// patience is how long a client may take to send its request, and how long it
// may leave the answer unread.
const patience = 5 * time.Second

// Server is a bound socket. It is made by [Listen]; the zero value is useless.
// Every method may be called from any goroutine, at any time.
type Server struct {
	addr     string
	me       identity
	options  Options
	patience time.Duration
	calls    chan Call
	crowd    *crowd

	serving atomic.Bool
	quit    chan struct{} // closed by Close
	done    chan struct{} // closed when the one Serve has ended
	told    time.Time     // of the last refused client; the accepting goroutine's

	mu     sync.Mutex // hands the socket over from Listen to Serve to Close
	socket *os.File   // nil once listen owns it
	listen *net.UnixListener
	file   fs.FileInfo // of a socket file, to know it again
	closed bool
}

// Listen binds addr: "@..." in the abstract namespace, or an absolute path, which
// becomes a file of mode 0600. A socket file that nobody listens on any more is
// replaced, and anything else there is an error. It changes the umask for a
// moment, so no other thread may make a file meanwhile.
//
// The error reads `listen "ADDR": cause`: that the address is taken wraps
// syscall.EADDRINUSE; a /proc that can't be read wraps what reading it gave,
// since without it nobody who connects could be told from a stranger.
func Listen(addr string, o Options) (*Server, error) {
	s, err := newServer(addr, o)
	if err == nil {
		err = s.bind()
	}
	if err != nil {
		return nil, fmt.Errorf("listen %q: %w", addr, err)
	}
	return s, nil
}

func newServer(addr string, o Options) (*Server, error) {
	me, err := whoami()
	if err != nil {
		return nil, err
	}
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		addr: addr, me: me, options: o, patience: patience,
		calls: make(chan Call, 16), crowd: newCrowd(limit()),
		quit: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

// Addr is the address as Listen was given it.
func (s *Server) Addr() string { return s.addr }

// Calls is where the loop finds what clients ask. It is never closed.
func (s *Server) Calls() <-chan Call { return s.calls }

func (s *Server) bind() error {
	if err := checkAddress(s.addr); err != nil {
		return err
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	s.socket = os.NewFile(uintptr(fd), s.addr)
	if err = s.bindSocket(fd); err == nil {
		err = os.NewSyscallError("listen", syscall.Listen(fd, backlog))
	}
	if err != nil {
		_ = s.socket.Close()
		s.removeFile()
	}
	return err
}

// checkAddress refuses what the kernel would take for something else.
func checkAddress(addr string) error {
	const longest = 107 // bytes, sun_path of unix(7) less one
	switch {
	case len(addr) < 2 || addr[0] != '@' && addr[0] != '/':
		return errors.New("neither an absolute path nor @ and a name")
	case strings.Contains(addr, "\x00"):
		return errors.New("a zero byte in it")
	case len(addr) > longest:
		return fmt.Errorf("longer than %d bytes", longest)
	}
	return nil
}

func (s *Server) bindSocket(fd int) error {
	name := &syscall.SockaddrUnix{Name: s.addr}
	if s.addr[0] == '@' {
		return taken(syscall.Bind(fd, name))
	}
	if err := removeStale(s.addr); err != nil {
		return err
	}
	before := syscall.Umask(0o177)
	err := syscall.Bind(fd, name)
	syscall.Umask(before)
	if err == nil {
		s.file, err = os.Lstat(s.addr)
		return err
	}
	return taken(err)
}

// taken puts the usual fault in plain words.
func taken(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("the name is taken: %w", err)
	}
	return os.NewSyscallError("bind", err)
}

// removeStale removes a socket file that refuses connections, as one does whose
// process was killed.
func removeStale(path string) error {
	was, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case was.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("the name is taken by what is no socket: %w", syscall.EADDRINUSE)
	}
	conn, err := connect(path)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return taken(syscall.EADDRINUSE)
	}
	if now, err := os.Lstat(path); err == nil && !os.SameFile(was, now) {
		return taken(syscall.EADDRINUSE) // somebody else has replaced it just now
	}
	return os.Remove(path)
}

// removeFile removes the socket file if it is still ours.
func (s *Server) removeFile() {
	if s.file == nil {
		return
	}
	if now, err := os.Lstat(s.addr); err == nil && os.SameFile(s.file, now) {
		_ = os.Remove(s.addr)
	}
}

// tell writes a record. A logger that faults must not end what it reports about.
func (s *Server) tell(level slog.Level, event string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	s.options.Log.LogAttrs(context.Background(), level, event, attrs...)
}
