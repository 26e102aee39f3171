package signals

import (
	"math/bits"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestSet(t *testing.T) {
	s := Of(syscall.SIGTERM, syscall.SIGHUP, 64, syscall.SIGTERM, 0, -1, 65, 1000)
	if got := s.String(); got != "HUP,TERM,RTMAX" {
		t.Errorf("%s", got)
	}
	if got := s.List(); !slices.Equal(got, []syscall.Signal{1, 15, 64}) {
		t.Errorf("%v", got)
	}
	for n := syscall.Signal(-70); n < 140; n++ {
		if got, want := s.Has(n), n == 1 || n == 15 || n == 64; got != want {
			t.Errorf("has %d: %v", n, got)
		}
	}
	if rest := s.Minus(Of(15, 16)); rest.String() != "HUP,RTMAX" || s.String() != "HUP,TERM,RTMAX" {
		t.Errorf("%s, of %s", rest, s)
	}
	if got := Set(0); got.String() != "none" || got.List() != nil || got.With(9).Minus(Of(9)) != 0 {
		t.Errorf("%s", got)
	}
	for n := syscall.Signal(1); n <= Max; n++ {
		if s := Of(n); bits.OnesCount64(uint64(s)) != 1 || !s.Has(n) || len(s.List()) != 1 {
			t.Errorf("%d: %x", n, uint64(s))
		}
	}
	var seen []syscall.Signal
	for sig := range s.each {
		seen = append(seen, sig)
		if sig == 15 {
			break
		}
	}
	if !slices.Equal(seen, []syscall.Signal{1, 15}) {
		t.Errorf("each: %v", seen)
	}
}

// What can't be taken in is this and nothing else. The documentation lists the
// same (docs/reference/signals.md).
func TestReceivable(t *testing.T) {
	reasons := map[syscall.Signal]string{
		syscall.SIGKILL: "kernel", syscall.SIGSTOP: "kernel", 32: "runtime", 33: "runtime", 34: "runtime",
		syscall.SIGPROF: "profiler", syscall.SIGURG: "runtime", syscall.SIGCHLD: "children", syscall.SIGPIPE: "own writes",
	}
	for n := syscall.Signal(1); n <= Max; n++ {
		err := Receivable(n)
		reason, bad := reasons[n]
		switch {
		case bad && (err == nil || !strings.Contains(err.Error(), reason) || !strings.HasPrefix(err.Error(), Name(n)+" ")):
			t.Errorf("%s: %v, want one with %q", Name(n), err, reason)
		case !bad && err != nil:
			t.Errorf("%s: %v", Name(n), err)
		}
		if Forwardable().Has(n) == bad {
			t.Errorf("%s: forwardable %v", Name(n), !bad)
		}
	}
}

func TestStops(t *testing.T) {
	refused := Of(syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG)
	for n := syscall.Signal(1); n <= Max; n++ {
		if err := Stops(n); (err != nil) != refused.Has(n) || err != nil && !strings.HasPrefix(err.Error(), Name(n)+" ") {
			t.Errorf("%s: %v", Name(n), err)
		}
	}
}

func TestParseSet(t *testing.T) {
	for text, want := range map[string]string{
		"none": "none", "NONE": "none", "TERM": "TERM", "TERM,INT": "INT,TERM", " sigquit ,\t3, RTMIN+3": "QUIT,RTMIN+3", "TERM,term,15": "TERM",
	} {
		if got, err := ParseSet(text); err != nil || got.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "unknown", ",": "unknown", "TERM,": "unknown", "TERM INT": "unknown", "TERM;INT": "unknown", "none,TERM": `"none"`,
		"TERM,KILL": "KILL can't be received", "34": "RTMIN can't be received", "CHLD": "can't be received", "0": "from 1 to 64",
	} {
		if got, err := ParseSet(text); err == nil || got != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestParseRewrite(t *testing.T) {
	r := Rewrites{}
	for _, text := range []string{"HUP:QUIT", "sigusr1:", "RTMAX:RTMIN", "12:9", "WINCH:WINCH"} {
		if err := r.ParseRewrite(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for from, to := range map[syscall.Signal]syscall.Signal{
		syscall.SIGHUP: syscall.SIGQUIT, syscall.SIGUSR1: 0, 64: 34, syscall.SIGUSR2: syscall.SIGKILL,
		syscall.SIGWINCH: syscall.SIGWINCH, syscall.SIGQUIT: syscall.SIGQUIT, 63: 63,
	} {
		if got := r.Forward(from); got != to {
			t.Errorf("%s: %s, want %s", Name(from), Name(got), Name(to))
		}
		if got := Rewrites(nil).Forward(from); got != from {
			t.Errorf("without rules %s becomes %s", Name(from), Name(got))
		}
	}
	for text, want := range map[string]string{
		"": "no colon", "HUP": "no colon", "HUP=QUIT": "no colon", ":": "unknown", ":HUP": "unknown", "INT:0": "from 1 to 64",
		"INT:NOPE": "unknown", "INT:TERM:QUIT": "unknown", "INT: TERM": "unknown", "KILL:TERM": "can't be received", "PIPE:": "can't be received",
		"HUP:TERM": "two rules for HUP", "1:": "two rules for HUP",
	} {
		before := len(r)
		if err := r.ParseRewrite(text); err == nil || !strings.Contains(err.Error(), want) || len(r) != before {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

func FuzzParseSet(f *testing.F) {
	for _, seed := range []string{"", "none", "TERM,INT", "TERM, 3 ,RTMIN+3", "KILL", ",", "\n", "a,\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSet(text)
		if err != nil {
			if s != 0 || !line(err) {
				t.Errorf("%q: %s, %q", text, s, err)
			}
			return
		}
		if s.Minus(Forwardable()) != 0 {
			t.Errorf("%q: %s can't be received", text, s.Minus(Forwardable()))
		}
		if again, err := ParseSet(s.String()); err != nil || again != s {
			t.Errorf("%q is %s, which is %s, %v", text, s, again, err)
		}
	})
}

func FuzzParseRewrite(f *testing.F) {
	for _, seed := range []string{"", ":", "HUP:QUIT", "HUP:", "KILL:", "HUP:0", "\xff:\n", "1:2:3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Rewrites{}
		if err := r.ParseRewrite(text); err != nil {
			if len(r) != 0 || !line(err) {
				t.Errorf("%q: %v, %q", text, r, err)
			}
			return
		}
		for from, to := range r {
			if len(r) != 1 || Receivable(from) != nil || to < 0 || to > Max {
				t.Errorf("%q: %v", text, r)
			}
			if err := r.ParseRewrite(Name(from) + ":"); err == nil {
				t.Errorf("%q: a second rule for %s", text, Name(from))
			}
		}
	})
}
