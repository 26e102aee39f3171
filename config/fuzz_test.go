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
	} {
		f.Add(seed, "", "")
		f.Add("--\x00app", "DRAINIT_GRACE_PERIOD", seed)
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
		case r.Version == (r.Run != nil):
			t.Errorf("%q: %+v", args, r)
		case r.Run != nil:
			if len(r.Run.Command) == 0 || r.Run.Budget.Grace.D < 0 || r.Run.Platform.Name == "" {
				t.Errorf("%q: %+v", args, r.Run)
			}
		}
	})
}
