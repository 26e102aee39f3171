package hooks

import (
	"strings"
	"testing"
)

func TestSplitName(t *testing.T) {
	for _, c := range []struct {
		file  string
		order int
		name  string
	}{
		{"10-hand-over.sh", 10, "hand-over"},
		{"hand-over", 50, "hand-over"},
		{"hand-over.sh", 50, "hand-over"},
		{"05_a", 5, "a"},
		{"10 hand over.sh", 10, "hand over"},
		{"10 - a", 10, "a"},
		{"10 .sh", 10, "10 "},
		{" a", 50, " a"},
		{"7.a.sh", 7, "a"},
		{"7a", 7, "a"},
		{"0-a", 0, "a"},
		{"10--a", 10, "a"},
		{"10-a.tar.sh", 10, "a.tar"},
		{"10-v1.2", 10, "v1.2"},
		{"10.5-a", 10, "5-a"},
		{"10-a.b-c", 10, "a.b-c"},
		{"10-a.", 10, "a."},
		{"10", 10, "10"},
		{"10.sh", 10, "10"},
		{"10-.sh", 10, "10-"},
		{"-a", 50, "-a"},
		{"_a.sh", 50, "_a"},
		{"a-10.sh", 50, "a-10"},
		{"10-a.SH", 10, "a"},
		{"10-ä.sh", 10, "ä"},
		{"2147483647-a", 2147483647, "a"},
	} {
		order, name, err := splitName(c.file)
		if err != nil || order != c.order || name != c.name {
			t.Errorf("%q: %d, %q, %v; want %d, %q", c.file, order, name, err, c.order, c.name)
		}
	}
	if _, name, err := splitName("2147483648-a"); err == nil || name != "a" {
		t.Errorf("number out of range: name %q, error %v", name, err)
	}
}

// Renumbering a hook or giving it another extension must not change its name: it
// is a lock key.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"10-a.sh", "a", "", ".", "..", "10", "-", "10-.sh", "a.b.c", "1.2.3", "٣-a", "a\x00b", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		passedOver(s)
		order, name, err := splitName(s)
		if s != "" && name == "" {
			t.Errorf("%q has an empty name", s)
		}
		if !strings.Contains(s, name) || order < 0 || order > maxOrder {
			t.Errorf("%q: order %d, name %q", s, order, name)
		}
		if !beginsWithNumber(s) && (err != nil || order != defaultOrder) {
			t.Errorf("%q: order %d, error %v", s, order, err)
		}
		if strings.Trim(s, "-_. ") == "" || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "_") || strings.HasPrefix(s, " ") || strings.HasPrefix(s, ".") || beginsWithNumber(s) {
			return // not what stands behind a separator
		}
		for _, again := range []string{"10-" + s + ".sh", "20_" + s + ".py", "7 " + s + ".sh", "3." + s + ".x"} {
			if _, got, err := splitName(again); got != s || err != nil {
				t.Errorf("%q has the name %q, %v", again, got, err)
			}
		}
	})
}
