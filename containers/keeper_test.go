//go:build linux && !race

package containers

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// keeper is the process beside the tests. What it keeps ends when its standard
// input does, and that is when the tests end, by a panic or KILL too.
type keeper struct {
	dir   string
	err   error // why there is no namespace to be had
	cmd   *exec.Cmd
	stdin io.Closer
}

// What tells the tests that the house stands: files in their directory.
const (
	houseUp   = "house.up"
	houseDown = "house.down"
	housePID  = "house.pid" // its first process, by the number that it has outside
)

// startKeeper returns when the house stands, or can't.
func startKeeper() *keeper {
	k := &keeper{dir: site.dir}
	if os.Geteuid() != 0 {
		k.err = errors.New("needs root")
		return k
	}
	if k.cmd, k.err = as(keeperName, k.dir); k.err != nil {
		return k
	}
	// Out of the tests' session: Ctrl-C is not for it. And with none of their
	// streams, or go test would wait for it.
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if k.stdin, k.err = k.cmd.StdinPipe(); k.err != nil {
		return k
	}
	if k.err = k.cmd.Start(); k.err != nil {
		return k
	}
	if k.err = await(k.settled); k.err == nil && k.has(houseDown) {
		k.err = errors.New("refused")
	}
	if k.err != nil {
		k.err = fmt.Errorf("no namespace for containers: %w\n%s", k.err, tail(filepath.Join(k.dir, "house.log")))
	}
	return k
}

// settled tells by nil that the house stands, or has fallen already.
func (k *keeper) settled() error {
	if k.has(houseUp) && k.has(housePID) || k.has(houseDown) {
		return nil
	}
	return errors.New("no answer in time")
}

func (k *keeper) has(file string) bool {
	_, err := os.Stat(filepath.Join(k.dir, file))
	return err == nil
}

// end ends it and waits until all is gone.
func (k *keeper) end() {
	if k != nil && k.stdin != nil {
		_ = k.stdin.Close()
		_ = k.cmd.Wait()
	}
}

// pid is the first process of the house.
func (k *keeper) pid() string {
	b, _ := os.ReadFile(filepath.Join(k.dir, housePID))
	return string(b)
}

// await asks until there is no error.
func await(ask func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := ask()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// as is the test binary under another name.
func as(name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: self, Args: append([]string{name}, args...)}, nil
}

// keeperMain starts the house and tears it down.
func keeperMain(dir string) error {
	runtime.LockOSThread() // a parent-death signal is about the thread
	house, err := as(houseName, dir)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "house.log"))
	if err != nil {
		return err
	}
	house.Stdout, house.Stderr = log, log
	house.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err = house.Start(); err != nil {
		fmt.Fprintln(log, err)
	} else {
		err = writeFile(filepath.Join(dir, housePID), strconv.Itoa(house.Process.Pid))
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, os.Stdin) // for as long as the tests run
		if house.Process != nil {
			_ = house.Process.Kill()
		}
	}()
	if house.Process != nil {
		_ = house.Wait() // the kernel has ended all of the namespace by then, and its mounts
	}
	err = errors.Join(err, writeFile(filepath.Join(dir, houseDown), ""))
	<-over
	removeCgroups(filepath.Base(dir))
	return errors.Join(err, os.RemoveAll(dir))
}

// removeCgroups removes what the containers of a killed engine leave.
func removeCgroups(name string) {
	var all []string
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, root := range append(roots, "/sys/fs/cgroup/"+name) {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return nil
		})
	}
	for i := len(all) - 1; i >= 0; i-- { // the innermost first
		// A group may be busy for a moment after its last process has gone.
		for range 100 {
			if err := syscall.Rmdir(all[i]); !errors.Is(err, syscall.EBUSY) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// houseMain is the first process of the namespaces: it makes them private, starts
// the engine where there is one, and reaps.
func houseMain(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o711); err != nil {
		return err
	}
	// What an engine or runc writes is seen here alone, and what those of the
	// machine have written is not seen.
	for _, d := range []string{state, "/run", "/etc/docker"} {
		if err := syscall.Mount("tmpfs", d, "tmpfs", 0, "mode=0755"); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("mount a tmpfs on %s: %w", d, err)
		}
	}
	if err := startEngine(dir, state); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	if err := writeFile(filepath.Join(dir, houseUp), ""); err != nil {
		return err
	}
	for {
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		<-children
	}
}

// writeFile writes a file that is there as a whole or not at all.
func writeFile(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// tail is the end of a file.
func tail(path string) string {
	const most = 4096
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.ToValidUTF8(string(b[max(0, len(b)-most):]), "?")
}
