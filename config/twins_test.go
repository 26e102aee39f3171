package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// known returns the flags that have a twin, with their fields.
func known() map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[flags]()) {
		if f.Name != "Version" {
			all[flagName(f.Name)] = f
		}
	}
	return all
}

// Two rules make a flag's name: kong's, and ours for the twin. They must agree,
// on every flag there is.
func TestNamesAreKongs(t *testing.T) {
	parser, err := kong.New(&flags{})
	if err != nil {
		t.Fatal(err)
	}
	var kongs []string
	for _, f := range parser.Model.Flags {
		if f.Name != "help" && f.Name != "version" {
			kongs = append(kongs, f.Name)
		}
		if f.Help == "" || f.Name != "help" && f.Name != "version" && !f.IsBool() && f.PlaceHolder == "" {
			t.Errorf("--%s has no help or no placeholder", f.Name)
		}
		if len(f.Envs) > 0 || f.HasDefault {
			t.Errorf("--%s has a variable or a default in kong: both are read here, where an error can name them", f.Name)
		}
	}
	slices.Sort(kongs)
	if ours := slices.Sorted(maps.Keys(known())); !slices.Equal(kongs, ours) {
		t.Errorf("kong's flags %q, ours %q", kongs, ours)
	}
}

func TestTwins(t *testing.T) {
	var want []string
	for flag := range known() {
		want = append(want, "DRAINIT_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
	}
	got := Twins()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !slices.Contains(got, "DRAINIT_GRACE_PERIOD") || slices.Contains(got, "DRAINIT_VERSION") {
		t.Errorf("%q", got)
	}
}

// A flag that is not given must differ from any that is, or its twin would win
// over it.
func TestFlagsCanBeAbsent(t *testing.T) {
	for name, f := range known() {
		if k := f.Type.Kind(); k != reflect.Pointer && k != reflect.Slice {
			t.Errorf("--%s is a %s", name, k)
		}
	}
}
