package child

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMarkIn(t *testing.T) {
	for environ, want := range map[string]mark{
		"":     {},
		"A=b":  {},
		"\x00": {},
		"DRAINIT_HOOK=a\x00DRAINIT_HOOK_KIND=step\x00":                    {"a", "step"},
		"DRAINIT_HOOK_KIND=step\x00A=b\x00DRAINIT_HOOK=a":                 {"a", "step"},
		"DRAINIT_HOOK=a\x00":                                              {"a", ""},
		"DRAINIT_HOOK_KIND=step\x00":                                      {"", "step"},
		"XDRAINIT_HOOK=a\x00DRAINIT_HOOKS=b\x00":                          {},
		"DRAINIT_HOOK=a\nb\x00DRAINIT_HOOK=c\x00DRAINIT_HOOK_KIND=phase=": {"a\nb", "phase="},
	} {
		if got := markIn([]byte(environ)); got != want {
			t.Errorf("%q: %+v, want %+v", environ, got, want)
		}
	}
}

// TestMarksAreForgotten with their processes.
func TestMarksAreForgotten(t *testing.T) {
	m := newMarks()
	m.note(identity{1, 7}, mark{"a", "step"})
	m.note(identity{2, 7}, mark{"b", "step"})
	m.note(identity{3, 0}, mark{"c", "step"}) // not to be told from the next
	m.forget(func(id identity) bool { return id.pid == 1 })
	if len(m.known) != 1 || m.known[identity{2, 7}].name != "b" {
		t.Errorf("%v", m.known)
	}
}

// TestReadEnvironments of real processes.
func TestReadEnvironments(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		env   []string
		argv  []string
		found bool
		want  mark
	}{
		"marked":  {[]string{"A=b", "DRAINIT_HOOK=a", "DRAINIT_HOOK_KIND=step"}, []string{"sleep", "600"}, true, mark{"a", "step"}},
		"large":   {[]string{"A=" + strings.Repeat("x", 100<<10), "DRAINIT_HOOK=a"}, []string{"sleep", "600"}, true, mark{"a", ""}},
		"cleared": {[]string{"DRAINIT_HOOK=a"}, []string{"env", "-i", "sleep", "600"}, true, mark{}},
	} {
		cmd := exec.Command(c.argv[0], c.argv[1:]...)
		cmd.Env = c.env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var stats statReader
		var environments environment
		eventually(t, "the program", func() bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			return strings.HasPrefix(string(line), "sleep")
		})
		p := stats.read(cmd.Process.Pid)
		if !p.alive || p.start == 0 {
			t.Errorf("%s: %+v", what, p)
		}
		m := newMarks()
		forked, missing := m.learn([]identity{p.identity()}, true, time.Time{})
		if is, found := m.known[p.identity()]; found != c.found || forked[p.pid] || missing > 0 || is != c.want {
			t.Errorf("%s: %+v, %v, %v, %d", what, is, found, forked, missing)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r := environments.read(p.identity(), false); r.found {
			t.Errorf("%s, when it is gone: %+v", what, r)
		}
	}
	var stats statReader
	own := stats.read(os.Getpid())
	if r := new(environment).read(own.identity(), true); !r.forked {
		t.Errorf("the own program: %+v", r)
	}
}

// TestManyCleared: processes without an environment are waited for together, each
// of which might be in the midst of an execve(2).
func TestManyCleared(t *testing.T) {
	t.Parallel()
	var ids []identity
	var stats statReader
	for range 200 {
		cmd := exec.Command("env", "-i", "sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		eventually(t, "the program", func() bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			return strings.HasPrefix(string(line), "sleep")
		})
		ids = append(ids, stats.read(cmd.Process.Pid).identity())
	}
	m := newMarks()
	began := time.Now()
	m.learn(ids, false, time.Time{})
	if took := time.Since(began); len(m.known) != len(ids) || took > 200*execPause {
		t.Errorf("%d of %d known after %v", len(m.known), len(ids), took)
	}
}

// FuzzMarkIn: the values are those of the first entries of those names, whatever
// stands around them.
func FuzzMarkIn(f *testing.F) {
	f.Add("a", "step", "A=b", "DRAINIT_HOOK", true)
	f.Add("", "x=y", "DRAINIT_HOOK_KIND", "=", false)
	f.Fuzz(func(t *testing.T, name, kind, first, last string, nul bool) {
		_ = markIn([]byte(first)) // no panic
		for _, s := range []string{name, kind, first, last} {
			if strings.ContainsRune(s, 0) || strings.HasPrefix(s, "DRAINIT_HOOK") && strings.Contains(s, "=") {
				return
			}
		}
		environ := strings.Join([]string{first, kindVariable + kind, hookVariable + name, last, hookVariable + "late"}, "\x00")
		if nul {
			environ += "\x00"
		}
		if got := markIn([]byte(environ)); got != (mark{name, kind}) {
			t.Errorf("%q: %+v", environ, got)
		}
	})
}
