package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// What somebody types who does not know the grammar gets the one line that mends it.
func TestHints(t *testing.T) {
	for _, c := range []struct{ args, text, hint string }{
		{"-grace-period 30 -- app", "unknown flag -grace-period", "two dashes: --grace-period"},
		{"-grace-period=30", "unknown flag -grace-period", "two dashes: --grace-period"},
		{"-version", "unknown flag -version", "two dashes: --version"},
		{"-signal-group -- app", "unknown flag -signal-group", "two dashes: --signal-group"},
		{"status -json", "unknown flag -json", "two dashes: --json"},
		{"status -grace-period", "unknown flag -", "drainit status --help"},
		{"-v -- app", "unknown flag -v", "--version prints the version, --log-level=debug logs more"},
		{"-g -v", "unknown flag -v", "--version prints"},
		{"-v status", "unknown flag -v", "--version prints"},
		{"status -v", "unknown flag -v", "drainit status --help lists the flags"},

		{"--grace-period 30 budget", "unexpected argument budget", "the verb stands first: drainit budget [flags]"},
		{"--grace-period=30 -g budget --json", "", "the verb stands first: drainit budget [flags]"},
		{"--service drain app", "unexpected argument app", "the command stands behind --"},
		{"--service drain status -- app", "unexpected argument status", "the verb stands first: drainit status"},

		{"--strict-budget=on", `--strict-budget "on": neither true nor false`, "true, 1, yes, false, 0 or no"},
		{"budget --json=on", `--json "on": neither true nor false`, "true, 1, yes, false, 0 or no"},
		{"--strict-budget= -- app", `--strict-budget "": neither true nor false`, "true, 1, yes, false, 0 or no"},
		{"--strict-budget=YES --nope", "unknown flag --nope", "drainit --help"},

		{"budget --nope", "unknown flag --nope", "drainit budget --help lists the flags"},
		{"budget --nope 5", "unknown flag --nope", "drainit budget --help lists the flags"},
		{"budget --nope -- app", "unknown flag --nope", "drainit budget --help lists the flags"},
		{"--nope 5 app", "unknown flag --nope", "drainit --help lists the flags"},

		{"drian", `unknown verb "drian"`, "did you mean drainit drain? the verbs are announce"},
		{"stats --json", `unknown verb "stats"`, "did you mean drainit status?"},
		{"undrainn -- x", `unknown verb "undrainn"`, "did you mean drainit undrain?"},
		{"versjon", `unknown verb "versjon"`, "did you mean drainit version?"},
		{"--help-me", "unknown flag --help-me", "drainit --help"},
		{"help drian", `unknown verb "drian"`, "did you mean drainit drain?"},
	} {
		e := refused(t, nil, strings.Fields(c.args)...)
		if !strings.HasPrefix(e.Text, c.text) || !strings.HasPrefix(e.Hint, c.hint) {
			t.Errorf("%s: %q, hint %q; want %q, %q", c.args, e.Text, e.Hint, c.text, c.hint)
		}
	}
	if e := refused(t, nil, "train-model"); strings.Contains(e.Hint, "mean") {
		t.Errorf("a far one: %q", e.Hint)
	}
}

// TestNear: one letter too much, too few, wrong, or two in the wrong order.
func TestNear(t *testing.T) {
	for _, a := range []string{"drai", "rain", "drainn", "ddrain", "drsin", "dravn", "rdain", "dranin"} {
		if !near(a, "drain") || !near("drain", a) {
			t.Errorf("%s is far", a)
		}
	}
	for _, a := range []string{"", "drainit", "rdian", "dr", "niard", "darni", "drxyn", "drain"} {
		if near(a, "drain") || near("drain", a) {
			t.Errorf("%s is near", a)
		}
	}
}

// help is the help, and -v alone the version.
func TestHelpVerb(t *testing.T) {
	for args, want := range map[string]string{
		"help": mainJob().usage, "help --": mainJob().usage, "help drain": "drainit drain [flags]", "help budget": "drainit budget [flags]",
		"help --help": mainJob().usage, "help -- app": mainJob().usage,
	} {
		if _, help, err := ask(nil, strings.Fields(args)...); !errors.Is(err, ErrHelp) || !strings.HasPrefix(help, "Usage: "+want) {
			t.Errorf("%s: %v, %.60q", args, err, help)
		}
	}
	if r, help, err := ask(nil, "-v"); err != nil || !r.Version || help != "" {
		t.Errorf("-v: %+v, %v", r, err)
	}
	if r, _, err := ask(nil, "--", "help"); err != nil || !slices.Equal(r.Run.Command, []string{"help"}) {
		t.Errorf("-- help: %+v, %v", r, err)
	}
}
