//go:build linux

package rolling

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	replicas = 3
	// clients of each kind, with keep-alive connections and without.
	clients = 32

	checkInterval = 200 * time.Millisecond
	checkFall     = 2
	checkTimeout  = time.Second
	// longestRequest is what a workload may take to answer.
	longestRequest = 200 * time.Millisecond
	// announceDelay is what an operator has to work out: the balancer takes
	// notice after fall checks and one check's timeout, and what it sent until
	// then has to end. The rest is for a machine that is slow to do either.
	announceDelay = checkFall*checkInterval + checkTimeout + longestRequest + 400*time.Millisecond
	gracePeriod   = 30 * time.Second

	// patience is how long anything may take before the test gives up on it. It
	// says nothing about how long things should take.
	patience = time.Minute
)

// ci is the variable that turns a skip into a failure.
const ci = "DRAINIT_CI"

// drainit is the binary under test; TestMain sets it, once.
var drainit string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == containerArg {
		fmt.Fprintln(os.Stderr, enterContainer(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rolling")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	drainit = filepath.Join(dir, "drainit")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", drainit, ".")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// workload is a program that serves, and how it is told to stop.
type workload struct {
	name string
	// argv makes the command of a replica that listens on port and may write
	// to dir.
	argv func(s *scene, port int, dir string) ([]string, error)
	// stop is its stop signal: what drainit sends to it, and what an
	// orchestrator sends to an init that passes signals on (STOPSIGNAL).
	stop syscall.Signal
	// status is the exit status with which it ends at stop.
	status int
}

// initSystem is a PID 1.
type initSystem struct {
	name string
	argv func(w workload, r *replica) []string
	// probed: the init has a readiness of its own.
	probed bool
	// stop is what the orchestrator sends.
	stop func(w workload) syscall.Signal
	// requests is how many there are at least of each kind of client.
	requests int
}

func underDrainit() initSystem {
	return initSystem{
		name: "drainit", probed: true, requests: 5000,
		argv: func(w workload, r *replica) []string {
			return []string{
				drainit, "--platform", "docker", "--config-dir", "none", "--strict-budget",
				"--grace-period", gracePeriod.String(), "--announce-delay", announceDelay.String(),
				"--probe-addr", "127.0.0.1:" + strconv.Itoa(r.Probe),
				"--stop-signal", strconv.Itoa(int(w.stop)), "--",
			}
		},
		stop: func(workload) syscall.Signal { return syscall.SIGTERM },
	}
}

func underTini() initSystem {
	return initSystem{
		name: "tini", requests: 1000,
		argv: func(workload, *replica) []string { return []string{"tini", "--"} },
		stop: func(w workload) syscall.Signal { return w.stop },
	}
}

func nginx() workload {
	return workload{name: "nginx", stop: syscall.SIGQUIT, status: 0,
		argv: func(s *scene, port int, dir string) ([]string, error) {
			conf := filepath.Join(dir, "nginx.conf")
			err := fill("testdata/nginx.conf", conf, map[string]any{"Dir": dir, "Port": port, "Upstream": s.upstream})
			return []string{"nginx", "-p", dir, "-e", "stderr", "-c", conf}, err
		}}
}

func python() workload {
	return workload{name: "python", stop: syscall.SIGTERM, status: 128 + int(syscall.SIGTERM),
		argv: func(_ *scene, port int, _ string) ([]string, error) {
			script, err := filepath.Abs("testdata/server.py")
			return []string{pythonPath(), script, strconv.Itoa(port)}, err
		}}
}

// pythonPath prefers the system's python: what comes first in PATH may be a
// wrapper that takes its time.
func pythonPath() string {
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err == nil {
		return system
	}
	return "python3"
}

// TestDrainitLosesNothing: each request of the replacement is answered in full,
// each replica ends by itself, with the workload's status.
func TestDrainitLosesNothing(t *testing.T) {
	for _, w := range []workload{nginx(), python()} {
		t.Run(w.name, func(t *testing.T) {
			for kind, c := range replace(t, w, underDrainit()) {
				if c.lost() > 0 {
					t.Errorf("%s: lost %d of %d", kind, c.lost(), c.total())
				}
			}
		})
	}
}

// TestTiniLosesSome: the same replacement can lose requests, so that the other
// test means something.
func TestTiniLosesSome(t *testing.T) {
	for _, w := range []workload{nginx(), python()} {
		t.Run(w.name, func(t *testing.T) {
			for kind, c := range replace(t, w, underTini()) {
				if c.lost() == 0 {
					t.Errorf("%s: lost none of %d: this shows nothing", kind, c.total())
				}
			}
		})
	}
}

// replace replaces all replicas under load, and returns what the clients counted,
// by kind. A port that somebody else took meanwhile makes the attempt void.
func replace(t *testing.T, w workload, in initSystem) map[string]count {
	t.Helper()
	need(t)
	watchSources(t)
	for attempt := 1; ; attempt++ {
		s, err := newScene(t, w, in)
		if err == nil {
			err = s.run(t.Context())
		}
		if errors.Is(err, errPortTaken) && attempt < 3 {
			t.Logf("attempt %d is void: %v", attempt, err)
			s.close()
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, s.logs())
		}
		s.close()
		s.report(t)
		return s.counts
	}
}

// report tells the figures, and checks what must hold under any init.
func (s *scene) report(t *testing.T) {
	t.Helper()
	for _, kind := range []string{keepAlive, closing} {
		c := s.counts[kind]
		t.Logf("%-7s %-7s %-10s %s", s.workload.name, s.init.name, kind, c)
		if c.total() < s.init.requests {
			t.Errorf("%s: %d requests, want at least %d", kind, c.total(), s.init.requests)
		}
	}
	t.Logf("%-7s %-7s replicas took %v to stop", s.workload.name, s.init.name, s.stopTimes)
	for _, problem := range s.problems {
		t.Error(problem)
	}
	if t.Failed() {
		t.Log(s.logs())
	}
}

// need skips where a program or a right is missing.
func need(t *testing.T) {
	t.Helper()
	var missing []string
	for _, name := range []string{"haproxy", "nginx", "tini", pythonPath()} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "root, for PID namespaces")
	} else if err := tryContainer(); err != nil {
		missing = append(missing, fmt.Sprintf("PID namespaces: %v", err))
	}
	switch {
	case len(missing) == 0:
	case os.Getenv(ci) == "1":
		t.Fatalf("needs %s", strings.Join(missing, "; "))
	default:
		t.Skipf("needs %s", strings.Join(missing, "; "))
	}
}

// watchSources looks into all of the module's folders. Go takes a test's success
// from its cache until something changes that the test has looked at, and what
// go build reads for it does not count.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another test's, gone meanwhile
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until the answer is yes or an error; what is waited for has no
// event that could be waited on.
func eventually(ctx context.Context, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := ask(); err != nil || ok {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		}
	}
}
