//go:build linux && !race

package containers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// spec is a container to be run.
type spec struct {
	stage string            // of the image; "": base
	env   map[string]string // settings: their names without DRAINIT_
	opts  []string          // of docker run
	argv  []string          // in place of the image's CMD
	port  int               // of the probes, in the machine's network; 0: none, and no network
}

// args is the command line of docker run behind its mode.
func (s spec) args(name string) []string {
	if s.stage == "" {
		s.stage = "base"
	}
	args := []string{"--name", name}
	for k, v := range s.env {
		args = append(args, "--env", "DRAINIT_"+k+"="+v)
	}
	if s.port == 0 {
		if !slices.Contains(s.opts, "--network") {
			args = append(args, "--network", "none")
		}
	} else {
		args = append(args, "--network", "host", "--env", "DRAINIT_PROBE_ADDR=127.0.0.1:"+itoa(s.port))
	}
	return append(append(append(args, s.opts...), image(s.stage)), s.argv...)
}

// box is a container, and the client that has started it.
type box struct {
	*printer
	name string
}

// nameOf makes a container's name of a test's.
func nameOf(t *testing.T) string {
	return regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(t.Name(), "-")
}

// run runs it in the foreground of a client; it is removed at the end of the test.
func (s spec) run(t *testing.T) *box { return s.runAs(t, nameOf(t)) }

func (s spec) runAs(t *testing.T, name string) *box {
	t.Helper()
	b := &box{name: name}
	b.cleanUp(t)
	b.printer = runPrinter(t, docker(append([]string{"run", "--sig-proxy=false"}, s.args(name)...)...))
	return b
}

// cleanUp removes the container at the end of the test, whatever came of it.
func (b *box) cleanUp(t *testing.T) {
	t.Cleanup(func() {
		_ = docker("rm", "--force", "--volumes", b.name).Run()
	})
}

// inspect asks the engine.
func (b *box) inspect() state {
	b.t.Helper()
	var s state
	if err := ask("/containers/"+b.name+"/json", &s); err != nil {
		b.t.Fatal(err)
	}
	return s
}

// stop is docker stop, and how long it took. The container has to be at its end
// by itself: of the engine it gets one signal.
func (b *box) stop(signal string, opts ...string) time.Duration {
	b.t.Helper()
	from := time.Now()
	dockerDo(b.t, append(append([]string{"stop"}, opts...), b.name)...)
	took := time.Since(from)
	b.gotOnly(signal)
	return took
}

// gotOnly: the engine has sent these signals, and no KILL after them.
func (b *box) gotOnly(signals ...string) {
	b.t.Helper()
	if got := killed(b.t, b.inspect().ID); !slices.Equal(got, signals) {
		b.t.Errorf("the engine has sent the signals %q, want %q", got, signals)
	}
}

// want waits for the end and holds the status against what is expected, as the
// engine tells it and as its client does.
func (b *box) want(status int) {
	b.t.Helper()
	if got := b.status(); got != status {
		b.t.Errorf("status %d, want %d; output:\n%s", got, status, b.output())
	}
	if s := b.inspect(); s.State.ExitCode != status || s.State.Status != "exited" {
		b.t.Errorf("the engine says %s (%d, %s), want exited (%d)", s.State.Status, s.State.ExitCode, s.State.Error, status)
	}
}

// printer is a program that runs, and prints to a file.
type printer struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// runPrinter starts it; it is killed at the end of the test.
func runPrinter(t *testing.T, cmd *exec.Cmd) *printer {
	t.Helper()
	p := &printer{t: t, cmd: cmd, log: filepath.Join(t.TempDir(), "log"), done: make(chan struct{})}
	f, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = f, f
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the status is in ProcessState
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails where it has ended
		<-p.done
		if t.Failed() {
			t.Logf("output of %s:\n%s", strings.Join(cmd.Args, " "), p.output())
		}
	})
	return p
}

// output is what has been printed so far.
func (p *printer) output() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

// has tells whether it matches.
func (p *printer) has(pattern string) bool {
	return regexp.MustCompile("(?m)" + pattern).MatchString(p.output())
}

// wait waits until it matches, and returns the match with its groups.
func (p *printer) wait(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		over := false
		select {
		case <-p.done:
			over = true
		default:
		}
		if m := re.FindStringSubmatch(p.output()); m != nil {
			return m
		}
		if over || time.Now().After(end) {
			p.t.Fatalf("no %q in the output (ended: %t):\n%s", pattern, over, p.output())
		}
	}
}

// ready waits until the workload runs, and is known to.
func (p *printer) ready() {
	p.t.Helper()
	p.wait("^ready")
	p.wait(`msg="workload started"`)
}

// bothReady waits for a workload and its daemon.
func (p *printer) bothReady() {
	p.t.Helper()
	p.wait("(?s)^ready.*^ready")
}

// status waits for the end.
func (p *printer) status() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("has not ended after %v; output:\n%s", patience, p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}

// inOrder: each pattern matches, behind the one before.
func (p *printer) inOrder(patterns ...string) {
	p.t.Helper()
	rest := p.output()
	for _, pattern := range patterns {
		at := regexp.MustCompile("(?m)" + pattern).FindStringIndex(rest)
		if at == nil {
			p.t.Errorf("no %q in its place; output:\n%s", pattern, p.output())
			return
		}
		rest = rest[at[1]:]
	}
}

// quiet: nothing was worth a warning, and nothing was refused.
func (p *printer) quiet() {
	p.t.Helper()
	if m := regexp.MustCompile(`(?m)^.*(level=WARN|level=ERROR|^drainit: ).*$`).FindString(p.output()); m != "" {
		p.t.Errorf("warns: %s", m)
	}
}

// total is what the log tells of the shutdown's length.
func (p *printer) total() time.Duration {
	p.t.Helper()
	d, err := time.ParseDuration(p.wait(`msg="shutdown complete".* total=(\S+)`)[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// at is when the first line that matches was logged.
func (p *printer) at(pattern string) time.Time {
	p.t.Helper()
	when, err := time.Parse(time.RFC3339Nano, p.wait(`^time=(\S+) .*` + pattern)[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return when
}
