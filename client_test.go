package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drainit/control"
)

// controlled is a control socket in the test, and what it does with each call.
func controlled(t *testing.T, do func(*control.Server, control.Call)) (addr string, calls chan control.Call) {
	t.Helper()
	addr = "@client-test/" + strconv.Itoa(os.Getpid()) + "/" + t.Name()
	s, err := control.Listen(addr, control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(context.Background()) }()
	calls = make(chan control.Call, 10)
	go func() {
		for {
			select {
			case c := <-s.Calls():
				calls <- c
				if !c.Left {
					do(s, c)
				}
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { s.Close(); <-done })
	return addr, calls
}

// verb prepares drainit with these arguments.
func verb(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	path, err := lookPath("drainit", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, argv...)
	cmd.Env = quietEnv()
	return cmd
}

// ended returns the exit status as a shell counts it, and what was printed.
func ended(t *testing.T, cmd *exec.Cmd) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &o
	}
	cmd.Stderr = &e
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), o.String(), e.String()
	}
	return ws.ExitStatus(), o.String(), e.String()
}

func held[T any](v T) *T { return &v }

// TestClientAnswers: what the init answers is what is printed, and the exit status.
func TestClientAnswers(t *testing.T) {
	running := &control.State{State: "running", Readiness: "ready", Service: "<web>", UptimeSeconds: 3723.4}
	draining := &control.State{State: "announce", Readiness: "draining"}
	for name, c := range map[string]struct {
		argv   []string
		answer control.Answer
		status int
		out    string
	}{
		"announce":        {[]string{"announce"}, control.Answer{Text: "done"}, 0, "done\n"},
		"undrain":         {[]string{"undrain"}, control.Answer{Code: 1, Text: "a phase has begun"}, 1, "a phase has begun\n"},
		"drain":           {[]string{"drain"}, control.Answer{Code: 2, Text: "can\x1bcelled"}, 2, "so far\n\"can\\x1bcelled\"\n"},
		"status":          {[]string{"status"}, control.Answer{Status: running}, 0, "state       running, for 0s\nreadiness   ready\nworkload    not started\nservice     <web>\nuptime      1h2m3s\n"},
		"status, JSON":    {[]string{"status", "--json", "--ready"}, control.Answer{Status: running}, 0, `{"state":"running","readiness":"ready","service":"<web>","uptime_seconds":3723.4,"stage_seconds":0}` + "\n"},
		"status, unready": {[]string{"status", "--json", "--ready"}, control.Answer{Status: draining}, 1, `{"state":"announce","readiness":"draining","uptime_seconds":0,"stage_seconds":0}` + "\n"},
		"status, asked":   {[]string{"status", "--json"}, control.Answer{Status: draining}, 0, `{"state":"announce","readiness":"draining","uptime_seconds":0,"stage_seconds":0}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := controlled(t, func(s *control.Server, call control.Call) {
				if call.Request.Verb == control.Drain {
					s.Say(call.ID, "so far")
				}
				s.Answer(call.ID, c.answer)
			})
			status, out, errs := ended(t, verb(t, append(c.argv, "--control", addr)...))
			if status != c.status || out != c.out || errs != "" {
				t.Errorf("%d %q %q", status, out, errs)
			}
		})
	}
}

// TestClientRequest: the settings arrive, by flag or by variable.
func TestClientRequest(t *testing.T) {
	addr, calls := controlled(t, func(s *control.Server, call control.Call) { s.Answer(call.ID, control.Answer{}) })
	cmd := verb(t, "drain", "--budget", "1m30s")
	cmd.Env = append(cmd.Env, "DRAINIT_ANNOUNCE_DELAY=0", "DRAINIT_SOCKET="+addr)
	if status, _, errs := ended(t, cmd); status != 0 {
		t.Errorf("%d %s", status, errs)
	}
	r := (<-calls).Request
	if r.Budget == nil || *r.Budget != 90*time.Second || r.AnnounceDelay == nil || *r.AnnounceDelay != 0 {
		t.Errorf("%+v", r)
	}
	if status, _, errs := ended(t, verb(t, "drain", "--control", addr)); status != 0 {
		t.Errorf("%d %s", status, errs)
	}
	if r := (<-calls).Request; r.Budget != nil || r.AnnounceDelay != nil {
		t.Errorf("%+v", r)
	}
}

// TestClientUnreachable: 69, with one line that says why and one that says what to
// do.
func TestClientUnreachable(t *testing.T) {
	addr, _ := controlled(t, func(s *control.Server, _ control.Call) { s.Close() })
	for name, c := range map[string]struct{ addr, want string }{
		"nobody":    {"@nobody/here", "drainit: ask \"@nobody/here\": connect: connection refused\ndrainit: hint: no init listens there"},
		"no file":   {filepath.Join(t.TempDir(), "x"), "connect: no such file or directory\ndrainit: hint: "},
		"no longer": {addr, "drainit: ask \"" + addr + "\": refused: the init is ending\n"},
	} {
		for _, v := range []string{"drain", "status"} {
			status, out, errs := ended(t, verb(t, v, "--control", c.addr))
			if status != 69 || out != "" || v == "drain" && !strings.Contains(errs, c.want) || !strings.HasPrefix(errs, "drainit: ask ") {
				t.Errorf("%s %s: %d %q %q", name, v, status, out, errs)
			}
		}
	}
	cmd := verb(t, "status")
	cmd.Env = append(cmd.Env, "DRAINIT_SOCKET=none")
	if status, _, errs := ended(t, cmd); status != 69 || !strings.Contains(errs, "turned off") {
		t.Errorf("%d %q", status, errs)
	}
}

// TestClientElsewhere: the init is looked for in two namespaces, and the hint names
// both.
func TestClientElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		skip(t, "makes a network namespace")
	}
	cmd := verb(t, "status")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	status, _, errs := ended(t, cmd)
	if status != 69 || !strings.Contains(errs, "hint: run it inside of the container") || !strings.Contains(errs, "its PID namespace and its network namespace count") {
		t.Errorf("%d %q", status, errs)
	}
}

// TestClientOfAnotherUser: who may not ask learns who may.
func TestClientOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		skip(t, "changes the user")
	}
	addr, _ := controlled(t, func(s *control.Server, call control.Call) { s.Answer(call.ID, control.Answer{}) })
	cmd := verb(t, "announce", "--control", addr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 33, Gid: 33}}
	status, _, errs := ended(t, cmd)
	if want := "refused: user 33 is neither root nor the init's own, 0\ndrainit: hint: run it as the init's own user, or as root: docker exec -u 0\n"; status != 69 || !strings.HasSuffix(errs, want) {
		t.Errorf("%d %q", status, errs)
	}
}

// TestClientFrozen: an init that does not answer, because it is stopped, is
// unreachable; whoever waits for a drain that has begun goes on waiting.
func TestClientFrozen(t *testing.T) {
	s, err := control.Listen("@client-test/"+strconv.Itoa(os.Getpid())+"/frozen", control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close) // nobody serves
	mute, _ := controlled(t, func(*control.Server, control.Call) {})
	for name, c := range map[string]struct{ verb, addr string }{
		"drain": {"drain", s.Addr()}, "status": {"status", s.Addr()}, "taken": {"status", mute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, errs := ended(t, verb(t, c.verb, "--control", c.addr))
			if want := "no answer in time\ndrainit: hint: the init may be stopped or frozen\n"; status != 69 || !strings.HasSuffix(errs, want) {
				t.Errorf("%d %q", status, errs)
			}
		})
	}
}

// TestClientSignals: a signal ends the client, and so its call.
func TestClientSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			addr, calls := controlled(t, func(*control.Server, control.Call) {})
			cmd := verb(t, "drain", "--control", addr)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			id := (<-calls).ID
			_ = cmd.Process.Signal(sig)
			_ = cmd.Wait()
			if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != sig {
				t.Errorf("ended with %v", cmd.ProcessState)
			}
			if c := <-calls; c.ID != id || !c.Left {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestClientOutput: a reader that has gone ends no drain, and a status that can't
// be printed is a failure.
func TestClientOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	addr, _ := controlled(t, func(s *control.Server, c control.Call) {
		s.Say(c.ID, "so far")
		s.Answer(c.ID, control.Answer{Status: &control.State{Readiness: "ready"}})
	})
	for name, c := range map[string]struct {
		out    io.Writer
		verb   string
		status int
		errs   string
	}{
		"closed, drain":  {w, "drain", 0, ""},
		"closed, status": {w, "status", 0, ""},
		"full, drain":    {full, "drain", 0, ""},
		"full, status":   {full, "status", 1, "drainit: write standard output: no space left on device\n"},
	} {
		cmd := verb(t, c.verb, "--control", addr)
		cmd.Stdout = c.out
		if status, _, errs := ended(t, cmd); status != c.status || errs != c.errs {
			t.Errorf("%s: %d %q", name, status, errs)
		}
	}
}

// TestStatusText: what a person reads.
func TestStatusText(t *testing.T) {
	s := &control.State{
		State: "phases", Readiness: "draining", Service: "web", Version: "1.2.3", Reason: "TERM",
		UptimeSeconds: 59.96, StageSeconds: 3.14159, LeftSeconds: held(6.8), DeadlineSeconds: held(24.04),
		WorkloadPID: 7, WorkloadStatus: held(0),
		Phases: []control.HookState{{Name: "hand-over", State: "ok", Seconds: 1.25}, {Name: "é\x1b[2J", State: "running"}},
		Steps:  []control.HookState{{Name: "mount", State: "started", Seconds: 90.4}},
		Companions: []control.CompanionState{
			{Name: "proxy", State: "running", PID: 12}, {Name: "sync", State: "waiting", Restarts: 2},
		},
	}
	want := `state       phases, for 3.1s, 6.8s left
readiness   draining
reason      TERM
deadline    in 24s
workload    pid 7, exited with 0
service     web
uptime      1m0s
version     1.2.3
phases      hand-over   ok       1.3s
            "é\x1b[2J"  running
steps       mount  started  1m30s
companions  proxy  running  pid 12
            sync   waiting          restarts 2
`
	if got := statusText(s, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for seconds, want := range map[float64]string{0: "0s", -1: "0s", 0.04: "0s", 0.05: "100ms", 1e30: "1281023h53m38s"} {
		if got := statusText(&control.State{UptimeSeconds: seconds}, false); !strings.Contains(got, "uptime      "+want+"\n") {
			t.Errorf("%v: %s", seconds, got)
		}
	}
}
