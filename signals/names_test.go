package signals

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]syscall.Signal{
		"SIGTERM": 15, "TERM": 15, "term": 15, "sigterm": 15, "SigTerm": 15, "15": 15, "015": 15,
		"HUP": 1, "KILL": 9, "STKFLT": 16, "IO": 29, "PWR": 30, "SYS": 31,
		"IOT": 6, "POLL": 29, "SIGCLD": 17,
		"1": 1, "32": 32, "34": 34, "64": 64,
		"RTMIN": 34, "SIGRTMIN": 34, "rtmin+0": 34, "RTMIN+3": 37, "RTMIN+15": 49, "RTMIN+30": 64,
		"RTMAX": 64, "RTMAX-0": 64, "RTMAX-2": 62, "sigrtmax-14": 50, "RTMAX-30": 34,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"0": "from 1 to 64", "65": "from 1 to 64", "00": "from 1 to 64", "65535": "from 1 to 64",
		"": `unknown signal ""`, "-1": "unknown", "+15": "unknown", "65536": "unknown", "1e1": "unknown", "0x0f": "unknown", "1_5": "unknown",
		"SIG": "unknown", "SIG15": "unknown", "SIGSIGTERM": "unknown", " TERM": "unknown", "TERM ": "unknown", "TERM\n": `"TERM\n"`, "TERMINATE": "unknown",
		"RTMIN+31": "unknown", "RTMIN-1": "unknown", "RTMAX+1": "unknown", "RTMAX-31": "unknown", "RTMIN+": "unknown", "RTMIN3": "unknown",
		"RTMIN+-1": "unknown", "RTMIN++1": "unknown", "RTMIN+999999999999": "unknown", "RTMIN +1": "unknown", "\xff": "unknown",
	} {
		got, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

// Every number has one name, which is read back as that number, as is the
// number itself.
func TestNames(t *testing.T) {
	seen := map[string]int{}
	for n := 1; n <= Max; n++ {
		name := Name(syscall.Signal(n))
		if other, twice := seen[name]; twice {
			t.Errorf("%d and %d are both %s", other, n, name)
		}
		seen[name] = n
		for _, text := range []string{name, "SIG" + name, strings.ToLower(name), strconv.Itoa(n)} {
			if _, err := strconv.Atoi(name); err == nil && strings.HasPrefix(text, "SIG") {
				continue // 32 and 33 have no name
			}
			if got, err := Parse(text); err != nil || int(got) != n {
				t.Errorf("%d is %q, which is %d, %v", n, text, got, err)
			}
		}
	}
	for n, want := range map[int]string{
		-1: "-1", 0: "0", 1: "HUP", 15: "TERM", 31: "SYS", 32: "32", 33: "33", 34: "RTMIN", 35: "RTMIN+1",
		49: "RTMIN+15", 50: "RTMAX-14", 63: "RTMAX-1", 64: "RTMAX", 65: "65",
	} {
		if got := Name(syscall.Signal(n)); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// The table holds the names of this platform's numbers.
func TestNamesAreThePlatforms(t *testing.T) {
	for name, n := range map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
		"PIPE": syscall.SIGPIPE, "ALRM": syscall.SIGALRM, "TERM": syscall.SIGTERM, "CHLD": syscall.SIGCHLD, "CONT": syscall.SIGCONT,
		"STOP": syscall.SIGSTOP, "TSTP": syscall.SIGTSTP, "TTIN": syscall.SIGTTIN, "TTOU": syscall.SIGTTOU, "URG": syscall.SIGURG,
		"PROF": syscall.SIGPROF, "WINCH": syscall.SIGWINCH, "IO": syscall.SIGIO, "PWR": syscall.SIGPWR, "SYS": syscall.SIGSYS,
	} {
		if got := Name(n); got != name {
			t.Errorf("%d: %s, want %s", n, got, name)
		}
	}
}

// line: an error fits on the line that it is printed on.
func line(err error) bool {
	return utf8.ValidString(err.Error()) && !strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) })
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"TERM", "sigterm", "15", "0", "65", "-1", "RTMIN+3", "RTMAX-2", "RTMIN+31", "ſigterm", "\xff\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if s != 0 || !line(err) {
				t.Errorf("%q: %d, %q", text, s, err)
			}
			return
		}
		if s < 1 || s > Max {
			t.Errorf("%q: %d", text, s)
		}
		if again, err := Parse(Name(s)); err != nil || again != s {
			t.Errorf("%q is %s, which is %d, %v", text, Name(s), again, err)
		}
	})
}
