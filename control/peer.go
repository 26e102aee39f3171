package control

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Why a peer is not in our PID namespace.
var (
	errOutside = errors.New("it is outside of it")
	errNested  = errors.New("it is in one below")
	errForeign = errors.New("/proc is that of another one, and does not tell")
	errGone    = errors.New("it has ended")
)

// identity is what a process knows of itself.
type identity struct {
	user int    // effective, as SO_PEERCRED tells of others
	ns   string // inode number of the PID namespace
}

func whoami() (identity, error) {
	ns, err := namespace("self")
	return identity{user: os.Geteuid(), ns: ns}, err
}

// credentials are those of connect(2) in the server, and of listen(2) in the
// client; the kernel gives them in the reader's own numbers, pid 0 where it can't.
func credentials(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	failed := onSocket(conn, func(fd int) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(failed, os.NewSyscallError("getsockopt", err))
}

// onSocket calls f with the descriptor, which stays open meanwhile.
func onSocket(conn *net.UnixConn, f func(fd int)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

// shares tells by nil that a connection's peer is in our own PID namespace.
func (me identity) shares(conn *net.UnixConn, pid int) error {
	switch pid {
	case 0:
		return errOutside
	case 1: // the one of our own namespace: of those below we see other numbers
		return nil
	}
	depth, err := peerDepth(conn)
	switch {
	case err == nil:
		return compareDepth(depth)
	case errors.Is(err, errGone):
		return err
	}
	return me.sharesByNumber(pid)
}

// peerDepth is the number of PID namespaces between our /proc and the peer's, by
// a descriptor of the very process (SO_PEERPIDFD, Linux 6.5): neither a number that
// was given to another process nor a /proc that hides some can deceive it.
func peerDepth(conn *net.UnixConn) (depth int, err error) {
	failed := onSocket(conn, func(fd int) {
		var pidfd int
		if pidfd, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err != nil {
			err = reaped(err)
			return
		}
		defer unix.Close(pidfd)
		depth, err = nested("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	})
	return depth, errors.Join(failed, err)
}

// reaped tells the kernel's words for a process that is no more from those for an
// option that it does not have.
func reaped(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODATA) {
		return errGone
	}
	return err
}

// compareDepth judges a peer that our namespace has a number for: it is in it or
// below it.
func compareDepth(depth int) error {
	own, err := nested("/proc/self/status")
	switch {
	case err != nil:
		return err
	case depth != own:
		return errNested
	}
	return nil
}

// sharesByNumber is for older kernels.
func (me identity) sharesByNumber(pid int) error {
	if !properProc() {
		return errForeign
	}
	number := strconv.Itoa(pid)
	ns, err := namespace(number)
	switch {
	case err == nil && ns == me.ns:
		return nil
	case err == nil:
		return errNested
	case !errors.Is(err, fs.ErrPermission):
		return err
	}
	// The link is for those who may trace the process; its status is for all.
	depth, err := nested("/proc/" + number + "/status")
	switch {
	case err != nil:
		return err
	case depth != 1: // one number is that of /proc's own namespace, which is ours
		return errNested
	}
	return nil
}

// trustServer returns why the one that listens at addr is not to be asked. The
// owner of an address is known by its pid, which a name can tell; so root may
// believe another user there, and where PID 1 listens.
func (me identity) trustServer(conn *net.UnixConn, addr string) error {
	cred, err := credentials(conn)
	if err != nil {
		return err
	}
	user, pid := int(cred.Uid), int(cred.Pid)
	if err := me.shares(conn, pid); err != nil {
		return fmt.Errorf("process %d listens there, and not in our PID namespace: %w", pid, err)
	}
	ns, owner, named := parseAddress(addr)
	switch {
	case named && me.ns != "" && ns != me.ns:
		return errors.New("the name is that of another PID namespace")
	case named && owner != pid:
		return fmt.Errorf("process %d listens there, and not %d", pid, owner)
	case user == 0 || user == me.user || me.user == 0 && (named || pid == 1):
		return nil
	}
	return fmt.Errorf("user %d listens there, who is neither root nor ours, %d", user, me.user)
}

// stranger tells that we are neither root nor the user who listens, so that it
// answers nothing that we ask.
func (me identity) stranger(conn *net.UnixConn) bool {
	cred, err := credentials(conn)
	return err == nil && me.user != 0 && int(cred.Uid) != me.user
}
