package config

import (
	"errors"
	"strings"
	"testing"
)

// FuzzArgs: whatever is given, Parse answers with one printable line or with
// something that can be run. Arguments are separated by NUL, which none can hold.
func FuzzArgs(f *testing.F) {
	for _, seed := range []string{
		"", "--\x00app", "-g\x00--\x00app", "--grace-period\x005\x00--\x00app", "--grace-period=5\x00--\x00app", "-gh", "-\xc3\xa4",
		"--\x00", "-", "---", "--=", "-=", "--=x\x00y", "--grace-period", "--prestop\x00-5", "--rewrite=a\nb\x00--\x00x", "version", "version\x00x",
		"--help\x00--nope", "--signal-group=\xff", "--drain-on=TERM,\x01", "--strict-budget=", "${x}", "--service=${x}\x00--\x00a", "--drain-on=none\x00--rewrite=TERM:\x00--\x00a",
		"drain", "drain\x00--budget=5\x00--control=@x", "status\x00--json\x00--ready=no", "announce\x00--\x00x", "undrain\x00-h", "drain\x00--budget",
		"spread\x00--over=1m\x00--jitter\x00--\x00redis-cli\x00{}", "spread", "budget\x00--json\x00--grace-period=30", "budget\x00--\x00app", "budget\x00--version",
		"version\x00-h", "lead\x00--\x00x", "\xff\x00\n",
	} {
		f.Add(seed, "", "")
		f.Add("--\x00app", "DRAINIT_GRACE_PERIOD", seed)
		f.Add("drain", "DRAINIT_CONTROL", seed)
	}
	for flag := range known() {
		f.Add("--"+flag+"=\x1b\n\x00--\x00app", twin(flag), "a\nb")
	}
	f.Fuzz(func(t *testing.T, line, variable, value string) {
		var args []string
		if line != "" {
			args = strings.Split(line, "\x00")
		}
		r, help, err := ask(map[string]string{variable: value}, args...)
		var e *Error
		switch {
		case errors.Is(err, ErrHelp):
			if help == "" {
				t.Errorf("%q: no help", args)
			}
		case errors.As(err, &e):
			if e.Text == "" || !plainLine(e.Text) || !plainLine(e.Hint) {
				t.Errorf("%q, %s=%q: %q, hint %q", args, variable, value, e.Text, e.Hint)
			}
		case err != nil:
			t.Errorf("%q: %T", args, err)
		default:
			wellFormed(t, args, r)
		}
	})
}

// wellFormed: a result is one thing, and complete.
func wellFormed(t *testing.T, args []string, r Result) {
	t.Helper()
	n := 0
	for _, there := range []bool{r.Version, r.Run != nil, r.Client != nil, r.Spread != nil, r.Budget != nil} {
		if there {
			n++
		}
	}
	if n != 1 || r.BudgetJSON && r.Budget == nil {
		t.Errorf("%q: %+v", args, r)
	}
	for _, c := range []*Config{r.Run, r.Budget} {
		if c != nil && (len(c.Command) == 0 && c != r.Budget || c.Budget.Grace.D < 0 || c.Platform.Name == "" || len(c.Control) > 107) {
			t.Errorf("%q: %+v", args, c)
		}
	}
	if c := r.Client; c != nil && (!isVerb(c.Verb) || c.Control != "" && c.Control[0] != '@' && c.Control[0] != '/') {
		t.Errorf("%q: %+v", args, c)
	}
	if s := r.Spread; s != nil && (len(s.Command) == 0 || s.Over < 0 || s.Over > 0 && !s.OverSet) {
		t.Errorf("%q: %+v", args, s)
	}
}
