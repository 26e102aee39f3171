package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

func TestParseStat(t *testing.T) {
	for _, c := range []struct {
		line string
		want process
		ok   bool
	}{
		{"12 (sh) S 1 12 12 0 -1", process{parent: 1, group: 12, session: 12, state: 'S'}, true},
		{"12 (a b) R 1 2 3 4", process{parent: 1, group: 2, session: 3, state: 'R'}, true},
		{"12 (a) S 9 9 9) Z 1 2 3 4", process{parent: 1, group: 2, session: 3, state: 'Z'}, true},
		{"12 (x\ny) T 1 2 3 4\n", process{parent: 1, group: 2, session: 3, state: 'T'}, true},
		{"12 ()) D 0 0 0", process{state: 'D'}, true},
		{"12 (sh) S 0 -1 -1 0", process{group: -1, session: -1, state: 'S'}, true},
		{"12 (sh) S 1 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0", process{parent: 1, group: 12, session: 12, state: 'S', start: 4711}, true},
		{"", process{}, false},
		{"12 (sh", process{}, false},
		{"12 (sh)", process{}, false},
		{"12 (sh) S 1 2", process{}, false},
		{"12 (sh) SS 1 2 3", process{}, false},
		{"12 (sh) S x 2 3", process{}, false},
	} {
		got, ok := parseStat([]byte(c.line))
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %+v, %v", c.line, got, ok)
		}
	}
}

// FuzzParseStat: whatever a program calls itself, its numbers are the kernel's.
func FuzzParseStat(f *testing.F) {
	f.Add("sh", 1, 2, 3, byte('S'))
	f.Add(") Z 9 9 9 (", 0, -1, 7, byte('T'))
	f.Add("a\nb", 1, 1, 1, byte('R'))
	f.Fuzz(func(t *testing.T, name string, parent, group, session int, state byte) {
		_, _ = parseStat([]byte(name)) // no panic
		if state <= ' ' || state > '~' {
			return
		}
		line := fmt.Sprintf("1 (%s) %c %d %d %d 0 0", name, state, parent, group, session)
		got, ok := parseStat([]byte(line))
		if state == ')' {
			return // no state of any process
		}
		want := process{parent: parent, group: group, session: session, state: state}
		if !ok || got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	})
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"a\n", []string{"a"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"\n", []string{""}},
		{"a\r\n", []string{"a\r"}},
		{long + "\nb\n", []string{long, "b"}},
		{long[1:] + "\nb\n", []string{long[1:], "b"}},
		{long + "y\nb", []string{long, "b"}},
		{long + long + long + "\nb", []string{long, "b"}},
		{long + long, []string{long}},
	} {
		var got []string
		readLines(strings.NewReader(c.in), func(l string) { got = append(got, l) })
		if fmt.Sprint(got) != fmt.Sprint(c.want) || len(got) != len(c.want) {
			t.Errorf("%.20q (%d): %d lines, want %d", c.in, len(c.in), len(got), len(c.want))
		}
	}
}

// FuzzReadLines: the lines are those of strings.Split, cut, however the reads
// fall.
func FuzzReadLines(f *testing.F) {
	f.Add("a\nb\n\nc", true)
	f.Add(strings.Repeat("x", maxLine+3)+"\ny", false)
	f.Fuzz(func(t *testing.T, in string, bytewise bool) {
		r := iotest.HalfReader(strings.NewReader(in))
		if bytewise {
			r = iotest.OneByteReader(strings.NewReader(in))
		}
		var got []string
		readLines(r, func(l string) { got = append(got, l) })
		want := strings.Split(in, "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, w := range want {
			if got[i] != w[:min(len(w), maxLine)] {
				t.Errorf("line %d: %d bytes, want %d", i, len(got[i]), min(len(w), maxLine))
			}
		}
	})
}

// elf is a file with the given loader, in one of the four layouts.
func elf(class, order byte, interp string) []byte {
	h := make([]byte, 64)
	copy(h, "\x7fELF")
	h[4], h[5] = class, order
	put := func(b []byte, at, size int, v uint64) {
		for i := range size {
			shift := 8 * i
			if order == 2 {
				shift = 8 * (size - 1 - i)
			}
			b[at+i] = byte(v >> shift)
		}
	}
	l, segment := elf64, 56
	if class == 1 {
		l, segment = elf32, 32
	}
	put(h, l.phoff, l.word, 64)
	put(h, l.phentsize, 2, uint64(segment))
	put(h, l.phnum, 2, 2)
	ph := make([]byte, 2*segment)
	put(ph, 0, 4, 6) // PT_PHDR
	put(ph, segment, 4, ptInterp)
	put(ph, segment+l.offset, l.word, uint64(64+2*segment))
	put(ph, segment+l.filesz, l.word, uint64(len(interp)+1))
	return append(append(h, ph...), interp+"\x00"...)
}

func TestLoader(t *testing.T) {
	for class := byte(1); class <= 2; class++ {
		for order := byte(1); order <= 2; order++ {
			if got := loader(bytes.NewReader(elf(class, order, "/lib/ld.so"))); got != "/lib/ld.so" {
				t.Errorf("class %d order %d: %q", class, order, got)
			}
		}
	}
	sh, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer sh.Close()
	if name := loader(sh); name != "" {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("the loader of /bin/sh: %v", err)
		}
	}
}

func FuzzLoader(f *testing.F) {
	for class := byte(1); class <= 2; class++ {
		for order := byte(1); order <= 2; order++ {
			f.Add(elf(class, order, "/lib/ld.so"))
		}
	}
	f.Add([]byte("#!/bin/sh\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(loader(bytes.NewReader(file))) > maxSegment {
			t.Error("longer than a path")
		}
	})
}

func TestInterpreter(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ text, want string }{
		{"#!/bin/sh\n", "/bin/sh"},
		{"#! \t/bin/sh -e\n", "/bin/sh"},
		{"#!/bin/sh\techo\n", "/bin/sh"},
		{"#!/bin/sh\r\n", "/bin/sh\r"},
		{"#!/bin/sh", "/bin/sh"},
		{"#!\n", ""},
		{"#!", ""},
		{"echo\n", ""},
		{"", ""},
		{string(elf(2, 1, "/lib/ld.so")), "/lib/ld.so"},
	} {
		name := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(name, []byte(c.text), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := interpreter(name); got != c.want {
			t.Errorf("%.20q: %q, want %q", c.text, got, c.want)
		}
	}
	if got := interpreter(filepath.Join(dir, "absent")); got != "" {
		t.Errorf("of an absent file: %q", got)
	}
}

// TestMissingInterpreter follows a chain, and ends in a circle too.
func TestMissingInterpreter(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	last := write("last", "#!/no/such\n")
	first := write("first", "#!"+last+"\n")
	if got := missingInterpreter(first); got != "/no/such" {
		t.Errorf("chain: %q", got)
	}
	circle := filepath.Join(dir, "circle")
	write("circle", "#!"+circle+"\n")
	if got := missingInterpreter(circle); got != "" {
		t.Errorf("circle: %q", got)
	}
}

// TestThreadsOutliveTheFirst: a process whose first thread has ended shows as a
// zombie while others go on; it is alive.
func TestThreadsOutliveTheFirst(t *testing.T) {
	const rest = " 1 5 5 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 %s 0 100 0 0"
	for threads, want := range map[string]byte{"0": 'Z', "1": 'Z', "3": 'S'} {
		line := "7 (x) Z" + strings.Replace(rest, "%s", threads, 1)
		if p, ok := parseStat([]byte(line)); !ok || p.state != want {
			t.Errorf("%s threads: %c, want %c", threads, p.state, want)
		}
	}
}
