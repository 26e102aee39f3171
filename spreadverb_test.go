package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"drainit/config"
)

// items is a file with them, as standard input.
func items(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "items")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// pipe is a standard input that has no end until the other one is closed.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// spreading is drainit spread with these arguments.
func spreading(args ...string) []string { return append([]string{"drainit", "spread"}, args...) }

func TestSpreadStatus(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		argv, env []string
		input     string
		status    int
		want      string // in its output; empty: there is none
	}{
		"well":             {argv: spreading("--over=0", "--", "sh", "-c", "true"), input: "1\n2\n3"},
		"nothing":          {argv: spreading("--over=1h", "--", "nosuch"), input: "\n"},
		"one fails":        {argv: spreading("--over=0", "--", "sh", "-c", "exit $((4 - $0))"), input: "4\n1\n4\n", status: 1, want: `^drainit: 1 of 3 runs failed, the first with "1": exit status 3\n$`},
		"killed":           {argv: spreading("--over=0", "--", "sh", "-c", "kill -KILL $$"), input: "1\n", status: 1, want: `the first with "1": signal KILL\n$`},
		"not found":        {argv: spreading("--over=0", "--", "nosuch"), input: "1\n2\n", status: 127, want: `^drainit: start "nosuch": executable file not found in \$PATH\n$`},
		"not executable":   {argv: spreading("--over=0", "--", file), input: "1\n2\n", status: 126, want: `^drainit: start .*no execute permission\ndrainit: hint: chmod \+x `},
		"item as command":  {argv: spreading("--over=0", "--", "{}"), input: "true\n", status: 127, want: `start "{}"`},
		"item too long":    {argv: spreading("--over=0", "--", "sh", "-c", "echo ran $0"), input: strings.Repeat("2", 200<<10) + "\n1\n3\n", status: 1, want: `^(ran [13]\n){2}drainit: 1 of 3 runs failed.*arguments and environment are too large`},
		"no time":          {argv: spreading("--", "true"), input: "1\n", status: 125, want: `^drainit: no time to spread over.*\ndrainit: hint: --over=D`},
		"bad time":         {argv: spreading("--", "true"), env: []string{"DRAINIT_ALLOWED=soon"}, input: "1\n", status: 125, want: `^drainit: DRAINIT_ALLOWED "soon": not a duration\n`},
		"time of the hook": {argv: spreading("--", "echo"), env: []string{"DRAINIT_ALLOWED=0.010"}, input: "a\nb\n", want: `^([ab]\n){2}$`},
		"jitter":           {argv: spreading("--over=20ms", "--jitter", "--", "echo", "<{}>"), input: "a\nb c\r\n\nd", want: `^((<a>|<b c>|<d>)\n){3}$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program{argv: c.argv, stdin: items(t, c.input), env: quietEnv(c.env...)}.start(t)
			p.want(c.status)
			if got := p.output(); c.want == "" && got != "" || !regexp.MustCompile(c.want).MatchString(got) {
				t.Errorf("output %.300q, want %q", got, c.want)
			}
		})
	}
}

// TestSpreadPace: the starts are spread over the time, though each run takes all
// of it.
func TestSpreadPace(t *testing.T) {
	t.Parallel()
	from := time.Now()
	p := program{
		argv: spreading("--", "sh", "-c", "date +%s.%N; exec sleep 1"), stdin: items(t, "1\n2\n3\n4\n"),
		env: quietEnv("DRAINIT_ALLOWED_MS=1000"),
	}.start(t)
	p.want(0)
	var last float64
	for i, line := range strings.Fields(p.output()) {
		var at float64
		if _, err := fmt.Sscan(line, &at); err != nil {
			t.Fatal(err)
		}
		if at -= float64(from.UnixNano()) / 1e9; at < 0.225*float64(i) || at < last {
			t.Errorf("run %d started after %.3f s", i, at)
		}
		last = at
	}
	if last == 0 || p.took > 20*time.Second {
		t.Errorf("took %v: %s", p.took, p.output())
	}
}

// TestSpreadRuns: what a run finds is what any program would.
func TestSpreadRuns(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		p := program{
			pid1: pid1, stdin: items(t, "1\n2\n"), env: quietEnv("SPREAD=kept"),
			argv: spreading("--over=0", "--", "sh", "-c",
				`grep -E '^Sig(Blk|Ign):' /proc/self/status; ls -l /proc/self/fd | sed -n 's/.* \([0-9]* -> .*\)/fd \1/p'
				 echo "SPREAD=$SPREAD"; set -- $(cat /proc/$$/stat); [ "$1" = "$5" ] && echo group; wc -c`),
		}.start(t)
		p.want(0)
		out := p.output()
		for what, n := range map[string]int{
			`^SigBlk:\s0000000000000000$`: 2, `^SigIgn:\s0000000000000000$`: 2, `^SPREAD=kept$`: 2, `^group$`: 2, `^0$`: 2,
			`^fd 0 -> /dev/null$`: 2, `^fd 3 -> /proc/\d+/fd$`: 2, `^fd `: 8,
		} {
			if got := len(regexp.MustCompile("(?m)"+what).FindAllString(out, -1)); got != n {
				t.Errorf("%d lines with %s, want %d:\n%s", got, what, n, out)
			}
		}
	})
}

// TestSpreadStop: told to stop it starts no more, tells those that run, and waits
// for them, a second at the most.
func TestSpreadStop(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		for sig, status := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
			p := program{
				pid1: pid1, stdin: items(t, "1\n2\n3\n4\n"),
				argv: spreading("--over=1h", "--", "actor", "trap", "TERM=0", "50ms"),
			}.start(t)
			p.waitLog("^ready")
			p.kill(syscall.SIGUSR1) // means nothing to it
			p.kill(sig)
			p.want(status)
			if !p.has("^got TERM$") || strings.Count(p.output(), "ready") != 1 || !p.has("^drainit: stopped: 1 of 4 runs were started$") {
				t.Errorf("%v: %s", sig, p.output())
			}
		}
	})
	t.Run("deaf", func(t *testing.T) {
		t.Parallel()
		needPID1(t) // so that the one that does not hear ends with it
		p := program{pid1: true, stdin: items(t, "1\n"), argv: spreading("--over=0", "--", "actor", "ignore", "TERM")}.start(t)
		p.waitLog("^ready")
		from := time.Now()
		p.kill(syscall.SIGTERM)
		p.want(143)
		if took := time.Since(from); took < time.Second || took > patience/2 {
			t.Errorf("took %v", took)
		}
	})
	t.Run("reading", func(t *testing.T) {
		t.Parallel()
		r, w := pipe(t)
		p := program{stdin: r, argv: spreading("--over=0", "--", "echo")}.start(t)
		if _, err := w.WriteString("1\n"); err != nil {
			t.Fatal(err)
		}
		reads(t, p)
		p.kill(syscall.SIGTERM)
		p.want(143)
		if got := p.output(); got != "drainit: stopped while reading the items\n" {
			t.Errorf("%q", got)
		}
	})
}

// reads waits until it reads its items: it has taken them from the descriptor that
// its runs find /dev/null at, which it does when it has begun to take signals.
func reads(t *testing.T, p *process) {
	t.Helper()
	eventually(t, "it reads", func() bool {
		input, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", p.pid))
		return err == nil && input == os.DevNull
	})
}

// TestSpreadIgnores what it was started with ignored.
func TestSpreadIgnores(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	p := program{stdin: r, argv: []string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh", "drainit", "spread", "--over=0", "--", "echo"}}.start(t)
	reads(t, p)
	p.kill(syscall.SIGHUP)
	if _, err := w.WriteString("1\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p.want(0)
	if p.output() != "1\n" {
		t.Errorf("%q", p.output())
	}
}

func TestSpreadOver(t *testing.T) {
	for _, c := range []struct {
		s             config.Spread
		allowed, inMS string
		want          time.Duration // -1: an error
	}{
		{config.Spread{Over: 5 * time.Second, OverSet: true}, "20", "20000", 5 * time.Second},
		{config.Spread{OverSet: true}, "20", "20000", 0},
		{config.Spread{}, "20.500", "", 18450 * time.Millisecond},
		{config.Spread{}, "", "500", 450 * time.Millisecond},
		{config.Spread{}, "0.000", "0", 0},
		{config.Spread{}, "", "", -1},
		{config.Spread{}, "-1", "", -1},
		{config.Spread{}, "", "1s", -1},
	} {
		env := map[string]string{"DRAINIT_ALLOWED": c.allowed, "DRAINIT_ALLOWED_MS": c.inMS}
		got, err := spreadOver(&c.s, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		var e *config.Error
		if c.want < 0 && (!errors.As(err, &e) || e.Hint == "") || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}
