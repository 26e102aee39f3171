package child

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what to start and how. The zero value of each option is the plain
// one.
type Spec struct {
	Argv []string // Argv[0] is looked up as execvp(3) does
	Env  []string // passed on as it is
	Dir  string   // working directory; empty: the init's own
	// Name is the value of DRAINIT_HOOK in Env, by which the processes that a
	// hook leaves behind are known; empty for the workload.
	Name string
	// Kind is the value of DRAINIT_HOOK_KIND in Env, since a name is unique among
	// the hooks of a kind only.
	Kind string
	// Supervises: it tells what it has started to stop itself, as an init below
	// this one does, so that nobody is told twice. TERM goes to its own process
	// group, and to those whose parent is gone.
	Supervises bool
	// Keep: what a hook leaves behind when it exits with 0 is not killed but stays
	// its own, until Forget: it is not the workload's, and SignalLeft reaches it.
	// It is given up by SignalHook: one that was told to stop leaves nothing.
	Keep bool
	// Session gives the process a session of its own (hooks); otherwise it
	// leads a process group of its own in the init's session (the workload).
	Session bool
	// Foreground puts its group in the foreground of the terminal on standard
	// input. The caller has made sure that there is one (Terminal).
	Foreground bool
	// DieWithInit: the kernel sends it KILL when the init dies, as far as
	// PR_SET_PDEATHSIG(2const) goes: the direct child only, and not after it
	// has changed its user.
	DieWithInit bool
	// Inherit are descriptors from 3 on that it gets under their own numbers,
	// close-on-exec as they may be.
	Inherit []int
	// Check is asked first, by the goroutine that forks, so that a file system
	// that does not answer holds up nobody else; nil: nothing is.
	Check func() error
	// Output takes what the process prints on its standard output and error,
	// line by line, from a goroutine of its own; nil: both are inherited, and
	// standard input too, which is /dev/null otherwise. What it left behind and is
	// kept goes on being read.
	Output func(line string)
}

// StartError is a COMMAND that could not be started. Status is what a shell
// exits with then: 127 when it, or its interpreter, was not found, else 126.
type StartError struct {
	Name   string
	Reason string
	Hint   string
	Status int
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %q: %s", e.Name, e.Reason) }
func (e *StartError) Unwrap() error { return e.Err }

// defaultPath is where execvp(3) looks when PATH is not set.
const defaultPath = "/bin:/usr/bin"

// run starts the process and returns its pid. It is called on the forking
// thread alone, and blocks until execve(2) is done.
func run(s *Spec, files []uintptr) (int, error) {
	name := s.Argv[0]
	if name == "" {
		return 0, &StartError{Name: name, Reason: "the command is empty", Status: 127, Err: fs.ErrNotExist}
	}
	if strings.Contains(name, "/") {
		pid, err := try(s, name, files)
		return pid, explain(name, name, err)
	}
	return search(s, name, files)
}

// search tries the directories of PATH in order. As in execvp(3), one that
// may not be entered, a file that may not be executed, or one whose interpreter
// is missing does not end the search, but is what is reported when nothing else
// is found.
func search(s *Spec, name string, files []uintptr) (int, error) {
	var denied, broken string
	for dir := range strings.SplitSeq(path(s.Env), ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		// Only what is there is tried, since each attempt costs a fork. The
		// kernel alone says whether it may be executed: access(2) and its like
		// answer for other credentials, and a seccomp profile may refuse them.
		if _, err := os.Stat(resolve(s.Dir, file)); err != nil {
			if errors.Is(err, fs.ErrPermission) {
				denied = cmp.Or(denied, file)
			}
			continue
		}
		pid, err := try(s, file, files)
		if err == nil {
			return pid, nil
		}
		switch {
		case errors.Is(err, syscall.EACCES):
			denied = cmp.Or(denied, file)
		case errors.Is(err, fs.ErrNotExist):
			broken = cmp.Or(broken, file)
		default:
			return 0, explain(name, file, err)
		}
	}
	switch {
	case denied != "":
		return 0, explain(name, denied, syscall.EACCES)
	case broken != "":
		return 0, explain(name, broken, syscall.ENOENT)
	}
	return 0, &StartError{Name: name, Reason: "executable file not found in $PATH", Status: 127, Err: fs.ErrNotExist}
}

// resolve is where a relative file name lies for a process that starts in dir.
func resolve(dir, file string) string {
	if dir == "" || strings.HasPrefix(file, "/") {
		return file
	}
	return dir + "/" + file
}

// path returns the value of PATH in env.
func path(env []string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return defaultPath
}

// busyRetries and busyPause bound the wait for a file that somebody still has
// open for writing (ETXTBSY): in a process that forks, a descriptor lives on in
// the child until its execve(2) (golang.org/issue/22315).
const (
	busyRetries = 10
	busyPause   = 10 * time.Millisecond
)

// try executes one file. A script without an interpreter line is run by
// /bin/sh, as execvp(3) does.
func try(s *Spec, file string, files []uintptr) (int, error) {
	attr := &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files, Sys: &syscall.SysProcAttr{
		Setsid: s.Session, Setpgid: !s.Session, Foreground: s.Foreground,
	}}
	if s.DieWithInit {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	pid, err := syscall.ForkExec(file, s.Argv, attr)
	for i := 0; errors.Is(err, syscall.ETXTBSY) && i < busyRetries; i++ {
		time.Sleep(busyPause)
		pid, err = syscall.ForkExec(file, s.Argv, attr)
	}
	if errors.Is(err, syscall.ENOEXEC) {
		argv := append([]string{"/bin/sh", file}, s.Argv[1:]...)
		if shPid, shErr := syscall.ForkExec("/bin/sh", argv, attr); shErr == nil {
			return shPid, nil
		}
	}
	return pid, err
}

// forkMask is the mask of the thread that forks while it does: it blocks
// nothing, since children inherit it (fork(2)), whatever the init itself was
// started with.
func forkMask() {
	var none unix.Sigset_t
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil) // fails only on a bad argument
}

// restMask is its mask the rest of the time. The kernel offers the SIGCHLD of a
// child to the thread that forked it first; blocked there, it goes to the one
// that waits for it, which spares two threads the waking of each other.
func restMask() {
	var set unix.Sigset_t
	set.Val[0] = 1 << (uint(syscall.SIGCHLD) - 1)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &set, nil)
}
