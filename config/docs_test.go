package config

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs is where the flags are described for users.
const docs = "../docs/reference/flags.md"

// TestFlagsAreDocumented: each flag of the main job, and below its heading each of
// a verb, has a row with its placeholder, its twin and the default that its help
// tells, and no row has no flag.
func TestFlagsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	main, verbs, _ := strings.Cut(string(text), "\n## Verbs\n")
	documented(t, "the main job", main, known())
	for usage, grammar := range grammars() {
		name := strings.Fields(usage)[0]
		if name == "--" || name == "version" {
			continue
		}
		_, section, found := strings.Cut(verbs, "\n### "+heading(verbs, name)+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		own := flagsOf(grammar)
		if name == "budget" {
			maps.DeleteFunc(own, func(flag string, _ reflect.StructField) bool { _, ok := known()[flag]; return ok })
		}
		if !found || len(own) == 0 {
			t.Errorf("%s: no heading, or no flags: %v", name, own)
		}
		documented(t, name, section, own)
	}
}

// heading is the one that tells of a verb.
func heading(text, verb string) string {
	for line := range strings.Lines(text) {
		if h, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok && slices.Contains(strings.Split(h, ", "), "drainit "+verb) {
			return h
		}
	}
	return "drainit " + verb
}

func documented(t *testing.T, where, text string, missing map[string]reflect.StructField) {
	t.Helper()
	row := regexp.MustCompile("^\\| (?:`-[a-z]`, )?`--([a-z-]+)(=[^`]*)?` \\| `([A-Z_]+)` \\| ([^|]+) \\| [^|]+ \\|$")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| `-") {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%s: not a row of a flag: %s", where, line)
			continue
		}
		f, ok := missing[m[1]]
		if !ok {
			t.Errorf("%s: --%s is no flag, or stands there twice", where, m[1])
			continue
		}
		delete(missing, m[1])
		if placeholder := placeholderOf(f); m[2] != placeholder || m[3] != twin(m[1]) {
			t.Errorf("%s: --%s: %s and %s, want %s and %s", where, m[1], m[2], m[3], placeholder, twin(m[1]))
		}
		if want := defaultOf(f); m[4] != want {
			t.Errorf("%s: --%s: default %q, its help says %q", where, m[1], m[4], want)
		}
	}
	for flag := range missing {
		t.Errorf("%s: --%s is not documented", where, flag)
	}
}

func placeholderOf(f reflect.StructField) string {
	if f.Type.Elem().Kind() == reflect.String {
		return "=" + f.Tag.Get("placeholder")
	}
	return ""
}

// defaultOf is what a flag's help tells.
func defaultOf(f reflect.StructField) string {
	if _, told, ok := strings.Cut(f.Tag.Get("help"), "Default: "); ok {
		return strings.TrimSuffix(told, ".")
	}
	if f.Type.Elem().Kind() == reflect.Bool {
		return "off"
	}
	return "none"
}
