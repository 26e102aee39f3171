package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for something that has to come: long enough for
// a slow machine under the race detector, and never slept in full by a test
// that passes.
const patience = 20 * time.Second

// skip leaves a test out where the machine can't run it. Where DRAINIT_CI is
// set nothing may be left out.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatal("may not be skipped with DRAINIT_CI set: " + why)
	}
	t.Skip(why)
}

// needPID1 skips where no PID namespace can be made.
func needPID1(t testing.TB) {
	t.Helper()
	if err := canPID1(); err != nil {
		skip(t, "no PID namespace to be had: "+err.Error())
	}
}

var canPID1 = sync.OnceValue(func() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root")
	}
	cmd := exec.Command("stage", "-proc", "true")
	cmd.SysProcAttr = container(&syscall.SysProcAttr{})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// needRoot skips where the test is run by another user.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "needs root")
	}
}

// container adds the namespaces of a container.
func container(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	attr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS
	return attr
}

// program is what is started, and how.
type program struct {
	pid1  bool     // as PID 1 of a PID and mount namespace of its own
	stage []string // further options of stage; without one of -proc, -noproc, -hidepid: -proc
	argv  []string
	env   []string // nil: quietEnv
	dir   string
	stdin *os.File // nil: /dev/null
	out   *os.File // standard output; nil: into the log
	err   *os.File // standard error; nil: into the log
	extra []*os.File
	tty   bool // stdin is a terminal and becomes the controlling one
	log   string
}

// process is a program that runs.
type process struct {
	t    testing.TB
	pid  int // as the test sees it
	log  string
	done chan struct{} // closed when it has ended
	cmd  *exec.Cmd
	took time.Duration // from the start to the end
	from time.Time
}

// quietEnv is the test's own environment without an announcement, hooks or
// probes of this machine.
func quietEnv(more ...string) []string {
	env := []string{"DRAINIT_PROBE_ADDR=none", "DRAINIT_CONFIG_DIR=none"}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "DRAINIT_") {
			env = append(env, e)
		}
	}
	return append(env, more...)
}

// start starts it; it is killed at the end of the test.
func (r program) start(t testing.TB) *process {
	t.Helper()
	p, err := r.try(t)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r program) try(t testing.TB) (*process, error) {
	argv := r.argv
	if r.pid1 || len(r.stage) > 0 {
		argv = append(append([]string{"stage"}, r.stageOptions()...), argv...)
	}
	log := r.log
	if log == "" {
		log = filepath.Join(t.TempDir(), "log")
	}
	logFile, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	p := &process{t: t, log: log, done: make(chan struct{}), from: time.Now()}
	path, err := lookPath(argv[0], r.env)
	if err != nil {
		return nil, err
	}
	p.cmd = &exec.Cmd{Path: path, Args: argv, Env: r.env, Dir: r.dir, ExtraFiles: r.extra}
	if r.env == nil {
		p.cmd.Env = quietEnv()
	}
	p.cmd.Stdout, p.cmd.Stderr = logFile, logFile
	if r.stdin != nil {
		p.cmd.Stdin = r.stdin
	}
	if r.out != nil {
		p.cmd.Stdout = r.out
	}
	if r.err != nil {
		p.cmd.Stderr = r.err
	}
	attr := &syscall.SysProcAttr{}
	if r.tty {
		attr.Setsid, attr.Setctty = true, true
	} else {
		attr.Setpgid = true
	}
	if r.pid1 {
		attr = container(attr)
	}
	p.cmd.SysProcAttr = attr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = p.cmd.Process.Pid
	go func() {
		_ = p.cmd.Wait()
		p.took = time.Since(p.from)
		close(p.done)
	}()
	t.Cleanup(p.end)
	return p, nil
}

func (r program) stageOptions() []string {
	if !r.pid1 {
		return r.stage
	}
	for _, o := range r.stage {
		if o == "-noproc" || o == "-hidepid" {
			return r.stage
		}
	}
	return append([]string{"-proc"}, r.stage...)
}

// lookPath finds a program in the PATH of env.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for i := len(env) - 1; i >= 0; i-- {
		path, ok := strings.CutPrefix(env[i], "PATH=")
		if !ok {
			continue
		}
		for dir := range strings.SplitSeq(path, ":") {
			if found, err := exec.LookPath(dir + "/" + name); err == nil {
				return found, nil
			}
		}
	}
	return exec.LookPath(name)
}

// end kills what is left of it at the end of the test.
func (p *process) end() {
	select {
	case <-p.done:
		return
	default:
	}
	for _, pid := range descendants(p.pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.done
}

// kill signals it.
func (p *process) kill(sig syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.pid, sig); err != nil {
		p.t.Errorf("kill %v: %v", sig, err)
	}
}

// output is what it has written so far.
func (p *process) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

// waitLog waits until the output matches and returns the match with its groups.
func (p *process) waitLog(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for end := time.Now().Add(patience); ; {
		over := false
		select {
		case <-p.done:
			over = true
		default:
		}
		if m := re.FindStringSubmatch(p.output()); m != nil {
			return m
		}
		if over {
			p.t.Fatalf("ended (%d) without %q in its output:\n%s", p.cmd.ProcessState.ExitCode(), pattern, p.output())
		}
		if time.Now().After(end) {
			p.t.Fatalf("no %q in the output:\n%s", pattern, p.output())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// ready waits until the init's workload has been started.
func (p *process) ready() *process {
	p.t.Helper()
	p.waitLog("workload started")
	return p
}

// status waits for the end and returns the status as a shell counts it.
func (p *process) status() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("has not ended after %v; output:\n%s\ntree:\n%s", patience, p.output(), tree(p.pid))
	}
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// want waits for the end and holds the status against what is expected.
func (p *process) want(status int) {
	p.t.Helper()
	if got := p.status(); got != status {
		p.t.Errorf("status %d, want %d; output:\n%s", got, status, p.output())
	}
}

// has tells whether the output so far matches.
func (p *process) has(pattern string) bool {
	return regexp.MustCompile("(?m)" + pattern).MatchString(p.output())
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
