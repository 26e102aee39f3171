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

// fakeReader answers at once, but for the processes in hangs, which it answers
// when they are closed.
func fakeReader(hangs map[int]chan struct{}, asked chan<- int) func() readFunc {
	return func() readFunc {
		return func(id identity, _ bool) reading {
			asked <- id.pid
			if c := hangs[id.pid]; c != nil {
				<-c
			}
			return reading{id: id, mark: mark{fmt.Sprint(id.pid), "step"}, found: true}
		}
	}
}

func identities(n int) (all []identity) {
	for pid := 1; pid <= n; pid++ {
		all = append(all, identity{pid, 1})
	}
	return all
}

// TestReaderThatHangs: the others are read all the same, what hangs is not asked
// again, and its late answer counts.
func TestReaderThatHangs(t *testing.T) {
	t.Parallel()
	const all = 3 * atOnce
	hang := make(chan struct{})
	asked := make(chan int, 2*all)
	m := newMarks(fakeReader(map[int]chan struct{}{5: hang}, asked))
	m.learn(identities(all), false, zero)
	if len(m.known) != all-1 || len(m.stuck) != 1 || !m.stuck[identity{5, 1}] {
		t.Fatalf("%d known, %v stuck", len(m.known), m.stuck)
	}
	m.learn(nil, false, zero)
	if n := len(asked); n != all {
		t.Errorf("%d were asked for", n)
	}
	close(hang)
	eventually(t, "the late answer", func() bool { m.learn(nil, false, zero); return len(m.stuck) == 0 })
	if m.known[identity{5, 1}] != (mark{"5", "step"}) {
		t.Errorf("%+v", m.known[identity{5, 1}])
	}
}

// TestReadersThatHang are but a few, and cost a bounded time once.
func TestReadersThatHang(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	hangs := map[int]chan struct{}{}
	for pid := 1; pid <= 100; pid += 2 {
		hangs[pid] = hang
	}
	asked := make(chan int, 1000)
	m := newMarks(fakeReader(hangs, asked))
	began := time.Now()
	for range 10 {
		m.learn(identities(100), false, zero)
	}
	if took := time.Since(began); took > (maxStuck+1)*readPatience+time.Second {
		t.Errorf("took %v", took)
	}
	if len(m.stuck) != maxStuck || len(m.known) != maxStuck-1 || len(asked) != 2*maxStuck-1 {
		t.Errorf("%d stuck, %d known, %d asked", len(m.stuck), len(m.known), len(asked))
	}
	close(hang) // and then all is well
	eventually(t, "all answers", func() bool { m.learn(identities(100), false, zero); return len(m.known) == 100 })
	if len(m.stuck) != 0 {
		t.Errorf("%v stuck", m.stuck)
	}
}

// TestReaderInTime: the limit of the look is that of its readers.
func TestReaderInTime(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	m := newMarks(fakeReader(map[int]chan struct{}{1: hang, 2: hang}, make(chan int, 10)))
	began := time.Now()
	m.learn(identities(3), false, began.Add(readPatience/10))
	if took := time.Since(began); took > readPatience/2 {
		t.Errorf("took %v", took)
	}
}

// TestReaderThatFaults costs the one process.
func TestReaderThatFaults(t *testing.T) {
	t.Parallel()
	m := newMarks(func() readFunc {
		return func(id identity, _ bool) reading {
			if id.pid == 2 {
				panic("boom")
			}
			return reading{id: id, found: true}
		}
	})
	m.learn(identities(4), false, zero)
	if len(m.known) != 3 || !m.stuck[identity{2, 1}] {
		t.Errorf("%v known, %v stuck", m.known, m.stuck)
	}
}

// TestMarksAreForgotten with their processes.
func TestMarksAreForgotten(t *testing.T) {
	m := newMarks(nil)
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
		var f procFS
		eventually(t, "the program", func() bool {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			return strings.HasPrefix(string(line), "sleep")
		})
		p, alive := f.read(cmd.Process.Pid)
		if !alive || p.start == 0 {
			t.Errorf("%s: %+v", what, p)
		}
		if r := readEnvironments()(p.identity(), true); r.found != c.found || r.forked || r.mark != c.want {
			t.Errorf("%s: %+v", what, r)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r := readEnvironments()(p.identity(), false); r.found {
			t.Errorf("%s, when it is gone: %+v", what, r)
		}
	}
	var f procFS
	own, _ := f.read(os.Getpid())
	if r := readEnvironments()(own.identity(), true); !r.forked {
		t.Errorf("the own program: %+v", r)
	}
}
