package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const script = "#!/bin/sh\n"

func TestMain(m *testing.M) {
	unix.Umask(0o022) // the trust rules judge the modes that the tests leave
	os.Exit(m.Run())
}

// put writes a file into dir with exactly this mode.
func put(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	must(t, os.Chmod(path, mode))
	return path
}

func link(t *testing.T, target, path string) {
	t.Helper()
	must(t, os.Symlink(target, path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// discover is Discover as the user who runs the test.
func discover(t *testing.T, dir string) (Set, error) {
	t.Helper()
	return Discover(dir, Phase, os.Geteuid())
}

func names(set Set) (out []string) {
	for _, h := range set.Hooks {
		out = append(out, h.Name)
	}
	return out
}

func bases(paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, filepath.Base(p))
	}
	return out
}

// refused holds an error to be Problems, and returns path bases with reasons.
func refused(t *testing.T, err error) (out []string) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error %v (%T) is no Problems", err, err)
	}
	if strings.Contains(problems.Error(), "\n") {
		t.Errorf("error has more than one line: %q", problems.Error())
	}
	for _, p := range problems {
		out = append(out, filepath.Base(p.Path)+": "+p.Reason)
	}
	return out
}

func TestWhatIsAHook(t *testing.T) {
	for _, c := range []struct {
		file, content string
		mode          os.FileMode
		want          string // hook, refused, ignored or passed
	}{
		{"10-hand-over.sh", script, 0o755, "hook"},
		{"handover", script, 0o755, "hook"},
		{"handover", "no program at all", 0o755, "hook"},
		{"handover", script, 0o501, "hook"},
		{"handover", script, 0o644, "refused"},
		{"handover", "\x7fELF\x02\x01", 0o644, "refused"},
		{"handover", "\x7fELF" + strings.Repeat("\x00", 2*headSize), 0o644, "refused"},
		{"10-notes", "text", 0o644, "refused"},
		{"10", "", 0o644, "refused"},
		{"README", "text", 0o644, "ignored"},
		{"README", "", 0o644, "ignored"},
		{"settings.conf", "# drainit: nonsense", 0o644, "ignored"},
		{"README", "text", 0o755, "hook"},
		{"README.md", script, 0o755, "passed"},
		{"10-README.md", script, 0o644, "passed"},
		{".10-a.sh.swp", script, 0o755, "passed"},
		{"..data", script, 0o755, "passed"},
		{"10-a.sh~", script, 0o755, "passed"},
		{"10-a.sh.bak", script, 0o755, "passed"},
		{"10-a.dpkg-dist", script, 0o755, "passed"},
		{"10-a.dpkg-old", script, 0o644, "passed"},
		{"10-a.dpkg-old.sh", script, 0o755, "hook"},
		{"10-dpkg-a", script, 0o755, "hook"},
		{"10-a.mdx", script, 0o755, "hook"},
	} {
		t.Run(c.file+"/"+c.want, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.file, c.content, c.mode)
			set, err := discover(t, dir)
			got := "passed"
			switch {
			case err != nil:
				got = "refused"
				if p := refused(t, err); len(p) != 1 || !strings.Contains(p[0], "not executable (mode 0644)") {
					t.Errorf("problems %q", p)
				}
			case len(set.Hooks) == 1:
				got = "hook"
				if h := set.Hooks[0]; h.Path != filepath.Join(dir, c.file) {
					t.Errorf("path %q", h.Path)
				}
			case len(set.Ignored) == 1:
				got = "ignored"
			}
			if got != c.want {
				t.Errorf("%s, want %s (set %+v, error %v)", got, c.want, set, err)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"9-nine":       script,
		"10-ten.sh":    script,
		"010-tenth.sh": script, // the same number, and "0" sorts first
		"100-hundred":  script,
		"middle":       script,
		"Middle":       script,
		"50-fifty":     script,
		"90-early":     script + "# drainit: order=1\n",
		"zero":         script + "# drainit: order=0\n",
	} {
		put(t, dir, name, content, 0o755)
	}
	set, err := discover(t, dir)
	must(t, err)
	want := []string{"zero", "early", "nine", "tenth", "ten", "fifty", "Middle", "middle", "hundred"}
	if got := names(set); !slices.Equal(got, want) {
		t.Errorf("running order\n got %q\nwant %q", got, want)
	}
	if set.Hooks[8].Order != 100 || set.Hooks[1].Order != 1 || set.Hooks[7].Order != 50 {
		t.Errorf("orders: %+v", set.Hooks)
	}
}

func TestMaxDuration(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a", script+"# drainit: max-duration=1m30s order=7\n", 0o755)
	put(t, dir, "b", script, 0o755)
	set, err := discover(t, dir)
	must(t, err)
	if a, b := set.Hooks[0], set.Hooks[1]; a.MaxDuration != 90*time.Second || a.Order != 7 || b.MaxDuration != 0 {
		t.Errorf("hooks %+v", set.Hooks)
	}
}

func TestAbsentAndUnreadableDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, absent := range []string{dir + "/none", dir + "/none/phases.d", dir} {
		if set, err := discover(t, absent); err != nil || len(set.Hooks)+len(set.Ignored) != 0 {
			t.Errorf("%s: %+v, %v", absent, set, err)
		}
	}
	put(t, dir, "file", "", 0o644)
	must(t, unix.Mkfifo(dir+"/fifo", 0o644))
	link(t, "nowhere", dir+"/dangling")
	var problems Problems
	for _, bad := range []string{"file", "fifo", "dangling"} {
		if _, err := discover(t, filepath.Join(dir, bad)); err == nil || errors.As(err, &problems) {
			t.Errorf("%s in the directory's place: error %v", bad, err)
		}
	}
}

// Opening a FIFO for reading waits for a writer; a test that hangs has failed.
func TestNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mkfifo(dir+"/10-fifo", 0o755))
	must(t, os.Mkdir(dir+"/20-dir", 0o755))
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: dir + "/30-sock"}))
	link(t, "/dev/null", dir+"/40-masked") // as systemd's units are masked
	link(t, "20-dir", dir+"/50-link")
	link(t, "loop", dir+"/loop")
	link(t, "nowhere", dir+"/nowhere-to-go")
	put(t, dir, "60-hook", script, 0o755)
	set, err := discover(t, dir)
	must(t, err)
	if got := names(set); !slices.Equal(got, []string{"hook"}) {
		t.Errorf("hooks %q", got)
	}
	want := []string{"10-fifo", "20-dir", "30-sock", "40-masked", "50-link", "loop", "nowhere-to-go"}
	if got := bases(set.Ignored); !slices.Equal(got, want) {
		t.Errorf("ignored\n got %q\nwant %q", got, want)
	}
}

// The name changes hands between the look and the opening.
func TestFileBecomesFIFO(t *testing.T) {
	path := put(t, t.TempDir(), "10-a", script, 0o755)
	f, err := look(path)
	must(t, err)
	must(t, os.Remove(path))
	must(t, unix.Mkfifo(path, 0o755))
	if err := f.read(); err == nil {
		t.Error("a FIFO was read")
	}
}

func TestRefusedTogetherInOrder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "10-a", script, 0o755)
	put(t, dir, "20-a.sh", script, 0o755)
	put(t, dir, "30-b", script+"# drainit: max-duraton=5s\n", 0o755)
	put(t, dir, "40-c", script, 0o644)
	put(t, dir, "50-a.py", script+"\n# drainit: order=x", 0o600)
	put(t, dir, "99999999999999999999-d", script, 0o755)
	link(t, "nowhere", dir+"/70-e")
	put(t, dir, "80-fine", script, 0o755)
	set, err := discover(t, dir)
	got := refused(t, err)
	want := []string{
		`20-a.sh: has the same hook name, "a", as "` + dir + `/10-a"`,
		`30-b: line 2: unknown word "max-duraton"`,
		`40-c: not executable (mode 0644)`,
		`50-a.py: not executable (mode 0600)`,
		`50-a.py: has the same hook name, "a", as "` + dir + `/10-a"`,
		`50-a.py: line 3: order "x" is not a whole number from 0 to 2147483647`,
		`70-e: dangling symbolic link`,
		`99999999999999999999-d: order "99999999999999999999" is not a whole number from 0 to 2147483647`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if len(set.Hooks) != 0 {
		t.Errorf("hooks in spite of the error: %+v", set.Hooks)
	}
	if want := `hooks refused: "` + dir + `/20-a.sh": has the same hook name, "a", as "` + dir + `/10-a"; "` + dir + `/30-b": line 2`; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %q, want prefix %q", err, want)
	}
	hint := errors.Join(err).(interface{ Unwrap() []error }).Unwrap()[0].(Problems).Hint()
	if !strings.Contains(hint, "rename one of them") {
		t.Errorf("hint %q", hint)
	}
}

// Where remedies differ, the first is told with its file, and how many there are
// that the next start will tell.
func TestHintOfSeveral(t *testing.T) {
	for _, c := range []struct {
		problems Problems
		want     string
	}{
		{nil, ""},
		{Problems{{"/a", "x", ""}}, ""},
		{Problems{{"/a", "x", ""}, {"/b", "x", "do"}, {"/c", "x", "do"}}, "do"},
		{Problems{{"/a", "x", "do"}, {"/b", "x", "do"}}, "do"},
		{Problems{{"/a", "x", ""}, {"/b", "x", "do"}, {"/c", "x", "try"}}, `"/b": do; and 1 more hint, for the others`},
		{Problems{{"/b\n", "x", "do"}, {"/c", "x", "try"}, {"/d", "x", "do"}, {"/e", "x", "ask"}}, `"/b\n": do; and 2 more hints, for the others`},
	} {
		if got := c.problems.Hint(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.problems, got, c.want)
		}
	}
}

func TestErrorStaysOneLine(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "10-a\nb", script+"# drainit: \"x\"\n", 0o644)
	_, err := discover(t, dir)
	if got := refused(t, err); len(got) != 2 { // refused looks for the line break
		t.Errorf("problems %q", got)
	}
}
