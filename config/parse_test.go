package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// ask parses with a given environment, as a process that is not PID 1.
func ask(env map[string]string, args ...string) (Result, string, error) {
	var help strings.Builder
	r, err := Parse(World{
		Args: args, PID: 2, Help: &help,
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	return r, help.String(), err
}

// accepted parses flags in front of a command that must be accepted.
func accepted(t *testing.T, env map[string]string, flags ...string) *Config {
	t.Helper()
	r, _, err := ask(env, append(flags, "--", "/bin/app", "-x")...)
	if err != nil {
		t.Fatalf("%q with %q: %v", flags, env, err)
	}
	return r.Run
}

// refused parses what must be refused, and returns the error after it was held
// to the rules for all of them: an *Error, one line of text, one of hint.
func refused(t *testing.T, env map[string]string, args ...string) *Error {
	t.Helper()
	r, _, err := ask(env, args...)
	if err == nil {
		t.Fatalf("%q with %q: accepted: %+v", args, env, r.Run)
	}
	if r.Run != nil {
		t.Errorf("%q with %q: an error and a configuration", args, env)
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%q with %q: %T, want *Error: %v", args, env, err, err)
	}
	if e.Text == "" || !plainLine(e.Text) || !plainLine(e.Hint) {
		t.Errorf("%q with %q: not one printable line each: %q, hint %q", args, env, e.Text, e.Hint)
	}
	return e
}

// plainLine: nothing in it ends the line or moves a terminal's cursor.
func plainLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func TestCommand(t *testing.T) {
	for _, c := range []struct{ args, command []string }{
		{[]string{"--", "app"}, []string{"app"}},
		{[]string{"--", "lead", "x"}, []string{"lead", "x"}},
		{[]string{"--", "version"}, []string{"version"}},
		{[]string{"--", "-v", "--help"}, []string{"-v", "--help"}},
		{[]string{"--", "--", "--"}, []string{"--", "--"}},
		{[]string{"-g", "--", "app", "--grace-period", "bad"}, []string{"app", "--grace-period", "bad"}},
		{[]string{"--grace-period", "5", "--", "app", "", "a\nb"}, []string{"app", "", "a\nb"}},
	} {
		r, help, err := ask(nil, c.args...)
		if err != nil || help != "" || r.Version {
			t.Errorf("%q: %v, help %q, version %v", c.args, err, help, r.Version)
			continue
		}
		if !slices.Equal(r.Run.Command, c.command) {
			t.Errorf("%q: command %q, want %q", c.args, r.Run.Command, c.command)
		}
	}
}

func TestNoCommand(t *testing.T) {
	for _, c := range []struct {
		args       []string
		text, hint string
	}{
		{nil, "no command to run", "drainit [flags] -- COMMAND"},
		{[]string{"--"}, "no command to run", "drainit [flags] -- COMMAND"},
		{[]string{"-g"}, "no command to run", "drainit [flags] -- COMMAND"},
		{[]string{"./app"}, `unknown verb "./app"`, "stands behind --"},
		{[]string{""}, `unknown verb ""`, "stands behind --"},
		{[]string{"drian", "--budget", "5"}, `unknown verb "drian"`, "announce, drain, undrain, status, spread, budget, version"},
		{[]string{"--json", "status"}, "unknown flag --json", "the verb stands first: drainit status"},
		{[]string{"-g", "budget", "--", "app"}, "unexpected argument budget", "the verb stands first: drainit budget"},
		{[]string{"--grace-period", "5", "app", "-x"}, "unexpected argument app", "stands behind --"},
		// Somebody knows of the "--": what is wrong stands in front of it.
		{[]string{"x", "--", "app"}, `unknown verb "x"`, "the verbs are announce"},
		{[]string{"-g", "x", "--", "app"}, "unexpected argument x", "--help"},
		{[]string{"--grace-period", "5", "--nope", "--", "app"}, "unknown flag --nope", "--help"},
		{[]string{"--grace-period", "--", "app"}, "--grace-period: no value", "--grace-period=D"},
		{[]string{"-g", "--rewrite", "--", "app"}, "--rewrite: no value", "--rewrite=S:S"},
		{[]string{"--prestop", "--headroom", "5", "--", "app"}, "--prestop", "--help"},
		{[]string{"--prestop", "-5", "--", "app"}, "--prestop", "--help"},
		{[]string{"--no-strict-budget", "--", "app"}, "unknown flag --no-strict-budget", "--help"},
		{[]string{"--strict-budget=maybe", "--", "app"}, `--strict-budget "maybe": neither true nor false`, "true, 1, yes"},
		{[]string{"--nope\nnope"}, `unknown flag --nope\nnope`, "--help"},
		{[]string{"a\nb\x1b[31m\xff\u2028"}, `unknown verb "a\nb\x1b[31m\xff\u2028"`, "stands behind --"},
		{[]string{"-g", "a\nb\x1b[31m\xff\u2028"}, `unexpected argument a\nb\x1b[31m\xff\u2028`, "stands behind --"},
		{[]string{"-ä"}, "unknown flag -", "--help"},
	} {
		e := refused(t, nil, c.args...)
		if !strings.Contains(e.Text, c.text) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q: %q, hint %q; want %q, %q", c.args, e.Text, e.Hint, c.text, c.hint)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"--version", "--", "app"}} {
		if r, help, err := ask(nil, args...); err != nil || !r.Version || r.Run != nil || help != "" {
			t.Errorf("%q: %+v, %v, help %q", args, r, err, help)
		}
	}
	// Not a question that somebody asks of one container of many.
	if c := accepted(t, map[string]string{"DRAINIT_VERSION": "1.2.3"}); c == nil {
		t.Error("DRAINIT_VERSION is a twin")
	}
}

// What asks for help is never refused for what else is set.
func TestHelp(t *testing.T) {
	bad := map[string]string{"DRAINIT_GRACE_PERIOD": "bad"}
	for _, args := range [][]string{{"--help"}, {"-h"}, {"-gh"}, {"--help", "--", "app"}, {"--prestop=bad", "--help"}} {
		r, help, err := ask(bad, args...)
		if !errors.Is(err, ErrHelp) || r != (Result{}) {
			t.Errorf("%q: %+v, %v", args, r, err)
		}
		if !strings.HasPrefix(help, "Usage: drainit [flags] -- COMMAND [ARG...]\n\n") {
			t.Errorf("%q: help begins with %.60q", args, help)
		}
		for flag := range known() {
			if !strings.Contains(help, "--"+flag) {
				t.Errorf("%q: help has no --%s", args, flag)
			}
		}
		for i, line := range strings.Split(help, "\n") {
			if len(line) > 80 {
				t.Errorf("%q: line %d has %d columns", args, i+1, len(line))
			}
		}
	}
}

// Nothing but twins is ever looked at, and no variable is refused for its name:
// Kubernetes sets some for each Service, after whatever that is called.
func TestForeignVariables(t *testing.T) {
	env := map[string]string{
		"DRAINIT_PORT":                 "tcp://10.0.0.1:80",
		"DRAINIT_SERVICE_HOST":         "10.0.0.1",
		"DRAINIT_SERVICE_PORT":         "80",
		"DRAINIT_PORT_80_TCP_PROTO":    "tcp",
		"DRAINIT_FOO":                  "bad",
		"DRAINIT_HELP":                 "true",
		"DRAINIT_":                     "bad",
		"drainit_grace_period":         "bad",
		"GRACE_PERIOD":                 "bad",
		"DRAINIT_ALLOWED":              "-1",
		"DRAINIT_HOOK":                 "bad",
		"DRAINIT_GRACE_PERIOD_SECONDS": "bad",
	}
	c, plain := accepted(t, env), accepted(t, nil)
	if c.Service != plain.Service || c.Budget != plain.Budget || c.ProbeAddr != plain.ProbeAddr {
		t.Errorf("%+v, want %+v", c, plain)
	}
	asked := askedFor(t, "--", "app")
	for name := range maps.Keys(env) {
		if asked[name] {
			t.Errorf("%s was looked at", name)
		}
	}
}

// askedFor returns the variables that a command line looks at.
func askedFor(t *testing.T, args ...string) map[string]bool {
	t.Helper()
	asked := map[string]bool{}
	_, err := Parse(World{Args: args, PID: 2, Env: func(name string) (string, bool) {
		asked[name] = true
		return "", false
	}})
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// Each verb looks at its own flags' variables and at no other's: a bad value there
// is none of its business.
func TestEachVerbItsOwnVariables(t *testing.T) {
	for usage, grammar := range grammars() {
		args := strings.Fields(usage)
		asked := askedFor(t, args...)
		for _, name := range Twins() {
			_, own := flagsOf(grammar)[flagOf(name)]
			if asked[name] != own {
				t.Errorf("%s: %s was looked at: %v, it is its own: %v", usage, name, asked[name], own)
			}
			if own {
				continue
			}
			if _, _, err := ask(map[string]string{name: "bad \x00"}, args...); err != nil {
				t.Errorf("%s: refused for %s: %v", usage, name, err)
			}
		}
	}
}
