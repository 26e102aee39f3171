package hooks

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// needRoot skips what only root can set up; where DRAINIT_CI is set (CI)
// a skip is a failure.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatal("needs root")
	}
	t.Skip("needs root")
}

func TestTrust(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		name  string
		spoil func(dir string) error // dir/conf/phases.d/10-a
		want  string                 // with DIR for dir; "" trusted
	}{
		{"clean", func(string) error { return nil }, ""},
		{"file owned by another", func(d string) error { return os.Chown(d+"/conf/phases.d/10-a", nobody, 0) },
			`10-a: owned by uid 65534`},
		{"file of another group", func(d string) error { return os.Chown(d+"/conf/phases.d/10-a", 0, nobody) }, ""},
		{"file group-writable", func(d string) error { return os.Chmod(d+"/conf/phases.d/10-a", 0o775) },
			`10-a: writable by group or others (mode 0775)`},
		{"file world-writable", func(d string) error { return os.Chmod(d+"/conf/phases.d/10-a", 0o757) },
			`10-a: writable by group or others (mode 0757)`},
		{"sticky file is no exception", func(d string) error { return unix.Chmod(d+"/conf/phases.d/10-a", 0o1757) },
			`10-a: writable by group or others (mode 1757)`},
		{"directory owned by another", func(d string) error { return os.Chown(d+"/conf/phases.d", nobody, 0) },
			`phases.d: owned by uid 65534`},
		{"directory group-writable", func(d string) error { return os.Chmod(d+"/conf/phases.d", 0o775) },
			`phases.d: writable by group or others (mode 0775)`},
		{"directory above world-writable", func(d string) error { return os.Chmod(d+"/conf", 0o777) },
			`phases.d: "DIR/conf" is writable by group or others (mode 0777)`},
		{"sticky directory above", func(d string) error { return unix.Chmod(d+"/conf", 0o1777) }, ""},
		{"sticky directory of another", func(d string) error {
			return errors.Join(unix.Chmod(d+"/conf", 0o1777), os.Chown(d+"/conf", nobody, 0))
		}, `phases.d: "DIR/conf" is owned by uid 65534`},
		{"link owned by another", func(d string) error {
			return errors.Join(os.Rename(d+"/conf/phases.d/10-a", d+"/real"), os.Symlink("../../real", d+"/conf/phases.d/10-a"),
				os.Lchown(d+"/conf/phases.d/10-a", nobody, 0))
		}, `10-a: owned by uid 65534`},
		{"root's link to root's file", func(d string) error {
			return errors.Join(os.Rename(d+"/conf/phases.d/10-a", d+"/real"), os.Symlink("../../real", d+"/conf/phases.d/10-a"))
		}, ""},
		{"target owned by another", func(d string) error {
			return errors.Join(os.Rename(d+"/conf/phases.d/10-a", d+"/real"), os.Symlink(d+"/real", d+"/conf/phases.d/10-a"),
				os.Chown(d+"/real", nobody, 0))
		}, `10-a: "DIR/real" is owned by uid 65534`},
		{"directory above the target", func(d string) error {
			return errors.Join(os.Mkdir(d+"/lib", 0o755), os.Rename(d+"/conf/phases.d/10-a", d+"/lib/real"),
				os.Symlink("../../lib/real", d+"/conf/phases.d/10-a"), os.Chmod(d+"/lib", 0o777))
		}, `10-a: "DIR/lib" is writable by group or others (mode 0777)`},
		{"directory passed on the way only", func(d string) error {
			return errors.Join(os.Mkdir(d+"/lib", 0o755), os.Rename(d+"/conf/phases.d/10-a", d+"/real"),
				os.Symlink("../../lib/../real", d+"/conf/phases.d/10-a"), os.Chown(d+"/lib", nobody, 0))
		}, `10-a: "DIR/lib" is owned by uid 65534`},
		{"linked directory", func(d string) error {
			return errors.Join(os.Rename(d+"/conf", d+"/conf2"), os.Symlink("conf2", d+"/conf"), os.Chmod(d+"/conf2", 0o777))
		}, `phases.d: "DIR/conf2" is writable by group or others (mode 0777)`},
		{"nothing to run", func(d string) error {
			return errors.Join(os.Remove(d+"/conf/phases.d/10-a"), os.WriteFile(d+"/conf/phases.d/README", nil, 0o666), os.Chmod(d+"/conf/phases.d", 0o777))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.MkdirAll(dir+"/conf/phases.d", 0o755))
			put(t, dir, "conf/phases.d/10-a", script, 0o755)
			must(t, c.spoil(dir))
			phases := dir + "/conf/phases.d"
			_, err := Discover(phases, Phase, 0)
			if c.want == "" {
				must(t, err)
			} else {
				want := strings.ReplaceAll(c.want, "DIR", dir) + asRoot
				if got := refused(t, err); !slices.Equal(got, []string{want}) {
					t.Errorf("\n got %q\nwant %q", got, want)
				}
				if hint := err.(Problems).Hint(); !strings.Contains(hint, "chmod go-w") {
					t.Errorf("hint %q", hint)
				}
				if err := Recheck(Hook{Path: phases + "/10-a"}, 0); err == nil {
					t.Error("Recheck trusts it")
				}
			}
			if _, err := Discover(phases, Phase, 1000); err != nil {
				t.Errorf("the rules hold for another user too: %v", err)
			}
		})
	}
}

// What is told comes in order of the files, not of the rules.
func TestTrustAmongOtherProblems(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	must(t, os.Chown(put(t, dir, "10-a", script, 0o755), nobody, 0))
	put(t, dir, "20-b", script, 0o644)
	must(t, os.Chown(put(t, dir, "30-c", script, 0o755), nobody, 0))
	_, err := Discover(dir, Phase, 0)
	got := refused(t, err)
	for i, want := range []string{"10-a: ", "20-b: not executable", "30-c: "} {
		if len(got) != 3 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("problems %q, want %q at %d", got, want, i)
		}
	}
}

func TestTrustLoops(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	link(t, "b", dir+"/a")
	link(t, "a", dir+"/b")
	if reason := distrust(dir + "/a"); reason != unix.ELOOP.Error() {
		t.Errorf("reason %q", reason)
	}
	t.Chdir(dir)
	put(t, dir, "10-a", script, 0o755)
	for _, name := range []string{"10-a", "./10-a", "../" + filepath.Base(dir) + "//10-a"} {
		if reason := distrust(name); reason != "" {
			t.Errorf("%s: %s", name, reason)
		}
	}
}

// Kubernetes mounts a ConfigMap read-only, with a root directory of mode 0777
// that is not sticky. The test binary is its own helper, in a mount namespace of
// its own.
func TestTrustReadOnlyMount(t *testing.T) {
	needRoot(t)
	if dir := os.Getenv("DRAINIT_TEST_MOUNT"); dir != "" {
		readOnlyMount(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestTrustReadOnlyMount$", "-test.v")
	cmd.Env = append(os.Environ(), "DRAINIT_TEST_MOUNT="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // and so / private, nothing leaks
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) && os.Getenv("DRAINIT_CI") == "" {
		t.Skip("needs a mount namespace")
	}
	if err != nil || !strings.Contains(string(out), "read-only mount: judged") {
		t.Errorf("%v\n%s", err, out)
	}
}

func readOnlyMount(t *testing.T, dir string) {
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0777"))
	put(t, dir, "10-a", script, 0o777)
	if _, err := Discover(dir, Phase, 0); err == nil {
		t.Error("trusts a world-writable mount")
	}
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_BIND, ""))
	_, err := Discover(dir, Phase, 0)
	must(t, err)
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_NOEXEC|unix.MS_BIND, ""))
	_, err = Discover(dir, Phase, 0)
	if got := refused(t, err); !slices.Contains(got, "10-a: not executable by uid 0 (mode 0777, owner 0:0)") {
		t.Errorf("noexec: %q", got)
	}
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	must(t, os.Chown(dir+"/10-a", nobody, 0))
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_BIND, ""))
	if _, err := Discover(dir, Phase, 0); err == nil {
		t.Error("trusts another's file on a read-only mount")
	}
	t.Log("read-only mount: judged")
}

// asNobody calls f with the credentials of nobody, and root's nowhere: the raw
// calls change the one thread, which ends with the goroutine that is locked to it.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		var errs []error
		for call, args := range map[uintptr]uintptr{unix.SYS_SETGROUPS: 0, unix.SYS_SETRESGID: nobody} {
			if _, _, e := unix.RawSyscall(call, args, args, args); e != 0 {
				errs = append(errs, e)
			}
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
			errs = append(errs, e)
		}
		if errs == nil {
			f()
		}
		done <- errors.Join(errs...)
	}()
	must(t, <-done)
}

func TestAsAnotherUser(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755)) // t.TempDir's parent is private
	put(t, dir, "10-secret", script+"# drainit: nonsense", 0o711)
	put(t, dir, "README", "text", 0o600)
	put(t, dir, "noise", script, 0o600) // can't be told from a text
	var set Set
	var err error
	asNobody(t, func() { set, err = Discover(dir, Phase, nobody) })
	must(t, err)
	if got := names(set); !slices.Equal(got, []string{"secret"}) {
		t.Errorf("hooks %q", got)
	}
	if got := bases(set.Ignored); !slices.Equal(got, []string{"README", "noise"}) {
		t.Errorf("ignored %q", got)
	}
	if _, err := Discover(dir, Phase, nobody); err == nil {
		t.Error("root reads the file and finds no bad directive")
	}
	put(t, dir, "20-mine", script, 0o700)
	put(t, dir, "handover", script, 0o700) // an x bit says that it is meant to be run
	asNobody(t, func() { _, err = Discover(dir, Phase, nobody) })
	want := []string{"20-mine: not executable by uid 65534 (mode 0700, owner 0:0)", "handover: not executable by uid 65534 (mode 0700, owner 0:0)"}
	if got := refused(t, err); !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	h := Hook{Path: dir + "/20-mine"}
	asNobody(t, func() { err = Recheck(h, nobody) })
	if got := refused(t, err); !slices.Equal(got, want[:1]) {
		t.Errorf("Recheck %q", got)
	}
}
