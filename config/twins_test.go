package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// known returns the main job's flags that have a twin, with their fields.
func known() map[string]reflect.StructField { return flagsOf(&flags{}) }

// grammars are all there are, by the shortest command line that asks for them.
func grammars() map[string]any {
	return map[string]any{
		"-- app":          &flags{},
		"announce":        &controlFlags{},
		"drain":           &drainFlags{},
		"undrain":         &controlFlags{},
		"status":          &statusFlags{},
		"spread -- redis": &spreadFlags{},
		"budget":          &budgetFlags{},
		"version":         &struct{}{},
	}
}

// flagOf is the flag that a twin stands for.
func flagOf(twin string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(twin, "DRAINIT_"), "_", "-"))
}

// flagsOf returns a grammar's flags that have a twin.
func flagsOf(grammar any) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(grammar).Elem()) {
		if f.Name != "Version" && !f.Anonymous {
			all[flagName(f.Name)] = f
		}
	}
	return all
}

// Two rules make a flag's name: kong's, and ours for the twin. They must agree,
// on every flag there is.
func TestNamesAreKongs(t *testing.T) {
	for usage, grammar := range grammars() {
		parser, err := kong.New(grammar)
		if err != nil {
			t.Fatal(err)
		}
		var kongs []string
		for _, f := range parser.Model.Flags {
			if f.Name == "help" || f.Name == "version" {
				continue
			}
			kongs = append(kongs, f.Name)
			if f.Help == "" || !f.IsBool() && f.PlaceHolder == "" {
				t.Errorf("%s: --%s has no help or no placeholder", usage, f.Name)
			}
			if len(f.Envs) > 0 || f.HasDefault {
				t.Errorf("%s: --%s has a variable or a default in kong: both are read here, where an error can name them", usage, f.Name)
			}
		}
		slices.Sort(kongs)
		if ours := slices.Sorted(maps.Keys(flagsOf(grammar))); !slices.Equal(kongs, ours) {
			t.Errorf("%s: kong's flags %q, ours %q", usage, kongs, ours)
		}
	}
}

func TestTwins(t *testing.T) {
	all := map[string]bool{}
	for _, grammar := range grammars() {
		for flag := range flagsOf(grammar) {
			all["DRAINIT_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))] = true
		}
	}
	got := slices.Sorted(slices.Values(Twins()))
	if want := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"DRAINIT_GRACE_PERIOD", "DRAINIT_CONTROL", "DRAINIT_BUDGET", "DRAINIT_OVER", "DRAINIT_READY"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is missing", name)
		}
	}
	// What the init itself tells its children is no setting.
	for _, name := range []string{"DRAINIT_VERSION", "DRAINIT_SOCKET", "DRAINIT_ALLOWED"} {
		if slices.Contains(got, name) {
			t.Errorf("%s is a twin", name)
		}
	}
}

// A flag that is not given must differ from any that is, or its twin would win
// over it.
func TestFlagsCanBeAbsent(t *testing.T) {
	for _, grammar := range grammars() {
		for name, f := range flagsOf(grammar) {
			if k := f.Type.Kind(); k != reflect.Pointer && k != reflect.Slice {
				t.Errorf("--%s is a %s", name, k)
			}
		}
	}
}
