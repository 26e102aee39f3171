package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drainit/signals"
)

// actors are the parts that the actor can play, as a workload or as a hook.
var actors = map[string]func([]string){
	"trap":    actTrap,
	"ignore":  actIgnore,
	"orphans": actOrphans,
	"fds":     actFDs,
	"daemon":  actDaemon,
	"flood":   actFlood,
	"forker":  actForker,
	"enter":   actEnter,
	"limit":   actLimit,
	"become":  actBecome,
	"elf":     actELF,
	"exit":    func(a []string) { os.Exit(number(a[0])) },
}

func actorMain() {
	signal.Reset() // whatever the packages of the init have subscribed to
	part := actors[os.Args[1]]
	if part == nil {
		fail(fmt.Errorf("no part %q", os.Args[1]))
	}
	part(os.Args[2:])
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "actor:", err)
	os.Exit(98)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fail(err)
	}
	return n
}

// stay is for ever: without a sleeper the runtime would call it a deadlock.
func stay() {
	for {
		time.Sleep(time.Hour)
	}
}

// actTrap prints "ready", then the name of each signal that comes. An argument
// SIG=N ends it with status N at that signal, an argument that is a duration
// that long after it.
func actTrap(args []string) {
	exits := map[syscall.Signal]int{}
	pause := time.Duration(0)
	for _, a := range args {
		name, status, ok := strings.Cut(a, "=")
		if !ok {
			pause, _ = time.ParseDuration(a)
			continue
		}
		sig, err := signals.Parse(name)
		if err != nil {
			fail(err)
		}
		exits[sig] = number(status)
	}
	c := make(chan os.Signal, 64)
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != syscall.SIGURG {
			signal.Notify(c, sig)
		}
	}
	fmt.Println("ready")
	for s := range c {
		sig := s.(syscall.Signal)
		fmt.Println("got", signals.Name(sig))
		if status, ok := exits[sig]; ok {
			time.Sleep(pause)
			os.Exit(status)
		}
	}
}

// actIgnore ignores the named signals, prints "ready" and stays.
func actIgnore(args []string) {
	for _, a := range args {
		sig, err := signals.Parse(a)
		if err != nil {
			fail(err)
		}
		signal.Ignore(sig)
	}
	fmt.Println("ready")
	stay()
}

// actOrphans makes orphans that end at once, from several threads, and stays.
func actOrphans(args []string) {
	n := number(args[0])
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range n / 4 {
				// The shell ends, and what it started is an orphan.
				if err := exec.Command("/bin/sh", "-c", "(exit 0) & (exit 1) & exit 0").Run(); err != nil {
					fail(err)
				}
			}
		})
	}
	all.Wait()
	fmt.Println("all made")
	if len(args) > 1 {
		os.Exit(number(args[1]))
	}
	stay()
}

// actFDs prints the descriptors that it was started with: what is not
// close-on-exec. It needs no /proc. Then it runs what follows, if anything.
func actFDs(args []string) {
	var open []string
	for fd := range 1024 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			open = append(open, strconv.Itoa(fd))
		}
	}
	fmt.Println("fds", strings.Join(open, " "))
	if len(args) > 0 {
		become(args)
	}
}

func become(args []string) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		fail(err)
	}
	fail(syscall.Exec(path, args, syscall.Environ()))
}

// actDaemon runs a command as a daemon: in a session of its own, and with a
// parent that has ended. With -clear its environment is empty.
func actDaemon(args []string) {
	cmd := exec.Command(args[0], args[1:]...)
	if args[0] == "-clear" {
		path, err := exec.LookPath(args[1])
		if err != nil {
			fail(err)
		}
		cmd = &exec.Cmd{Path: path, Args: args[1:], Env: []string{}}
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	fmt.Println("daemon", cmd.Process.Pid)
}

// actFlood writes for ever.
func actFlood([]string) {
	line := []byte(strings.Repeat("x", 120) + "\n")
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			return
		}
	}
}

// actForker starts children faster than they can be found one by one: each
// ignores TERM, lives shortly, and starts its own successor.
func actForker(args []string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	left := number(args[0])
	if len(args) == 1 {
		fmt.Println("ready")
	}
	for ; left > 0; left-- {
		cmd := exec.Command("sleep", "100")
		if cmd.Start() != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stay()
}

// actEnter runs a command in the PID and mount namespace of a process, as
// docker exec does: its parent is outside.
func actEnter(args []string) {
	runtime.LockOSThread()
	for _, ns := range []string{"pid", "mnt"} {
		f, err := os.Open("/proc/" + args[0] + "/ns/" + ns)
		if err != nil {
			fail(err)
		}
		if ns == "mnt" {
			// Only a thread that shares nothing with others may change it.
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				fail(err)
			}
		}
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			fail(err)
		}
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	fmt.Println("entered", cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		fmt.Println("entered one ended:", err)
		os.Exit(cmd.ProcessState.ExitCode())
	}
}

// actLimit becomes a command with a soft limit of open files.
func actLimit(args []string) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		fail(err)
	}
	l.Cur = uint64(number(args[0]))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		fail(err)
	}
	become(args[1:])
}

// actBecome becomes another user, where the file of the actor is setuid root, and
// then a command.
func actBecome(args []string) {
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		fail(err)
	}
	if err := becomeUser(number(args[0])); err != nil {
		fail(err)
	}
	become(args[1:])
}

// actELF writes an executable of this machine that has nothing but the name of
// its dynamic loader.
func actELF(args []string) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		fail(err)
	}
	interp := append([]byte(args[1]), 0)
	const header, segment = 64, 56
	file := append([]byte(nil), self[:header]...) // class, byte order and machine are ours
	binary.LittleEndian.PutUint64(file[32:], header)
	binary.LittleEndian.PutUint64(file[40:], 0) // no sections
	binary.LittleEndian.PutUint16(file[54:], segment)
	binary.LittleEndian.PutUint16(file[56:], 1)
	binary.LittleEndian.PutUint16(file[60:], 0)
	ph := make([]byte, segment)
	binary.LittleEndian.PutUint32(ph, 3) // PT_INTERP
	binary.LittleEndian.PutUint64(ph[8:], header+segment)
	binary.LittleEndian.PutUint64(ph[32:], uint64(len(interp)))
	binary.LittleEndian.PutUint64(ph[40:], uint64(len(interp)))
	file = append(append(file, ph...), interp...)
	if err := os.WriteFile(args[0], append(file, make([]byte, 4096)...), 0o755); err != nil {
		fail(err)
	}
}
