package hooks

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A ConfigMap mount: files are links into ..data, itself a link to the current
// version's directory.
func TestConfigMapTree(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(dir+"/..2026_1", 0o755))
	must(t, os.Mkdir(dir+"/..2026_2", 0o755))
	put(t, dir, "..2026_1/10-hand-over.sh", script+"# drainit: max-duration=1s", 0o555)
	put(t, dir, "..2026_2/10-hand-over.sh", script+"# drainit: max-duration=2s", 0o444)
	link(t, "..2026_1", dir+"/..data")
	link(t, "..data/10-hand-over.sh", dir+"/10-hand-over.sh")
	set, err := discover(t, dir)
	must(t, err)
	if len(set.Hooks) != 1 || len(set.Ignored) != 0 {
		t.Fatalf("set %+v", set)
	}
	h := set.Hooks[0]
	if h.Path != dir+"/10-hand-over.sh" || h.Name != "hand-over" || h.MaxDuration != time.Second {
		t.Errorf("hook %+v", h)
	}
	must(t, Recheck(h, os.Geteuid()))
	must(t, os.Symlink("..2026_2", dir+"/..data_tmp"))
	must(t, os.Rename(dir+"/..data_tmp", dir+"/..data")) // the kubelet's swap
	if got := refused(t, Recheck(h, os.Geteuid())); !slices.Equal(got, []string{"10-hand-over.sh: not executable (mode 0444)"}) {
		t.Errorf("after the swap: %q", got)
	}
}

func TestRecheck(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"unchanged": {func(string) error { return nil }, ""},
		"gone":      {os.Remove, "no such file or directory"},
		"mode":      {func(p string) error { return os.Chmod(p, 0o644) }, "not executable (mode 0644)"},
		"directory": {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) }, "not a regular file"},
		"fifo":      {func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o755)) }, "not a regular file"},
		"dangling":  {func(p string) error { return errors.Join(os.Remove(p), os.Symlink("x/y", p)) }, "dangling symbolic link"},
		"directive": {func(p string) error { return os.WriteFile(p, []byte("# drainit: nonsense"), 0) }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			h := Hook{Name: "a", Path: put(t, t.TempDir(), "10-a", script, 0o755)}
			must(t, c.spoil(h.Path))
			err := Recheck(h, os.Geteuid())
			if c.want == "" {
				must(t, err)
				return
			}
			if got := refused(t, err); !slices.Equal(got, []string{"10-a: " + c.want}) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
