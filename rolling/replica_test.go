//go:build linux

package rolling

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// containerArg makes the test binary the first process of a container: it makes
// the namespaces usable and becomes the init.
const containerArg = "in-container"

// enterContainer gives the new PID namespace a /proc of its own, and becomes
// argv. It returns only when that could not be done.
func enterContainer(argv []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	if err := syscall.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("exec %q: %w", path, syscall.Exec(path, argv, os.Environ()))
}

// container is a command that will be PID 1 of its own PID namespace. The network
// is shared. It does not outlive the test, however that ends.
func container(argv ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{containerArg}, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	for _, v := range os.Environ() {
		// The inits' settings are the command line's alone.
		if !strings.HasPrefix(v, "DRAINIT_") && !strings.HasPrefix(v, "TINI_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd, nil
}

func tryContainer() error {
	cmd, err := container("true")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// process is a program that the test has started.
type process struct {
	cmd  *exec.Cmd
	log  string        // the file that has what it printed
	done chan struct{} // closed when it has ended
	end  time.Time     // to be read after done
}

// start starts cmd, which prints to a file: a pipe would keep Wait waiting for
// descendants.
func start(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the status is in ProcessState
		p.end = time.Now()
	}()
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends it, with all that is in its namespace.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails where it has ended
	<-p.done
}

// status is the exit status as a shell gives it; for an ended process.
func (p *process) status() int {
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// tail is the end of what it printed.
func (p *process) tail() string {
	const most = 4096
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}

// replica is a place behind the balancer, and the init with its workload there.
type replica struct {
	Name        string // as the balancer calls it: it ends in the workload's port
	Port, Probe int
	*process    // nil: not started
}

func (s *scene) newReplica(name string) (*replica, error) {
	port, err := s.freePort()
	if err != nil {
		return nil, err
	}
	probe, err := s.freePort()
	if err != nil {
		return nil, err
	}
	return &replica{Name: fmt.Sprintf("%s-%d", name, port), Port: port, Probe: probe}, nil
}

// start starts it, in a directory of its own.
func (r *replica) start(s *scene) error {
	dir := filepath.Join(s.dir, r.Name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	command, err := s.workload.argv(s, r.Port, dir)
	if err != nil {
		return err
	}
	cmd, err := container(append(s.init.argv(s.workload, r), command...)...)
	if err != nil {
		return err
	}
	r.process, err = start(cmd, filepath.Join(s.dir, r.Name+".log"))
	return err
}

// await waits for its end, and says when that was.
func (r *replica) await() (time.Time, error) {
	const most = gracePeriod + patience
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.end, nil
	case <-timer.C:
		return time.Time{}, fmt.Errorf("stop %s: still there after %v", r.Name, most)
	}
}

// errPortTaken: somebody else has a port that was free when it was chosen.
var errPortTaken = errors.New("port taken")

// early is the error of a replica that ended before it was told to.
func (r *replica) early() error {
	for _, port := range []int{r.Port, r.Probe} {
		if !free(port) {
			return fmt.Errorf("start %s: %w: %d", r.Name, errPortTaken, port)
		}
	}
	return fmt.Errorf("%s ended early with status %d", r.Name, r.status())
}

// freePort finds one below those that the kernel gives away (Linux's default
// range begins at 32768): the load's own connections would soon have taken it.
func (s *scene) freePort() (int, error) {
	const from, to = 10000, 32768
	for range 100 {
		if port := from + rand.IntN(to-from); !s.ports[port] && free(port) {
			s.ports[port] = true
			return port, nil
		}
	}
	return 0, errPortTaken
}

func free(port int) bool {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return false
	}
	return l.Close() == nil
}
