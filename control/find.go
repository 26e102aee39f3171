package control

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// variable tells the address to all that the init starts.
const variable = "DRAINIT_SOCKET"

// prefix is what the default addresses begin with, "@" being the abstract namespace.
const prefix = "@drainit/"

// maxNames is how many names are kept of one namespace: who shares the network
// may bind any number.
const maxNames = 32

// errNone is the cause where there is no init to be found.
var errNone = errors.New("no init with a control socket in this PID namespace")

// Default is the address of the init with that pid, our own: PID 1 has its
// namespace for itself. The error says that /proc can't be read.
func Default(pid int) (string, error) {
	ns, err := namespace("self")
	if err != nil {
		return "", err
	}
	return address(ns, pid), nil
}

func address(ns string, pid int) string {
	if pid == 1 {
		return prefix + ns
	}
	return prefix + ns + "/" + strconv.Itoa(pid)
}

// parseAddress takes a default address apart; ok is false for every other one.
func parseAddress(addr string) (ns string, pid int, ok bool) {
	rest, found := strings.CutPrefix(addr, prefix)
	ns, number, numbered := strings.Cut(rest, "/")
	pid = 1
	if numbered {
		var err error
		if pid, err = strconv.Atoi(number); err != nil || pid < 2 {
			return "", 0, false
		}
	}
	return ns, pid, found && digits(ns) && address(ns, pid) == addr
}

// Find returns the address of the init to talk to: what DRAINIT_SOCKET says, else
// the only one of our own PID namespace. An init below another one does not count,
// and where there are more, neither do those that are not who they say. The error
// names the others, and holds a hint.
func Find(env func(string) (string, bool)) (string, error) {
	if addr, _ := env(variable); addr == "none" {
		return "", &Error{fmt.Errorf("%s %q: the control socket is turned off", variable, addr), "start the init without --control none"}
	} else if addr != "" {
		return addr, nil
	}
	me, err := whoami()
	if err == nil {
		var addr string
		if addr, err = me.choose(me.list); err == nil {
			return addr, nil
		}
	}
	hint := "name it with " + variable + " or --control"
	if errors.Is(err, errNone) {
		hint = "run it inside of the container (docker exec, kubectl exec): its PID namespace and its network namespace count; an init with another address is named with --control"
	}
	return "", &Error{fmt.Errorf("find the init: %w", err), hint}
}

// names are the addresses of one namespace; more counts those beyond maxNames.
type names struct {
	all  []string
	more int
}

func (n names) several() bool { return len(n.all)+n.more > 1 }

// list reads the addresses of our namespace for which keep holds, nil: all of them.
func (me identity) list(keep func(addr string) bool) (names, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return names{}, err
	}
	defer f.Close()
	found, err := listening(f, me.ns, keep)
	if err != nil {
		err = fmt.Errorf("read %q: %w", f.Name(), err)
	}
	return found, err
}

// choose takes the one.
func (me identity) choose(list func(keep func(addr string) bool) (names, error)) (string, error) {
	found, err := list(nil)
	if err == nil && found.several() {
		var honest names
		if honest, err = list(me.honest); len(honest.all) > 0 {
			found = honest
			found.all = outermost(found.all)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(found.all) == 0:
		return "", errNone
	case !found.several():
		return found.all[0], nil
	}
	text := "several in this PID namespace:"
	for _, name := range found.all {
		text += " " + strconv.Quote(name)
	}
	if found.more > 0 {
		text += fmt.Sprintf(" and %d more", found.more)
	}
	return "", errors.New(text)
}

// honest tells whether an address may be what its name says: anybody in the network
// namespace can bind it, and a newline in a socket's name forges a line of the list.
func (me identity) honest(addr string) bool {
	conn, err := connect(addr)
	if err != nil {
		return errors.Is(err, syscall.EAGAIN) // which is but a queue that is full
	}
	defer conn.Close()
	return me.trustServer(conn, addr) == nil
}

// outermost leaves out the inits below another one, as a companion that leads is
// below the container's. Those of a PID namespace that containers share are side
// by side.
func outermost(addrs []string) []string {
	if !properProc() {
		return addrs
	}
	owners := map[int]bool{}
	for _, addr := range addrs {
		_, pid, _ := parseAddress(addr)
		owners[pid] = true
	}
	return slices.DeleteFunc(slices.Clone(addrs), func(addr string) bool {
		_, pid, _ := parseAddress(addr)
		return below(pid, owners, parentOf)
	})
}

// deepest is how many generations are looked at: parents that change meanwhile can
// form a circle.
const deepest = 1000

// below tells whether a process descends from one of the owners.
func below(pid int, owners map[int]bool, parent func(int) int) bool {
	for range deepest {
		if pid = parent(pid); pid <= 0 {
			return false
		}
		if owners[pid] {
			return true
		}
	}
	return false
}

// listening reads /proc/net/unix (proc_pid_net(5)) for the addresses of a namespace.
func listening(r io.Reader, ns string, keep func(addr string) bool) (names, error) {
	var found names
	err := eachLine(r, func(line []byte) bool {
		name, ok := listener(string(line))
		if !ok || slices.Contains(found.all, name) {
			return true
		}
		of, _, ok := parseAddress(name)
		switch {
		case !ok || of != ns || keep != nil && !keep(name):
		case len(found.all) < maxNames:
			found.all = append(found.all, name)
		default:
			found.more++
		}
		return true
	})
	return found, err
}

// listener returns the name of a stream socket that listens. The columns are a
// pointer, the references, a protocol, the flags, the type, the state, the inode
// number and the name, in which "@" stands for each zero byte.
func listener(line string) (string, bool) {
	const (
		flags, kind, columns = 3, 4, 7
		accepting, stream    = "00010000", "0001" // __SO_ACCEPTCON, SOCK_STREAM
	)
	rest := line
	for i := range columns {
		var column string
		column, rest, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
		if i == flags && column != accepting || i == kind && column != stream {
			return "", false
		}
	}
	return rest, strings.HasPrefix(rest, prefix)
}
