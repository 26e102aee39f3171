package control

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"
)

func TestFindByVariable(t *testing.T) {
	for value, want := range map[string]string{"@x": "@x", "/run/control": "/run/control", "none": ""} {
		addr, err := Find(func(name string) (string, bool) { return value, name == "DRAINIT_SOCKET" })
		if addr != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", value, addr, err)
		}
	}
}

// TestFind looks around in a network namespace of its own.
func TestFind(t *testing.T) {
	needRoot(t)
	me, err := whoami()
	if err != nil {
		t.Fatal(err)
	}
	// What the servers of these tests can't be is known by their name alone, so
	// two of them are impostors and are left out.
	for _, c := range []struct {
		name  string
		bound []string
		want  string
	}{
		{"none", nil, " find the init: no init with a control socket in this PID namespace\n"},
		{"others", []string{"@drainit/1", "@drainit/1/7", "@drainit", "@x/drainit/" + me.ns}, " find the init: no init with a control socket"},
		{"one", []string{address(me.ns, 4000001), "@drainit/1"}, address(me.ns, 4000001) + " <nil>\n"},
		{"one, PID 1", []string{address(me.ns, 1)}, address(me.ns, 1) + " <nil>\n"},
	} {
		attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
		if got := output(t, relative(attr, "find", c.bound...)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestFindHonest: among several, those that are who they say count.
func TestFindHonest(t *testing.T) {
	needRoot(t)
	me, err := whoami()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := neighbour(t, nil)
	second, _ := neighbour(t, user(stranger))
	nested, _ := neighbour(t, inBelow())
	forged := address(me.ns, 4000001)
	s, err := Listen(forged, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	refused, container := address(me.ns, 4000002), address(me.ns, 1)
	for _, c := range []struct {
		found []string
		want  string
	}{
		{[]string{first, forged}, first + " <nil>"},
		{[]string{refused, forged, second}, second + " <nil>"},
		{[]string{nested, first}, first + " <nil>"},
		{[]string{first, second, forged}, " several in this PID namespace: " + fmt.Sprintf("%q %q", first, second)},
		{[]string{forged, refused}, " several in this PID namespace: " + fmt.Sprintf("%q %q", forged, refused)},
		{[]string{container, first}, first + " <nil>"}, // nobody listens there
	} {
		addr, err := me.choose(listed(names{all: c.found}))
		if got := addr + " " + fmt.Sprint(err); got != c.want {
			t.Errorf("%q: %s", c.found, got)
		}
	}
	if addr, err := me.choose(listed(names{all: []string{first}, more: 3})); err == nil || !strings.HasSuffix(err.Error(), "and 3 more") {
		t.Errorf("%q, %v", addr, err)
	}
}

// listed is a list that is known.
func listed(all names) func(func(string) bool) (names, error) {
	return func(keep func(string) bool) (names, error) {
		n := names{more: all.more}
		for _, addr := range all.all {
			if keep == nil || keep(addr) {
				n.all = append(n.all, addr)
			}
		}
		return n, nil
	}
}

// TestBelow: an ancestor that is an init counts, and no other.
func TestBelow(t *testing.T) {
	parents := map[int]int{2: 1, 3: 2, 4: 3, 7: 0, 8: 9, 9: 8, 10: 10}
	parent := func(pid int) int { return parents[pid] }
	owners := map[int]bool{1: true, 3: true, 7: true, 10: true}
	for pid, want := range map[int]bool{1: false, 2: true, 3: true, 4: true, 5: false, 7: false, 8: false} {
		if got := below(pid, owners, parent); got != want {
			t.Errorf("%d: %v", pid, got)
		}
	}
	for pid, want := range map[int]int{os.Getpid(): os.Getppid(), 1<<22 + 1: 0} {
		if got := parentOf(pid); got != want {
			t.Errorf("parent of %d: %d, want %d", pid, got, want)
		}
	}
}

// TestFindContainer: PID 1 is the container's init, whoever is below it, be it an orphan.
func TestFindContainer(t *testing.T) {
	needRoot(t)
	got := output(t, relative(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS}, "container"))
	if !strings.HasPrefix(got, "@drainit/") || strings.Count(got, "/") != 1 || !strings.HasSuffix(got, " <nil>\n") {
		t.Error(got)
	}
}

const header = "Num       RefCount Protocol Flags    Type St Inode Path\n"

func entry(flags, kind, name string) string {
	return "0000000000000000: 00000002 00000000 " + flags + " " + kind + " 01 12345 " + name + "\n"
}

func TestListening(t *testing.T) {
	for text, want := range map[string]string{
		"":     "[] 0",
		header: "[] 0",
		header + entry("00010000", "0001", "@drainit/77"):                  "[@drainit/77] 0",
		header + entry("00010000", "0001", "@drainit/77/5"):                "[@drainit/77/5] 0",
		strings.TrimSuffix(entry("00010000", "0001", "@drainit/77"), "\n"): "[@drainit/77] 0",
		entry("00000000", "0001", "@drainit/77"):                           "[] 0", // a connection
		entry("00010000", "0005", "@drainit/77"):                           "[] 0", // another type
		entry("00010000", "0001", "@drainit/78"):                           "[] 0",
		entry("00010000", "0001", "@drainit/77@"):                          "[] 0", // a zero byte
		entry("00010000", "0001", "@drainit/77 "):                          "[] 0",
		entry("00010000", "0001", "/tmp/@drainit/77"):                      "[] 0",
		entry("00010000", "0001", " @drainit/77"):                          "[] 0",
		entry("00010000", "0001", ""):                                      "[] 0",
		"x @drainit/77\n":                                                  "[] 0",
		strings.Repeat("x", 5000) + entry("00010000", "0001", "@drainit/77") + entry("00010000", "0001", "@drainit/77/6"): "[@drainit/77/6] 0",
		strings.Repeat(entry("00010000", "0001", "@drainit/77/5"), 3) + entry("00010000", "0001", "@drainit/77"):          "[@drainit/77/5 @drainit/77] 0",
		"ffff8881a: 00000002 00000000 00010000 0001 01     7 @drainit/77\n":                                               "[@drainit/77] 0",
	} {
		found, err := listening(iotest.HalfReader(strings.NewReader(text)), "77", nil)
		if got := fmt.Sprint(found.all, " ", found.more); got != want || err != nil {
			t.Errorf("%.80q: %s, %v", text, got, err)
		}
	}
	if _, err := listening(iotest.ErrReader(syscall.EIO), "77", nil); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
}

// TestManySockets: of thousands few are kept, and those that are not honest hide none.
func TestManySockets(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		b.WriteString(entry("00010000", "0001", fmt.Sprintf("@drainit/77/%d", i+2)))
	}
	b.WriteString(entry("00010000", "0001", "@drainit/77"))
	text := b.String()
	found, err := listening(strings.NewReader(text), "77", nil)
	if err != nil || len(found.all) != maxNames || found.more != 20_001-maxNames {
		t.Errorf("%d names, %d more, %v", len(found.all), found.more, err)
	}
	found, err = listening(strings.NewReader(text), "77", func(addr string) bool { return addr == "@drainit/77" })
	if err != nil || fmt.Sprint(found) != "{[@drainit/77] 0}" {
		t.Errorf("honest: %v, %v", found, err)
	}
}

// FuzzListening: whatever the list holds, what is found has the form of an address
// and is bounded.
func FuzzListening(f *testing.F) {
	f.Add(header+entry("00010000", "0001", "@drainit/77/5"), true)
	f.Add(entry("00010000", "0001", "@drainit/77")+entry("00000000", "0001", "@drainit/77\n@"), false)
	f.Add("0 0 0 00010000 0001 0 0 @drainit/77/8\n\n", false)
	f.Fuzz(func(t *testing.T, text string, half bool) {
		r := iotest.OneByteReader(strings.NewReader(text))
		if half {
			r = iotest.HalfReader(strings.NewReader(text))
		}
		found, err := listening(r, "77", nil)
		if err != nil || len(found.all) > maxNames || found.more > strings.Count(text, "\n")+1 {
			t.Errorf("%+v, %v", found, err)
		}
		for i, name := range found.all {
			if ns, pid, ok := parseAddress(name); !ok || ns != "77" || address(ns, pid) != name || slices.Contains(found.all[:i], name) {
				t.Errorf("%q", name)
			}
		}
	})
}
