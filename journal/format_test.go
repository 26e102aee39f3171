package journal

import (
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// logged returns what f logs, as lines.
func logged(t *testing.T, o Options, f func(*Journal)) []string {
	t.Helper()
	r, w := pipe(t, 0)
	o.FD = w
	j := Open(o)
	f(j)
	j.Close(patience)
	hangUp(t, w)
	var all []string
	for s := lines(r); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

func some(j *Journal) {
	log := j.Logger().With("service", "web").WithGroup("g")
	at := time.Date(2026, 1, 2, 3, 4, 5, 120_456_789, time.FixedZone("x", 3600))
	log.Warn("window overran", "d", 1500*time.Millisecond, "at", at, "err", errors.New("a b"), slog.Group("h", "n", 1))
}

func TestText(t *testing.T) {
	for _, format := range []string{"text", "auto", ""} { // a pipe is no terminal
		got := logged(t, Options{Format: format}, some)
		want := regexp.MustCompile(`^time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=WARN msg="window overran" service=web g\.d=1\.5s g\.at=2026-01-02T02:04:05\.120Z g\.err="a b" g\.h\.n=1$`)
		if len(got) != 1 || !want.MatchString(got[0]) {
			t.Errorf("%s: %q", format, got)
		}
	}
}

func TestJSON(t *testing.T) {
	got := logged(t, Options{Format: "json"}, some)
	var m struct {
		Time, Level, Msg, Service string
		G                         struct {
			At, Err string
			H       map[string]int
		}
	}
	if len(got) != 1 {
		t.Fatalf("%q", got)
	}
	must(t, json.Unmarshal([]byte(got[0]), &m))
	if m.Level != "WARN" || m.Msg != "window overran" || m.Service != "web" || m.G.At != "2026-01-02T02:04:05.120Z" || m.G.Err != "a b" || m.G.H["n"] != 1 {
		t.Errorf("%s", got[0])
	}
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(m.Time) {
		t.Errorf("time %q", m.Time)
	}
}

func TestHookLineShape(t *testing.T) {
	got := logged(t, Options{Format: "text"}, func(j *Journal) {
		j.HookLine([]slog.Attr{slog.String("hook", "hand-over"), slog.String("stream", "stderr")}, "a \x1b[1mbold\x1b[0m \x00 line")
	})
	if len(got) != 1 || !strings.HasSuffix(got[0], ` level=INFO msg="hook output" hook=hand-over stream=stderr line="a \x1b[1mbold\x1b[0m \x00 line"`) {
		t.Errorf("%q", got)
	}
}

func TestLevel(t *testing.T) {
	got := logged(t, Options{Format: "text", Level: slog.LevelWarn}, func(j *Journal) {
		if j.Logger().Enabled(t.Context(), slog.LevelInfo) {
			t.Error("INFO is enabled")
		}
		j.Logger().Info("info")
		j.HookLine(nil, "chatter")
		j.Logger().Warn("warn")
		if j.Dropped() != 0 {
			t.Error("what the level excludes counts as dropped")
		}
	})
	if len(got) != 1 || !strings.HasSuffix(got[0], "msg=warn") {
		t.Errorf("%q", got)
	}
	debug := logged(t, Options{Format: "text", Level: slog.LevelDebug}, func(j *Journal) { j.Logger().Debug("debug") })
	if len(debug) != 1 || !strings.HasSuffix(debug[0], "level=DEBUG msg=debug") {
		t.Errorf("%q", debug)
	}
}

// counter tells how often it was asked.
type counter struct{ n int }

func (c *counter) LogValue() slog.Value {
	c.n++
	return slog.IntValue(c.n)
}

type panickingValue struct{}

func (panickingValue) LogValue() slog.Value { panic("value") }

// A value is that of the moment of the call, however late it is written.
func TestLogValuers(t *testing.T) {
	r, w := pipe(t, 0)
	fill(t, w)
	j := Open(Options{Format: "text", FD: w})
	c := &counter{}
	j.Logger().Info("line", "c", c, slog.Group("g", "c", c))
	if c.n != 2 {
		t.Errorf("asked %d times in the call", c.n)
	}
	c.n = 40
	j.Logger().Info("line", "c", panickingValue{})
	s := lines(r)
	if line := next(t, s); !strings.HasSuffix(line, "c=1 g.c=2") {
		t.Errorf("line %q", line)
	}
	if line := next(t, s); !strings.Contains(line, "LogValue panicked") {
		t.Errorf("line %q", line)
	}
	j.Close(patience)
}

// terminal opens a pty; what is written to tty comes out of the other end.
func terminal(t *testing.T) (master, tty int) {
	t.Helper()
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	must(t, err)
	tty, err = unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(tty) })
	return master, tty
}

func TestTerminal(t *testing.T) {
	master, tty := terminal(t)
	j := Open(Options{Format: "auto", FD: tty})
	j.HookLine(nil, "evil \\x1b[2J")
	j.Logger().Info("line", "err", errors.New("\x1b]0;title\a"), "at", time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600)))
	plain := Open(Options{Format: "text", FD: tty})
	j.Close(patience)
	plain.Logger().Info("plain")
	plain.Close(patience)
	s := lines(master)
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	first := next(t, s)
	if !regexp.MustCompile(`^` + "\x1b\\[2m" + `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z` + "\x1b\\[0m \x1b\\[92mINF\x1b\\[0m hook output ").MatchString(first) {
		t.Errorf("no coloured line: %q", first)
	}
	second := next(t, s)
	for _, line := range []string{first, second} {
		if rest := colour.ReplaceAllString(line, ""); strings.ContainsAny(rest, "\x1b\a") || !strings.Contains(rest, "^[") {
			t.Errorf("a value's control sequence reaches the terminal: %q", line)
		}
	}
	if !strings.HasSuffix(strings.TrimSuffix(second, "\r"), "2026-01-02T02:04:05.000Z") {
		t.Errorf("time of a value: %q", second)
	}
	if line := next(t, s); !strings.HasSuffix(strings.TrimSuffix(line, "\r"), " level=INFO msg=plain") {
		t.Errorf("text on a terminal: %q", line)
	}
}
