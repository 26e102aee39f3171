package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// docs is where the flags are described for users.
const docs = "../docs/reference/flags.md"

// TestFlagsAreDocumented: each flag has a row with its placeholder, its twin and
// the default that its help tells, and no row has no flag.
func TestFlagsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("^\\| (?:`-[a-z]`, )?`--([a-z-]+)(=[^`]*)?` \\| `([A-Z_]+)` \\| ([^|]+) \\| [^|]+ \\|$")
	missing := known()
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| `-") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a row of a flag: %s", line)
			continue
		}
		f, ok := missing[m[1]]
		if !ok {
			t.Errorf("--%s is no flag, or stands there twice", m[1])
			continue
		}
		delete(missing, m[1])
		placeholder := ""
		if f.Type.Elem().Kind() == reflect.String {
			placeholder = "=" + f.Tag.Get("placeholder")
		}
		if m[2] != placeholder || m[3] != twin(m[1]) {
			t.Errorf("--%s: %s and %s, want %s and %s", m[1], m[2], m[3], placeholder, twin(m[1]))
		}
		want := "none"
		if f.Type.Elem().Kind() == reflect.Bool {
			want = "off"
		}
		if _, told, ok := strings.Cut(f.Tag.Get("help"), "Default: "); ok {
			want = strings.TrimSuffix(told, ".")
		}
		if m[4] != want {
			t.Errorf("--%s: default %q, its help says %q", m[1], m[4], want)
		}
	}
	for flag := range missing {
		t.Errorf("--%s is not documented", flag)
	}
}
