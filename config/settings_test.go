package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"drainit/budget"
	"drainit/signals"
)

// row is one setting: what it is by default, two values that differ from the
// default and from each other, and what is refused. In bad, a value stands in
// front of a word of the hint.
type row struct {
	flag         string
	get          func(*Config) any
	fallback     any
	first, other string
	want         any
	wantOther    any
	bad          map[string]string
}

// figure is a row of a duration.
func figure(flag string, fallback time.Duration, get func(budget.Input) budget.Value) row {
	return row{
		flag: flag, fallback: budget.Value{D: fallback},
		get:   func(c *Config) any { return get(c.Budget) },
		first: "7", want: budget.Value{D: 7 * time.Second, Set: true},
		other: "1m30.5s", wantOther: budget.Value{D: 90*time.Second + 500*time.Millisecond, Set: true},
		bad: map[string]string{"-1": "500ms", "-0.001s": "500ms", "x": "500ms", "5 s": "500ms", "NaN": "500ms", "1e400": "500ms", "9000h": "500ms"},
	}
}

// toggle is a row of a switch.
func toggle(flag string, get func(*Config) bool) row {
	return row{
		flag: flag, fallback: false, get: func(c *Config) any { return get(c) },
		first: "true", want: true, other: "no", wantOther: false,
		bad: map[string]string{"maybe": "true, 1", "2": "true, 1", "on": "true, 1"},
	}
}

// word is a row of a list of words.
func word(flag string, get func(*Config) any, fallback any, first string, want any, other string, wantOther any) row {
	return row{
		flag: flag, get: get, fallback: fallback, first: first, want: want, other: other, wantOther: wantOther,
		bad: map[string]string{"x": "one of", "AUTO": "one of", " auto": "one of"},
	}
}

// path is a row of one of the listener's paths.
func path(flag, fallback string, get func(*Config) any) row {
	return row{
		flag: flag, get: get, fallback: fallback, first: "/health/z", want: "/health/z", other: "/", wantOther: "/",
		bad: map[string]string{
			"readyz": "begins with /", "/live z": "", "/readyz?x=1": "", "/a#b": "", "/a%20b": "",
			"/ä": "", "/a\tb": "", "/a\nb": "", "/a\x7f": "", "http://x/": "",
		},
	}
}

func rows() []row {
	sig := func(get func(*Config) signals.Set) func(*Config) any {
		return func(c *Config) any { return get(c).String() }
	}
	return []row{
		figure("grace-period", 0, func(b budget.Input) budget.Value { return b.Grace }),
		figure("prestop", 0, func(b budget.Input) budget.Value { return b.Prestop }),
		figure("headroom", time.Second, func(b budget.Input) budget.Value { return b.Headroom }),
		figure("announce-delay", 0, func(b budget.Input) budget.Value { return b.Announce }),
		figure("drain-budget", 10*time.Second, func(b budget.Input) budget.Value { return b.DrainBudget }),
		figure("drain-timeout", 0, func(b budget.Input) budget.Value { return b.DrainTimeout }),
		figure("step-timeout", 10*time.Second, func(b budget.Input) budget.Value { return b.StepTimeout }),
		figure("linger", 0, func(b budget.Input) budget.Value { return b.Linger }),
		{
			flag: "start-timeout", get: func(c *Config) any { return c.StartTimeout }, fallback: time.Duration(0),
			first: "90", want: 90 * time.Second, other: "none", wantOther: time.Duration(0),
			bad: map[string]string{"0": "none", "0s": "none", "-1": "500ms", "x": "500ms", "None": "500ms", "infinity": "500ms", "9000h": "500ms"},
		},
		word("platform", func(c *Config) any { return c.Platform.Name }, "none", "ecs", "ecs", "docker", "docker"),
		toggle("strict-budget", func(c *Config) bool { return c.Strict }),
		toggle("signal-group", func(c *Config) bool { return c.SignalGroup }),
		{
			flag: "stop-signal", get: func(c *Config) any { return c.StopSignal }, fallback: syscall.Signal(0),
			first: "sigquit", want: syscall.SIGQUIT, other: "RTMIN+3", wantOther: syscall.Signal(37),
			bad: map[string]string{
				"STOP": "TERM, QUIT", "TSTP": "same", "CONT": "same", "CHLD": "same", "0": "same", "65": "same", "-1": "same",
				"NOPE": "same", "TERM,INT": "same", "TE\nRM": "same",
			},
		},
		{
			flag: "drain-on", get: sig(func(c *Config) signals.Set { return c.DrainOn }), fallback: "INT,TERM",
			first: "quit, SIGUSR1", want: "QUIT,USR1", other: "none", wantOther: "none",
			bad: map[string]string{
				"KILL": "none", "STOP": "none", "CHLD": "none", "URG": "none", "PROF": "none", "PIPE": "none", "34": "none",
				"TERM,": "commas", "TERM INT": "commas", "0": "commas", ",": "commas", "none,TERM": "commas",
			},
		},
		{
			flag: "rewrite", get: func(c *Config) any { return fmt.Sprint(c.Rewrites) }, fallback: fmt.Sprint(signals.Rewrites{}),
			first: "HUP:USR1", want: fmt.Sprint(signals.Rewrites{syscall.SIGHUP: syscall.SIGUSR1}),
			other: "winch:", wantOther: fmt.Sprint(signals.Rewrites{syscall.SIGWINCH: 0}),
			bad: map[string]string{
				"HUP": "S:S", ":HUP": "S:S", "HUP:0": "S:S", "0:HUP": "S:S", "HUP:USR1:USR2": "S:S", "HUP=USR1": "S:S",
				"KILL:TERM": "S:S", "CHLD:": "S:S", "HUP:USR1,USR1:HUP": "S:S", "TERM:QUIT": "--stop-signal", "INT:": "--stop-signal",
			},
		},
		word("interactive", func(c *Config) any { return c.Interactive }, "auto", "always", "always", "never", "never"),
		{
			flag: "remap-exit", get: func(c *Config) any { return fmt.Sprint(c.RemapExit) }, fallback: fmt.Sprint(map[int]int(nil)),
			first: "143:0, 130:7", want: fmt.Sprint(map[int]int{143: 0, 130: 7}),
			other: "none", wantOther: fmt.Sprint(map[int]int{}),
			bad: map[string]string{
				"143": "143:0", "143:": "143:0", ":0": "143:0", "143:0,": "143:0", "256:0": "143:0", "0:256": "143:0", "-1:0": "143:0",
				"143=0": "143:0", "TERM:0": "143:0", "1:2,1:3": "143:0", "1:2:3": "143:0", "1.5:0": "143:0", "none,1:2": "143:0",
			},
		},
		{
			flag: "probe-addr", get: func(c *Config) any { return [2]any{c.ProbeAddr, c.ProbeAddrSet} }, fallback: [2]any{":8079", false},
			first: "[::1]:80", want: [2]any{"[::1]:80", true}, other: "none", wantOther: [2]any{"", true},
			bad: map[string]string{
				":0": ":8079", ":-1": ":8079", ":70000": ":8079", "8079": "none", "localhost": "none", ":": ":8079",
				":http": ":8079", "::1:80": "none", ":80\n": ":8079", "a:b:80": "none", "http://x:80": "none",
			},
		},
		path("ready-path", "/readyz", func(c *Config) any { return c.ReadyPath }),
		path("live-path", "/livez", func(c *Config) any { return c.LivePath }),
		path("metrics-path", "/metrics", func(c *Config) any { return c.MetricsPath }),
		{
			flag: "unready-status", get: func(c *Config) any { return c.UnreadyStatus }, fallback: 503,
			first: "404", want: 404, other: "599", wantOther: 599,
			bad: map[string]string{"200": "503", "399": "503", "600": "503", "-404": "503", "x": "503", "404.0": "503", "0x1f4": "503"},
		},
		{
			flag: "config-dir", get: func(c *Config) any { return c.ConfigDir }, fallback: "/etc/drainit",
			first: "/srv/init/", want: "/srv/init", other: "none", wantOther: "",
		},
		{
			flag: "report", get: func(c *Config) any { return [2]any{c.Report, c.ReportSet} }, fallback: [2]any{"/dev/termination-log", false},
			first: "/var//log/last", want: [2]any{"/var/log/last", true}, other: "none", wantOther: [2]any{"", true},
			bad: map[string]string{"/": "file", "/var/log/": "none", "./": "file"},
		},
		{
			flag: "control", get: func(c *Config) any { return [3]any{c.Control, c.ControlSet, c.ControlOff} }, fallback: [3]any{"", false, false},
			first: "/run//drainit.sock", want: [3]any{"/run/drainit.sock", true, false}, other: "none", wantOther: [3]any{"", true, true},
			bad: map[string]string{
				"@": "@ and a name", "drainit.sock": "absolute", "./x": "absolute", ":8079": "absolute", "unix:///run/x": "absolute", "None": "@ and a name",
				"/": "file in it", "/run/": "file in it", "/..": "file in it",
				"/" + strings.Repeat("x", 107): "shorter", "@" + strings.Repeat("x", 107): "shorter", "x\n": "absolute path",
			},
		},
		{
			flag: "service", get: func(c *Config) any { return c.Service }, fallback: "app",
			first: "shop", want: "shop", other: "shop \"2\"\n", wantOther: "shop \"2\"\n",
		},
		{
			flag: "log-format", get: func(c *Config) any { return c.LogFormat }, fallback: "auto",
			first: "json", want: "json", other: "text", wantOther: "text",
			bad: map[string]string{"x": "auto, text, json", "JSON": "json"},
		},
		{
			flag: "log-level", get: func(c *Config) any { return fmt.Sprint(c.LogLevel, c.LogLevelSet) }, fallback: "INFO false",
			first: "debug", want: "DEBUG true", other: "info", wantOther: "INFO true",
			bad: map[string]string{"trace": "debug, info, warn, error", "WARN": "warn", "4": "warn", "info+1": "info"},
		},
	}
}

func TestSettings(t *testing.T) {
	missing := known()
	for _, r := range rows() {
		delete(missing, r.flag)
		t.Run(r.flag, func(t *testing.T) { r.test(t) })
	}
	for flag := range missing {
		t.Errorf("--%s stands in no row", flag)
	}
}

func (r row) test(t *testing.T) {
	flag, name := "--"+r.flag, twin(r.flag)
	is := func(what string, want any, env map[string]string, flags ...string) {
		t.Helper()
		if got := r.get(accepted(t, env, flags...)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	is("default", r.fallback, nil)
	is("empty variable", r.fallback, map[string]string{name: ""})
	is("flag", r.want, nil, flag+"="+r.first)
	is("another value", r.wantOther, nil, flag+"="+r.other)
	is("variable", r.want, map[string]string{name: r.first})
	is("another value in the variable", r.wantOther, map[string]string{name: r.other})
	is("flag over variable", r.want, map[string]string{name: r.other}, flag+"="+r.first)
	is("flag over variable, the other way round", r.wantOther, map[string]string{name: r.first}, flag+"="+r.other)
	for value := range r.bad {
		is("flag over a bad variable", r.want, map[string]string{name: value}, flag+"="+r.first)
	}
	if known()[r.flag].Type.Kind() != reflect.Slice {
		is("the last of two", r.wantOther, nil, flag+"="+r.first, flag+"="+r.other)
	}
	for value, hint := range r.bad {
		r.refuses(t, flag, value, hint, refused(t, nil, flag+"="+value, "--", "app"))
		r.refuses(t, name, value, hint, refused(t, map[string]string{name: value}, "--", "app"))
	}
	if known()[r.flag].Type.Elem().Kind() == reflect.String && r.flag != "rewrite" {
		refused(t, nil, flag+"=", "--", "app")
		refused(t, nil, flag, "", "--", "app")
	}
}

// refuses holds an error to its form: the setting's name, its value, a hint.
func (r row) refuses(t *testing.T, name, value, hint string, e *Error) {
	t.Helper()
	quoted := fmt.Sprintf("%q", strings.TrimSpace(value))
	if !strings.HasPrefix(e.Text, name) || !strings.Contains(e.Text, strings.Trim(quoted, `"`)) {
		t.Errorf("%s %q: the error names not both: %q", name, value, e.Text)
	}
	if e.Hint == "" || !strings.Contains(e.Hint, hint) {
		t.Errorf("%s %q: hint %q, want one with %q", name, value, e.Hint, hint)
	}
}

// The named stop signal begins the drain too: an image whose STOPSIGNAL is what
// the workload understands works with one setting.
func TestStopSignalStartsTheDrain(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--stop-signal", "QUIT"}, "INT,QUIT,TERM"},
		{[]string{"--stop-signal", "INT"}, "INT,TERM"},
		{[]string{"--stop-signal", "Same"}, "INT,TERM"},
		{[]string{"--stop-signal", "RTMIN+3"}, "INT,TERM,RTMIN+3"},
		{[]string{"--stop-signal", "KILL"}, "INT,TERM"}, // may be sent, can't be received
		{[]string{"--stop-signal", "PIPE"}, "INT,TERM"},
		{[]string{"--stop-signal", "QUIT", "--drain-on", "TERM"}, "TERM"},
		{[]string{"--stop-signal", "QUIT", "--drain-on", "None"}, "none"},
	} {
		if got := accepted(t, nil, c.flags...).DrainOn.String(); got != c.want {
			t.Errorf("%q: drain on %s, want %s", c.flags, got, c.want)
		}
	}
}

func TestContradictions(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		flags []string
		text  []string
		hint  string
	}{
		{nil, []string{"--rewrite", "TERM:QUIT"}, []string{"--rewrite", `"TERM:QUIT"`, "TERM starts the drain"}, "--stop-signal"},
		{nil, []string{"--drain-on", "HUP", "--rewrite", "1:"}, []string{"--rewrite", `"1:"`, "HUP starts"}, "--stop-signal"},
		{nil, []string{"--stop-signal", "QUIT", "--rewrite", "QUIT:TERM"}, []string{`"QUIT:TERM"`}, "--stop-signal"},
		{map[string]string{"DRAINIT_REWRITE": "HUP:USR1\nINT:HUP"}, nil, []string{"DRAINIT_REWRITE", `"INT:HUP"`, "INT starts"}, "--stop-signal"},
		{nil, []string{"--rewrite", "HUP:USR1", "--rewrite", "SIGHUP:USR2"}, []string{`--rewrite "SIGHUP:USR2"`, "two rules for HUP"}, "S:S"},
		// The set one is refused, whichever comes first in the order of reading.
		{nil, []string{"--ready-path", "/metrics"}, []string{`--ready-path "/metrics"`, "--metrics-path"}, "its own"},
		{nil, []string{"--metrics-path", "/readyz"}, []string{`--metrics-path "/readyz"`, "--ready-path"}, "its own"},
		{map[string]string{"DRAINIT_LIVE_PATH": "/readyz"}, nil, []string{`DRAINIT_LIVE_PATH "/readyz"`, "--ready-path"}, "its own"},
		{map[string]string{"DRAINIT_READY_PATH": "/x"}, []string{"--live-path=/x"}, []string{`--live-path "/x"`, "DRAINIT_READY_PATH"}, "its own"},
	} {
		e := refused(t, c.env, append(c.flags, "--", "app")...)
		for _, part := range c.text {
			if !strings.Contains(e.Text, part) {
				t.Errorf("%q with %q: %q has no %q", c.flags, c.env, e.Text, part)
			}
		}
		if !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q with %q: hint %q, want %q", c.flags, c.env, e.Hint, c.hint)
		}
	}
	// What does not start the drain may be rewritten.
	accepted(t, nil, "--drain-on", "none", "--rewrite", "TERM:QUIT", "--rewrite", "INT:")
	accepted(t, nil, "--ready-path", "/livez", "--live-path", "/readyz")
}

// The first mistake is told, in the same order every time.
func TestFirstMistake(t *testing.T) {
	for range 20 {
		e := refused(t, map[string]string{"DRAINIT_REWRITE": "TERM:HUP\nINT:HUP\nNOPE:HUP"}, "--log-level=x", "--", "app")
		if !strings.Contains(e.Text, "TERM:HUP") {
			t.Fatalf("%q", e.Text)
		}
	}
}

// A variable holds one value a line; blank lines and what Windows adds are
// nothing.
func TestListInVariable(t *testing.T) {
	want := signals.Rewrites{syscall.SIGHUP: syscall.SIGUSR1, syscall.SIGWINCH: 0}
	for _, value := range []string{"HUP:USR1\nWINCH:", "\n HUP:USR1 \r\n\n\tWINCH:\r\n"} {
		if got := accepted(t, map[string]string{"DRAINIT_REWRITE": value}).Rewrites; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v", value, got)
		}
	}
	if got := accepted(t, map[string]string{"DRAINIT_REWRITE": " \n"}).Rewrites; len(got) != 0 {
		t.Errorf("blank: %v", got)
	}
	// The flags replace the variable as a whole.
	got := accepted(t, map[string]string{"DRAINIT_REWRITE": "USR2:"}, "--rewrite", "HUP:USR1", "--rewrite=WINCH:").Rewrites
	if !reflect.DeepEqual(got, want) {
		t.Errorf("flags: %v", got)
	}
	if got := got.Forward(syscall.SIGUSR2); got != syscall.SIGUSR2 {
		t.Errorf("the variable counts beside the flags: %v", got)
	}
}

func TestService(t *testing.T) {
	for command, want := range map[string]string{"/usr/sbin/nginx": "nginx", "app": "app", "./a/b.sh": "b.sh", "a/": "a"} {
		r, _, err := ask(nil, "--", command)
		if err != nil || r.Run.Service != want {
			t.Errorf("%q: service %q, %v", command, r.Run.Service, err)
		}
	}
}

// The init's own directory is / once the workload runs.
func TestPathsAreAbsolute(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"hooks": here + "/hooks", ".": here, "../x": filepath.Dir(here) + "/x", "/a/../b": "/b"} {
		if c := accepted(t, nil, "--config-dir", given, "--report", given); c.ConfigDir != want || c.Report != want {
			t.Errorf("%q: %q and %q, want %q", given, c.ConfigDir, c.Report, want)
		}
	}
}

func TestControlAddress(t *testing.T) {
	for given, want := range map[string]string{
		"@x": "@x", "@/a//b": "@/a//b", "@none": "@none", "/none": "/none", "/a/../b": "/b",
		"/" + strings.Repeat("x", 106): "/" + strings.Repeat("x", 106), "@" + strings.Repeat("x", 106): "@" + strings.Repeat("x", 106),
	} {
		if c := accepted(t, nil, "--control", given); c.Control != want || c.ControlOff {
			t.Errorf("%q: %q, %v; want %q", given, c.Control, c.ControlOff, want)
		}
	}
}

// Whether somebody asked for a directory of hooks.
func TestConfigDirSet(t *testing.T) {
	for _, c := range []struct {
		env   map[string]string
		flags []string
		want  bool
	}{
		{nil, nil, false},
		{nil, []string{"--config-dir=/etc/drainit"}, true},
		{map[string]string{"DRAINIT_CONFIG_DIR": "/srv"}, nil, true},
		{map[string]string{"DRAINIT_CONFIG_DIR": ""}, nil, false},
		{map[string]string{"DRAINIT_CONFIG_DIR": "none"}, nil, false},
		{map[string]string{"DRAINIT_CONFIG_DIR": "/srv"}, []string{"--config-dir=none"}, false},
		{map[string]string{"DRAINIT_CONFIG_DIR": "/srv", "DRAINIT_SOCKET": "x"}, nil, false},
		{map[string]string{"DRAINIT_SOCKET": "x"}, []string{"--config-dir=/srv"}, true},
	} {
		if got := accepted(t, c.env, c.flags...); got.ConfigDirSet != c.want {
			t.Errorf("%q with %q: %v", c.flags, c.env, got.ConfigDirSet)
		}
	}
}
