package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"drainit/signals"
)

// The commands of the scripts. A process is started in the foreground, and has
// to end with the status behind "=", 0 without one; or in the background under
// the name behind "&".
//
//	pid1  [&NAME|=STATUS] [-noproc|-hidepid] [-readonly] [-user] COMMAND [ARG...]
//	plain [&NAME|=STATUS] [-user] COMMAND [ARG...]    the same, but not as PID 1
//	waitlog NAME REGEXP     until its output (both streams) matches
//	[!] output NAME REGEXP  its output so far matches, or does not
//	count NAME N REGEXP     its output has N matches
//	signal SIGNAL NAME
//	waitexit NAME STATUS
//	within NAME DURATION    it took at most so long from its latest signal to its end
//	enter NAME [=STATUS] COMMAND [ARG...]   a further process of its container, as docker exec makes it
//	http PATH STATUS [REGEXP]   until the probe listener answers so
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"pid1":     func(ts *testscript.TestScript, neg bool, args []string) { launch(ts, neg, args, true) },
	"plain":    func(ts *testscript.TestScript, neg bool, args []string) { launch(ts, neg, args, false) },
	"waitlog":  cmdWaitlog,
	"output":   cmdOutput,
	"count":    cmdCount,
	"signal":   cmdSignal,
	"waitexit": cmdWaitexit,
	"within":   cmdWithin,
	"enter":    cmdEnter,
	"http":     cmdHTTP,
}

// script is what belongs to one run of a script.
type script struct {
	t    testing.TB
	all  map[string]*process
	told map[string]time.Time
	keys []string // of its variables
}

type scriptKey struct{}

// hosts gives each script an address of its own out of 127.0.0.0/8, so that all
// can use the same port at the same time.
var hosts atomic.Int32

func setUpScript(e *testscript.Env) error {
	t, ok := e.T().(testing.TB)
	if !ok {
		return fmt.Errorf("no testing.TB")
	}
	s := &script{t: t, all: map[string]*process{}, told: map[string]time.Time{}}
	e.Values[scriptKey{}] = s
	e.Setenv("DRAINIT_PROBE_ADDR", "none")
	e.Setenv("DRAINIT_CONFIG_DIR", filepath.Join(e.WorkDir, "etc"))
	init, err := lookPath("drainit", nil)
	if err != nil {
		return err
	}
	e.Setenv("ACTOR", filepath.Join(filepath.Dir(init), "actor"))
	if v, ok := os.LookupEnv("GORACE"); ok {
		e.Setenv("GORACE", v)
	}
	e.Setenv("INIT", init)
	e.Setenv("HOST", fmt.Sprintf("127.%d.%d.1", os.Getpid()%200+1, hosts.Add(1)))
	for _, v := range e.Vars {
		key, _, _ := strings.Cut(v, "=")
		s.keys = append(s.keys, key)
	}
	if err := os.Chmod(filepath.Dir(e.WorkDir), 0o711); err != nil {
		return err
	}
	return filepath.Walk(e.WorkDir, func(path string, info os.FileInfo, err error) error {
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return os.Chmod(path, 0o755)
		}
		if b, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(b), "#!") {
			return os.Chmod(path, 0o755) // txtar has no modes
		}
		return nil
	})
}

// launch is pid1 and plain.
func launch(ts *testscript.TestScript, neg bool, args []string, pid1 bool) {
	s := ts.Value(scriptKey{}).(*script)
	name, status := "", 0
	r := program{pid1: pid1, dir: ts.MkAbs("."), env: s.env(ts)}
	for len(args) > 0 && strings.ContainsRune("&=-", rune(args[0][0])) {
		switch args[0][0] {
		case '&':
			name = args[0][1:]
		case '=':
			n, err := strconv.Atoi(args[0][1:])
			ts.Check(err)
			status = n
		default:
			r.stage = append(r.stage, args[0])
		}
		args = args[1:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: pid1 [&name|=status] [options] command [arg...]")
	}
	if r.argv = args; os.Geteuid() != 0 && strings.Contains(strings.Join(r.stage, " "), "-user") {
		skip(s.t, "needs root")
	}
	if name != "" {
		s.all[name] = scriptStart(ts, r)
		return
	}
	out, err := os.Create(filepath.Join(s.t.TempDir(), "out"))
	ts.Check(err)
	defer out.Close()
	r.out = out
	p := scriptStart(ts, r)
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("has not ended after %v:\n%s\n%s", patience, p.output(), tree(p.pid))
	}
	b, err := os.ReadFile(out.Name())
	ts.Check(err)
	_, _ = ts.Stdout().Write(b)
	_, _ = io.WriteString(ts.Stderr(), p.output())
	if got := p.status(); got != status {
		ts.Fatalf("exit status %d, want %d", got, status)
	}
}

func scriptStart(ts *testscript.TestScript, r program) *process {
	s := ts.Value(scriptKey{}).(*script)
	p, err := r.try(s.t)
	ts.Check(err)
	return p
}

// env is the environment of the script as it stands. A variable that the script
// adds is not seen here: env(1) in front of the command sets it.
func (s *script) env(ts *testscript.TestScript) []string {
	env := make([]string, len(s.keys))
	for i, k := range s.keys {
		env[i] = k + "=" + ts.Getenv(k)
	}
	return env
}

func named(ts *testscript.TestScript, name string) *process {
	p := ts.Value(scriptKey{}).(*script).all[name]
	if p == nil {
		ts.Fatalf("no process %q", name)
	}
	return p
}

func pattern(ts *testscript.TestScript, text string) *regexp.Regexp {
	re, err := regexp.Compile("(?m)" + text)
	ts.Check(err)
	return re
}

func usage(ts *testscript.TestScript, bad bool, text string) {
	if bad {
		ts.Fatalf("usage: %s", text)
	}
}

func cmdWaitlog(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "waitlog NAME REGEXP")
	p, re := named(ts, args[0]), pattern(ts, args[1])
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		over := false
		select {
		case <-p.done:
			over = true
		default:
		}
		if re.MatchString(p.output()) {
			return
		}
		if over || time.Now().After(end) {
			ts.Fatalf("no %q (ended: %v) in:\n%s", args[1], over, p.output())
		}
	}
}

func cmdOutput(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) != 2, "[!] output NAME REGEXP")
	p := named(ts, args[0])
	if pattern(ts, args[1]).MatchString(p.output()) == neg {
		ts.Fatalf("output matches %q: %v\n%s", args[1], !neg, p.output())
	}
}

func cmdCount(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 3, "count NAME N REGEXP")
	p := named(ts, args[0])
	if n := len(pattern(ts, args[2]).FindAllString(p.output(), -1)); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%d matches of %q, want %s:\n%s", n, args[2], args[1], p.output())
	}
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "signal SIGNAL NAME")
	p := named(ts, args[1])
	sig, err := signals.Parse(args[0])
	ts.Check(err)
	ts.Value(scriptKey{}).(*script).told[args[1]] = time.Now()
	ts.Check(syscall.Kill(p.pid, sig))
}

func cmdWaitexit(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "waitexit NAME STATUS")
	p := named(ts, args[0])
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("has not ended after %v:\n%s\n%s", patience, p.output(), tree(p.pid))
	}
	if got := p.status(); strconv.Itoa(got) != args[1] {
		ts.Fatalf("exit status %d, want %s:\n%s", got, args[1], p.output())
	}
}

func cmdWithin(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) != 2, "within NAME DURATION")
	p := named(ts, args[0])
	limit, err := time.ParseDuration(args[1])
	ts.Check(err)
	since := ts.Value(scriptKey{}).(*script).told[args[0]]
	if since.IsZero() {
		since = p.from
	}
	if took := p.from.Add(p.took).Sub(since); took > limit {
		ts.Fatalf("took %v, more than %v:\n%s", took, limit, p.output())
	}
}

func cmdEnter(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 2, "enter NAME [=STATUS] COMMAND [ARG...]")
	p, status := named(ts, args[0]), "0"
	if s, ok := strings.CutPrefix(args[1], "="); ok {
		status, args = s, args[1:]
	}
	s := ts.Value(scriptKey{}).(*script)
	cmd := exec.Command("actor", append([]string{"enter", strconv.Itoa(p.pid)}, args[1:]...)...)
	cmd.Env = s.env(ts)
	cmd.Dir = ts.MkAbs(".")
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	ended := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer ended.Stop()
	_ = cmd.Run()
	_, _ = io.WriteString(ts.Stdout(), out.String())
	_, _ = io.WriteString(ts.Stderr(), errs.String())
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != status {
		ts.Fatalf("exit status %s, want %s\n%s%s\n%s", got, status, out.String(), errs.String(), p.output())
	}
}

func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg || len(args) < 2 || len(args) > 3, "http PATH STATUS [REGEXP]")
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	last := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		resp, err := client.Get("http://" + ts.Getenv("HOST") + ":8079" + args[0])
		if err != nil {
			last = err.Error()
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		last = fmt.Sprintf("%d %s", resp.StatusCode, body)
		if strconv.Itoa(resp.StatusCode) == args[1] && (len(args) == 2 || pattern(ts, args[2]).Match(body)) {
			return
		}
	}
	ts.Fatalf("GET %s: last answer %s", args[0], last)
}
