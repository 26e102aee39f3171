//go:build linux && !race

package containers

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that has to come. It says nothing
// about how long things should take.
const patience = 30 * time.Second

// ci is the variable that turns a skip into a failure.
const ci = "DRAINIT_CI"

// The names under which the test binary is something else.
const (
	workloadName = "workload"
	keeperName   = "keeper"
	houseName    = "house"
)

// site is what all tests share; TestMain sets it, once.
var site struct {
	dir    string // the temporary directory of everything
	keeper *keeper
	image  error // why there is no image
	events events
	ports  atomic.Int64 // how many have been looked at
}

func TestMain(m *testing.M) {
	var err error
	switch filepath.Base(os.Args[0]) {
	case workloadName:
		workloadMain()
	case keeperName:
		err = keeperMain(os.Args[1])
	case houseName:
		err = houseMain(os.Args[1])
	default:
		os.Exit(prepareAndRun(m))
	}
	fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
	os.Exit(1)
}

func prepareAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "containers")
	if err == nil {
		site.dir = dir
		defer os.RemoveAll(dir)
		_ = os.Setenv("TMPDIR", dir) // what the tests make goes with the rest, however they end
		err = prepare()
		defer site.keeper.end()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Most of a test's time is waiting for the engine or for a window.
	_ = flag.Set("test.parallel", "4")
	status := m.Run()
	if log := filepath.Join(dir, engineLog); status != 0 && site.image == nil && ask("/_ping", nil) != nil {
		if _, err := os.Stat(log); err == nil {
			fmt.Fprintf(os.Stderr, "the engine has ended:\n%s\n", tail(log))
		}
	}
	return status
}

// prepare makes what can't be had otherwise the fault of this package alone, and
// leaves to the tests what the machine may lack.
func prepare() error {
	syscall.Umask(0o022) // hooks that others may write to are refused
	// Others than root have to pass: some containers' users are mapped to them.
	if err := os.Chmod(site.dir, 0o711); err != nil {
		return err
	}
	site.keeper = startKeeper()
	if site.keeper.err != nil {
		return nil
	}
	if err := fillContext(filepath.Join(site.dir, "context")); err != nil {
		return err
	}
	if site.keeper.engine() == nil {
		if site.image = buildImages(); site.image == nil {
			site.image = site.events.follow()
		}
	}
	return nil
}

// fillContext makes the root of the images and bundles.
func fillContext(dir string) error {
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{bin, filepath.Join(dir, "tmp"), filepath.Join(dir, "dev"), filepath.Join(dir, "proc")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := goBuild("..", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(bin, "drainit"), "."); err != nil {
		return err
	}
	if err := addWorkload(filepath.Join(bin, workloadName)); err != nil {
		return err
	}
	if busybox, err := exec.LookPath("busybox"); err == nil {
		if err := copyFile(busybox, filepath.Join(bin, "busybox")); err != nil {
			return err
		}
		for _, applet := range []string{"sh", "cat", "sleep"} {
			if err := os.Symlink("busybox", filepath.Join(bin, applet)); err != nil {
				return err
			}
		}
	}
	return os.CopyFS(dir, os.DirFS("testdata/context"))
}

// addWorkload copies the test binary; where that is not static, it builds one
// that is.
func addWorkload(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := elf.Open(self)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return goBuild(".", "test", "-c", "-o", path, ".")
		}
	}
	return copyFile(self, path)
}

func goBuild(dir string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

// skip leaves a test out where the machine can't run it. Where DRAINIT_CI is
// set nothing may be left out.
func skip(t *testing.T, why error) {
	t.Helper()
	if os.Getenv(ci) != "" {
		t.Fatalf("may not be skipped with %s set: %v", ci, why)
	}
	t.Skip(why)
}

// needPrograms skips where one is not installed.
func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	var missing []string
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		skip(t, errors.New("needs "+strings.Join(missing, ", ")))
	}
}

// watchSources looks into all of the module's folders. Go takes a test's success
// from its cache until something changes that the test has looked at, and what
// go build reads for it does not count.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("..", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another test's, gone meanwhile
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until the answer is yes; what is waited for has no event that
// could be waited on.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
