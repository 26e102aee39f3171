package hooks

import (
	"strings"
	"testing"
	"time"
)

func TestDirectives(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       directives
	}{
		{"none", script + "echo hi\n", directives{}},
		{"empty", "", directives{}},
		{"both", "# drainit: max-duration=5s order=10", directives{10, true, 5 * time.Second}},
		{"hash", script + "#drainit:order=3\n", directives{order: 3, ordered: true}},
		{"slashes", "// drainit: order=3\n", directives{order: 3, ordered: true}},
		{"semicolon", ";; drainit: order=3\n", directives{order: 3, ordered: true}},
		{"dashes", "-- drainit: order=3\n", directives{order: 3, ordered: true}},
		{"indented", " \t# drainit: order=3\n", directives{order: 3, ordered: true}},
		{"CRLF", script + "# drainit: order=3\r\n", directives{order: 3, ordered: true}},
		{"tabs", "#\tdrainit:\torder=3\tmax-duration=1s", directives{3, true, time.Second}},
		{"two lines", "# drainit: order=3\n# drainit: max-duration=1s", directives{3, true, time.Second}},
		{"order 0", "# drainit: order=0", directives{ordered: true}},
		{"bare seconds", "# drainit: max-duration=5", directives{maxDuration: 5 * time.Second}},
		{"bare decimals", "# drainit: max-duration=0.25", directives{maxDuration: 250 * time.Millisecond}},
		{"line 20", strings.Repeat("\n", 19) + "# drainit: order=3", directives{order: 3, ordered: true}},
		{"line 21", strings.Repeat("\n", 20) + "# drainit: nonsense", directives{}},
		{"code", "echo drainit: nonsense\ndrainit: nonsense\n- drainit: nonsense\n/ drainit: nonsense", directives{}},
		{"prose", "# see drainit: nonsense\n# drainit nonsense\n#! drainit: nonsense", directives{}},
		{"trailing comment", "echo # drainit: nonsense", directives{}},
		{"ELF", "\x7fELF\n# drainit: nonsense", directives{}},
		{"other binary", "MZ\x00\n# drainit: nonsense", directives{}},
		{"script with payload", "#!/bin/sh\n# drainit: order=3\nexit\n\x00\x01", directives{order: 3, ordered: true}},
		{"cut inside a directive", long("# drainit: order=3\n", "# drainit: max-duration=5"), directives{order: 3, ordered: true}},
		{"one endless line", strings.Repeat("#", headSize+1), directives{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseDirectives(Phase, []byte(c.head))
			if err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

// long is a head of headSize+1 bytes, of a file that goes on behind last.
func long(first, last string) string {
	return first + strings.Repeat("x", headSize+1-len(first)-len("\n")-len(last)) + "\n" + last
}

func TestBadDirectives(t *testing.T) {
	for directive, want := range map[string]string{
		"max-duraton=5s":              `line 2: unknown word "max-duraton"`,
		"Order=1":                     `line 2: unknown word "Order"`,
		"order=1, max-duration=1s":    `line 2: order "1," is not a whole number from 0 to 2147483647`,
		"order=-1":                    `line 2: order "-1" is not a whole number from 0 to 2147483647`,
		"order=+1":                    `line 2: order "+1" is not a whole number from 0 to 2147483647`,
		"order=1.5":                   `line 2: order "1.5" is not a whole number from 0 to 2147483647`,
		"order=":                      `line 2: order "" is not a whole number from 0 to 2147483647`,
		"order":                       `line 2: order "" is not a whole number from 0 to 2147483647`,
		"order=2147483648":            `line 2: order "2147483648" is not a whole number from 0 to 2147483647`,
		"max-duration=0":              `line 2: max-duration "0" is not positive`,
		"max-duration=0s":             `line 2: max-duration "0s" is not positive`,
		"max-duration=-5s":            `line 2: max-duration "-5s" is not positive`,
		"max-duration=-5":             `line 2: max-duration "-5" is not a duration`,
		"max-duration=soon":           `line 2: max-duration "soon" is not a duration`,
		"max-duration=":               `line 2: max-duration "" is not a duration`,
		"max-duration=.":              `line 2: max-duration "." is not a duration`,
		"max-duration=99999999999":    `line 2: max-duration "99999999999" is not a duration`,
		"max-duration=NaN":            `line 2: max-duration "NaN" is not a duration`,
		"order=1 order=1":             `line 2: "order" stands on line 2 already`,
		"order=1\n# drainit: order=2": `line 3: "order" stands on line 2 already`,
		"":                            `line 2: directive without a word`,
		"singleton=x":                 `line 2: unknown word "singleton"`,
	} {
		t.Run(directive, func(t *testing.T) {
			d, err := parseDirectives(Phase, []byte(script+"# drainit: "+directive+"\n"))
			if err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if d != (directives{}) {
				t.Errorf("directives in spite of the error: %+v", d)
			}
		})
	}
}

func TestWordsBelongToAKind(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		bounded bool // may declare max-duration
		hint    string
	}{
		{Phase, true, "a phase knows: max-duration=, order="},
		{Step, true, "a step knows: max-duration=, order="},
		{Companion, false, "a companion knows: order="},
	} {
		if d, err := parseDirectives(c.kind, []byte("# drainit: order=7")); err != nil || d.order != 7 {
			t.Errorf("%v: order %d, %v", c.kind, d.order, err)
		}
		if _, err := parseDirectives(c.kind, []byte("# drainit: max-duration=1s")); (err == nil) != c.bounded {
			t.Errorf("%v: max-duration: %v", c.kind, err)
		}
		if hint := directiveHint(c.kind); hint != c.hint {
			t.Errorf("hint %q, want %q", hint, c.hint)
		}
	}
	if _, err := parseDirectives(Companion+1, []byte("# drainit: order=1")); err == nil {
		t.Error("a kind that has no row takes a word")
	}
}

func FuzzDirectives(f *testing.F) {
	for _, s := range []string{
		"# drainit: max-duration=5s order=10", "// drainit: order=1\n; drainit: max-duration=1", "-- drainit: x",
		"\x7fELF# drainit: order=1", "#!/bin/sh\n\x00\n# drainit: order=1\r\n", "# drainit:", "#drainit:order==1", strings.Repeat("\n", 25),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		d, err := parseDirectives(Phase, head)
		if err != nil {
			if msg := err.Error(); strings.ContainsAny(msg, "\n\r") || !strings.HasPrefix(msg, "line ") {
				t.Errorf("%q: error %q", head, msg)
			}
			if d != (directives{}) {
				t.Errorf("%q: %+v in spite of %v", head, d, err)
			}
			return
		}
		if d.maxDuration < 0 || d.order < 0 || d.order > maxOrder || !d.ordered && d.order != 0 {
			t.Errorf("%q: %+v", head, d)
		}
		if d != (directives{}) && !strings.Contains(string(head), "drainit:") {
			t.Errorf("%q: %+v out of nothing", head, d)
		}
	})
}
