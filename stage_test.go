package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageMain prepares the namespaces that it was started in, and then becomes
// the command: as the first process of a PID namespace it makes that PID 1.
//
//	stage [-proc|-noproc|-hidepid] [-readonly] [-user] [-pause] COMMAND [ARG...]
func stageMain() {
	args := os.Args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if err := stageStep(args[0]); err != nil {
			fmt.Fprintln(os.Stderr, "stage:", args[0], err)
			os.Exit(99)
		}
		args = args[1:]
	}
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, syscall.Environ())
	}
	fmt.Fprintln(os.Stderr, "stage:", args[0], err)
	os.Exit(99)
}

const nobody = 65534

func stageStep(option string) error {
	private := func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }
	switch option {
	case "-proc":
		if err := private(); err != nil {
			return err
		}
		return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	case "-hidepid":
		if err := private(); err != nil {
			return err
		}
		return unix.Mount("proc", "/proc", "proc", 0, "hidepid=2")
	case "-noproc":
		if err := private(); err != nil {
			return err
		}
		return unix.Mount("none", "/proc", "tmpfs", unix.MS_RDONLY, "")
	case "-readonly":
		return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	case "-user":
		return becomeUser(nobody)
	case "-pause": // the other end of descriptor 3 says when to go on
		var b [1]byte
		_, _ = unix.Read(3, b[:])
		return unix.Close(3)
	}
	if n, ok := strings.CutPrefix(option, "-uid="); ok {
		uid, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		return becomeUser(uid)
	}
	return fmt.Errorf("unknown option")
}

// becomeUser gives up every group and capability.
func becomeUser(uid int) error {
	if err := unix.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(uid); err != nil {
		return err
	}
	return syscall.Setuid(uid)
}
