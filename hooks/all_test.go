package hooks

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree makes the directories of all kinds and returns what holds them.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, kind := range kinds() {
		must(t, os.Mkdir(filepath.Join(dir, kind.Dir()), 0o755))
	}
	return dir
}

func TestKinds(t *testing.T) {
	for kind, want := range map[Kind][2]string{
		Phase: {"phase", "phases.d"}, Step: {"step", "lifecycle.d"}, Companion: {"companion", "background.d"},
	} {
		if kind.String() != want[0] || kind.Dir() != want[1] {
			t.Errorf("%v in %q, want %q", kind, kind.Dir(), want)
		}
	}
}

func TestDiscoverAll(t *testing.T) {
	dir := tree(t)
	// One name in each directory is one name in none twice.
	put(t, dir, "phases.d/10-a", script+"# drainit: max-duration=1s", 0o755)
	put(t, dir, "lifecycle.d/20-a", script+"# drainit: max-duration=2s", 0o755)
	put(t, dir, "background.d/30-a", script, 0o755)
	put(t, dir, "background.d/README", "text", 0o644)
	put(t, dir, "lifecycle.d/README", "text", 0o644)
	put(t, dir, "phases.d/README", "text", 0o644)
	all, err := DiscoverAll(dir, os.Geteuid())
	must(t, err)
	for kind, set := range map[Kind]Set{Phase: all.Phases, Step: all.Steps, Companion: all.Companions} {
		if len(set.Hooks) != 1 || set.Hooks[0].Kind != kind || set.Hooks[0].Name != "a" || set.Hooks[0].Order != 10*int(kind+1) {
			t.Errorf("%v: %+v", kind, set.Hooks)
		}
	}
	want := []string{dir + "/phases.d/README", dir + "/lifecycle.d/README", dir + "/background.d/README"}
	if got := all.Ignored(); !slices.Equal(got, want) {
		t.Errorf("ignored %q, want %q", got, want)
	}
}

func TestDiscoverAllWithoutDirectories(t *testing.T) {
	for _, dir := range []string{"", t.TempDir(), t.TempDir() + "/none"} {
		all, err := DiscoverAll(dir, os.Geteuid())
		if err != nil || all.Waves() != 0 || len(all.Ignored())+len(all.Phases.Hooks)+len(all.Companions.Hooks) != 0 {
			t.Errorf("%q: %+v, %v", dir, all, err)
		}
	}
}

// An empty name stands for no directory at all, not for the working one.
func TestDiscoverAllLooksNowhere(t *testing.T) {
	t.Chdir(tree(t))
	put(t, ".", "phases.d/10-a", script, 0o755)
	if all, err := DiscoverAll("", os.Geteuid()); err != nil || len(all.Phases.Hooks) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err := DiscoverAll(".", os.Geteuid()); err == nil && len(all.Phases.Hooks) != 1 {
		t.Errorf("%+v", all)
	}
}

// One start tells everything that is to be mended, in all directories.
func TestRefusedInAllDirectories(t *testing.T) {
	dir := tree(t)
	put(t, dir, "phases.d/10-a", script, 0o644)
	put(t, dir, "lifecycle.d/10-a", script+"# drainit: requires=x", 0o755)
	put(t, dir, "lifecycle.d/20-a", script, 0o755)
	must(t, os.Remove(filepath.Join(dir, "background.d")))
	put(t, dir, "background.d", "a file", 0o644)
	all, err := DiscoverAll(dir, os.Geteuid())
	got := refused(t, err)
	want := []string{
		`background.d: not a directory`,
		`10-a: line 2: unknown word "requires"`,
		`20-a: has the same hook name, "a", as "` + dir + `/lifecycle.d/10-a"`,
		`10-a: not executable (mode 0644)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if len(all.Phases.Hooks)+len(all.Steps.Hooks)+len(all.Companions.Hooks) != 0 {
		t.Errorf("hooks in spite of the error: %+v", all)
	}
}

func TestConfigDirThatIsNone(t *testing.T) {
	file := put(t, t.TempDir(), "conf", "", 0o644)
	_, err := DiscoverAll(file, os.Geteuid())
	if got := refused(t, err); !slices.Equal(got, []string{"conf: not a directory"}) {
		t.Errorf("problems %q", got)
	}
}

func TestDanglingDirectories(t *testing.T) {
	dir := t.TempDir()
	link(t, "nowhere", dir+"/lifecycle.d")
	_, err := DiscoverAll(dir, os.Geteuid())
	if got := refused(t, err); !slices.Equal(got, []string{"lifecycle.d: dangling symbolic link"}) {
		t.Errorf("problems %q", got)
	}
}

func TestAnyDirectory(t *testing.T) {
	for _, kind := range kinds() {
		dir := t.TempDir()
		put(t, dir, "README", "text", 0o644)
		if AnyDirectory(dir) {
			t.Errorf("%q holds none", dir)
		}
		must(t, os.Mkdir(filepath.Join(dir, kind.Dir()), 0o755))
		if !AnyDirectory(dir) {
			t.Errorf("%q has %s", dir, kind.Dir())
		}
	}
	if AnyDirectory(t.TempDir() + "/none") {
		t.Error("what is not there holds none")
	}
	t.Chdir(tree(t))
	if AnyDirectory("") {
		t.Error("an empty name stands for the working directory")
	}
}

func TestWaves(t *testing.T) {
	dir := tree(t)
	for _, c := range []struct {
		add   string
		waves int
	}{{"20-a", 1}, {"20-b", 1}, {"10-c", 2}, {"d", 3}, {"50-e", 3}, {"9-f", 4}} {
		put(t, dir, "lifecycle.d/"+c.add, script, 0o755)
		all, err := DiscoverAll(dir, os.Geteuid())
		must(t, err)
		if got := all.Waves(); got != c.waves {
			t.Errorf("with %s: %d waves, want %d", c.add, got, c.waves)
		}
	}
	if (All{}).Waves() != 0 {
		t.Error("nothing makes waves")
	}
}
