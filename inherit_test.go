package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInheritedDescriptors: what a supervisor passes on (LISTEN_FDS, a make
// jobserver) reaches the workload, and the init keeps no copy: when the workload
// closes it, it is closed. A hook gets none of it.
func TestInheritedDescriptors(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		dir := hookDir(t, map[string]string{"10-fds": "#!/bin/sh\nexec actor fds\n"})
		p := program{pid1: pid1, extra: []*os.File{w}, argv: []string{"drainit", "--config-dir", dir, "--",
			"actor", "fds", "sh", "-c", "echo through >&3; exec 3>&-; exec actor trap TERM=3"}}.start(t)
		w.Close()
		done := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(r) // ends when nobody holds it any more
			done <- string(b)
		}()
		select {
		case got := <-done:
			if got != "through\n" {
				t.Errorf("read %q", got)
			}
		case <-time.After(patience):
			t.Error("somebody keeps the descriptor open:", p.output())
		}
		p.waitLog("^fds 0 1 2 3$")
		p.waitLog("^ready")
		p.kill(syscall.SIGTERM)
		p.want(3)
		if !p.has(`line="fds 0 1 2"`) {
			t.Error("a stray descriptor in the hook:", p.output())
		}
	})
}

// TestStepsInheritNothing: what is started before the workload gets none of it
// either, and the workload still all.
func TestStepsInheritNothing(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		dir := hookDir(t, nil)
		for _, d := range []string{"lifecycle.d", "background.d"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
			script := "#!/bin/sh\nexec actor fds sleep 1000\n"
			if d == "lifecycle.d" {
				script = "#!/bin/sh\nexec actor fds\n"
			}
			if err := os.WriteFile(filepath.Join(dir, d, "10-fds"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		p := program{pid1: pid1, extra: []*os.File{null, null}, argv: []string{"drainit", "--config-dir", dir, "--",
			"actor", "fds", "actor", "trap", "TERM=3"}}.start(t)
		null.Close()
		p.waitLog("^fds 0 1 2 3 4$")
		p.waitLog(`step=fds line="fds 0 1 2"`)
		p.waitLog(`companion=fds line="fds 0 1 2"`)
		p.waitLog("^ready")
		p.kill(syscall.SIGTERM)
		p.want(3)
	})
}

// TestHookThatComesAtOnce: also where the workload has ended before the init
// has settled, its hooks get none of the inherited descriptors.
func TestHookThatComesAtOnce(t *testing.T) {
	t.Parallel()
	needPID1(t)
	runs := 30
	if testing.Short() {
		runs = 10
	}
	dir := hookDir(t, map[string]string{"10-fds": "#!/bin/sh\nexec actor fds\n"})
	for range runs {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		p := program{pid1: true, extra: []*os.File{null, null, null}, argv: []string{"drainit", "--config-dir", dir, "--", "true"}}.start(t)
		null.Close()
		p.want(0)
		if !p.has(`line="fds 0 1 2"`) {
			t.Fatal("a stray descriptor in the hook:", p.output())
		}
	}
}

// TestHoldsNothing: the init's own directory is /, and its standard input and
// output are not the container's.
func TestHoldsNothing(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		p := program{pid1: pid1, out: w, dir: t.TempDir(), argv: []string{"drainit", "--", "sh", "-c", "exec >&-; exec sleep 600"}}.start(t)
		w.Close()
		if _, err := io.ReadAll(r); err != nil { // ends although the init runs
			t.Error(err)
		}
		eventually(t, "the init's directory is /", func() bool {
			dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.pid))
			return dir == "/"
		})
		p.kill(syscall.SIGTERM)
		p.want(143)
	})
}

// TestBusyFile: a program that somebody still writes is waited for shortly, and
// refused with the reason when that takes too long (ETXTBSY).
func TestBusyFile(t *testing.T) {
	t.Parallel()
	needPID1(t)
	path, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "busy")
	// The copy is written by another process, since a descriptor of ours would
	// live on in whatever another test forks meanwhile.
	if err := os.WriteFile(file+".in", text, 0o755); err != nil {
		t.Fatal(err)
	}
	hold := func(d string) *process {
		h := program{argv: []string{"sh", "-c", fmt.Sprintf("umask 022; cat %s.in > %s; chmod 755 %s; exec 9>>%s; echo held; exec sleep %s", file, file, file, file, d)}}.start(t)
		h.waitLog("held")
		return h
	}
	h := hold("600")
	p := program{pid1: true, argv: []string{"drainit", "--", file}}.start(t)
	p.want(126)
	if !p.has("text file busy") {
		t.Error(p.output())
	}
	h.end()
	if !raceEnabled { // else the start may take longer than the file is held
		hold("0.03")
	}
	program{pid1: true, argv: []string{"drainit", "--", file}}.start(t).want(0)
}

// TestLargeEnvironment: what the kernel would pass to the command it also passes
// through the init.
func TestLargeEnvironment(t *testing.T) {
	t.Parallel()
	needPID1(t)
	env := quietEnv("LARGEST=" + strings.Repeat("x", 128<<10-len("LARGEST=")-1))
	for i := range 12 {
		env = append(env, fmt.Sprintf("BIG%d=%s", i, strings.Repeat("y", 100<<10)))
	}
	p := program{pid1: true, env: env, argv: []string{"drainit", "--", "sh", "-c", "echo ${#LARGEST} ${#BIG11}"}}.start(t)
	p.want(0)
	if !p.has("^131063 102400$") {
		t.Error(p.output())
	}
}

// TestDuplicateVariables: of a variable that is there twice, the first stays,
// as the Go runtime has it (syscall.Environ). Documented.
func TestDuplicateVariables(t *testing.T) {
	t.Parallel()
	needPID1(t)
	drainit, err := exec.LookPath("drainit")
	if err != nil {
		t.Fatal(err)
	}
	// os/exec and the stage keep one of them, so the shell's exec is not used
	// either: the init is started by the system call itself.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid, err := syscall.ForkExec(drainit, []string{"drainit", "--", "/usr/bin/env"}, &syscall.ProcAttr{
		Env:   []string{"DUP=1", "DRAINIT_PROBE_ADDR=none", "DRAINIT_LOG_LEVEL=error", "DRAINIT_CONFIG_DIR=none", "DUP=2", "PATH=/bin:/usr/bin", "noequals"},
		Files: []uintptr{0, w.Fd(), w.Fd()},
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	got := regexp.MustCompile("(?m)^DRAINIT_SOCKET=.*\n").ReplaceAllString(string(b), "")
	want := "DUP=1\nDRAINIT_PROBE_ADDR=none\nDRAINIT_LOG_LEVEL=error\nDRAINIT_CONFIG_DIR=none\nPATH=/bin:/usr/bin\nnoequals\n"
	if got != want {
		t.Errorf("got:\n%swant:\n%s", b, want)
	}
}

// TestFullProcessTable: the workload has used up every process that its user
// may have. The init still takes in signals, and a phase that can't be started
// is one that failed.
func TestFullProcessTable(t *testing.T) {
	t.Parallel()
	needPID1(t)
	needRoot(t)
	dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\n:\n"})
	if err := os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p := program{pid1: true, stage: []string{"-uid=61234"}, argv: []string{"sh", "-c",
			// The limit counts the init's own threads too.
			`ulimit -p 60 2>/dev/null || ulimit -u 60; exec drainit --config-dir none --grace-period 10 -- sh -c '
				echo up; sleep 0.3; (while :; do sleep 600 & done); echo full; exec sleep 600'`}}.start(t)
		p.waitLog("^full")
		for range 20 {
			for _, s := range []syscall.Signal{syscall.SIGCHLD, syscall.SIGURG, syscall.SIGWINCH, syscall.SIGCONT} {
				p.kill(s)
			}
		}
		p.kill(syscall.SIGTERM)
		p.want(143)
	}
}

// TestOldKernel: system calls that old kernels and strict seccomp profiles
// refuse are not needed.
func TestOldKernel(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		skip(t, "no strace")
	}
	dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\necho hi\n"})
	for _, errno := range []string{"ENOSYS", "EPERM"} {
		p := program{argv: []string{strace, "-f", "-o", "/dev/null", "-e",
			"inject=pidfd_open,pidfd_send_signal,close_range,faccessat,faccessat2,statx,openat2,epoll_pwait2,io_uring_setup:error=" + errno,
			"drainit", "--config-dir", dir, "--", "sh", "-c", "sleep 0.1; exit 7"}}.start(t)
		p.want(7)
		if !p.has("phase ended.*result=ok") {
			t.Error(errno, p.output())
		}
	}
}
