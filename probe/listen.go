package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
)

// backlog is how many connections the kernel keeps for Serve. The kernel lowers
// it to net.core.somaxconn by itself (listen(2)), so that nobody must read that.
const backlog = 1024

// Listen binds c.Addr and does nothing else. It runs before the workload is
// started, so the literal addresses cost five or six system calls: net.Listen
// first finds out what the host's IP stack can do, about MPTCP and somaxconn.
//
// As by net.Listen a bare port means every address of both families, also where
// the host has no IPv6, and "[::]" is both families too. Unlike there 0.0.0.0
// means IPv4 alone. The socket has SO_REUSEADDR, since a container that is
// restarted in its pod's network finds its predecessor's connections in
// TIME_WAIT, and it is not inherited by the workload.
//
// The error reads `listen "ADDR": cause` and wraps the syscall.Errno: EADDRINUSE,
// EACCES (a port below 1024), EADDRNOTAVAIL. A malformed address is an error too.
func Listen(c Config, counters Counters) (*Server, error) {
	s := newServer(c, counters)
	err := s.bind()
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) { // it repeats "listen" and the address
			err = op.Err
		}
		return nil, fmt.Errorf("listen %q: %w", c.Addr, err)
	}
	return s, nil
}

func (s *Server) bind() error {
	addr, wildcard, ok := literal(s.config.Addr)
	if !ok {
		return s.bindName()
	}
	var err error
	if wildcard {
		s.socket, s.addr, err = bindEvery(addr.Port(), bindSocket)
	} else {
		s.socket, s.addr, err = bindSocket(addr)
	}
	return err
}

// bindName is the long way, for host names, service names and IPv6 zones.
func (s *Server) bindName() error {
	ln, err := net.Listen("tcp", s.config.Addr)
	if err != nil {
		return err
	}
	s.listen, s.addr = ln, ln.Addr().(*net.TCPAddr).AddrPort()
	return nil
}

// literal parses host:port of numbers; wildcard is ":port".
func literal(text string) (addr netip.AddrPort, wildcard, ok bool) {
	if len(text) > 0 && text[0] == ':' {
		port, err := strconv.ParseUint(text[1:], 10, 16)
		return netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port)), true, err == nil
	}
	addr, err := netip.ParseAddrPort(text)
	if err != nil || addr.Addr().Zone() != "" {
		return netip.AddrPort{}, false, false
	}
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), false, true
}

type binder func(netip.AddrPort) (*os.File, netip.AddrPort, error)

// bindEvery binds both families by one socket, and IPv4 alone where that cannot
// be had (ipv6.disable=1, a sandbox). A port in use is never tried again: it
// would leave half of the addresses to someone else without a word.
func bindEvery(port uint16, bind binder) (*os.File, netip.AddrPort, error) {
	socket, at, err := bind(netip.AddrPortFrom(netip.IPv6Unspecified(), port))
	if err == nil || errors.Is(err, syscall.EADDRINUSE) {
		return socket, at, err
	}
	return bind(netip.AddrPortFrom(netip.IPv4Unspecified(), port))
}

// bindSocket returns a listening socket and the address that it has got. It is
// left in blocking mode, in which os.NewFile doesn't yet start the poller.
func bindSocket(at netip.AddrPort) (*os.File, netip.AddrPort, error) {
	family := syscall.AF_INET
	if at.Addr().Is6() {
		family = syscall.AF_INET6
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, at, os.NewSyscallError("socket", err)
	}
	at, err = prepare(fd, at)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, at, err
	}
	return os.NewFile(uintptr(fd), "probe"), at, nil
}

func prepare(fd int, at netip.AddrPort) (netip.AddrPort, error) {
	if at.Addr() == netip.IPv6Unspecified() { // net.ipv6.bindv6only may say otherwise
		if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 0); err != nil {
			return at, os.NewSyscallError("setsockopt", err)
		}
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return at, os.NewSyscallError("setsockopt", err)
	}
	if err := syscall.Bind(fd, sockaddr(at)); err != nil {
		return at, os.NewSyscallError("bind", err)
	}
	// With SO_REUSEADDR on both sides it is listen, not bind, that finds the
	// port in use: both errors mean the same to the caller.
	if err := syscall.Listen(fd, backlog); err != nil {
		return at, os.NewSyscallError("listen", err)
	}
	if at.Port() != 0 {
		return at, nil
	}
	return chosen(fd, at)
}

func sockaddr(at netip.AddrPort) syscall.Sockaddr {
	if at.Addr().Is4() {
		return &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return &syscall.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
}

// chosen asks which port the kernel took for port 0.
func chosen(fd int, at netip.AddrPort) (netip.AddrPort, error) {
	got, err := syscall.Getsockname(fd)
	if err != nil {
		return at, os.NewSyscallError("getsockname", err)
	}
	switch got := got.(type) {
	case *syscall.SockaddrInet4:
		return netip.AddrPortFrom(at.Addr(), uint16(got.Port)), nil
	case *syscall.SockaddrInet6:
		return netip.AddrPortFrom(at.Addr(), uint16(got.Port)), nil
	}
	return at, nil
}
