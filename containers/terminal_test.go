//go:build linux && !race

package containers

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// typist is a container run with --interactive --tty, and who sits before it.
type typist struct {
	*box
	master *os.File
}

// interactive runs it on a pseudo-terminal of its own.
func (s spec) interactive(t *testing.T) *typist {
	t.Helper()
	master, slave := openTerminal(t)
	defer slave.Close()
	b := &box{name: nameOf(t)}
	b.cleanUp(t)
	cmd := docker(append([]string{"run", "--interactive", "--tty"}, s.args(b.name)...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	b.printer = runPrinter(t, cmd)
	screen, err := os.OpenFile(b.log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // until the client has closed the terminal
		defer screen.Close()
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = screen.WriteString(strings.ReplaceAll(string(buf[:n]), "\r", ""))
			if err != nil {
				return
			}
		}
	}()
	return &typist{b, master}
}

func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		skip(t, err)
	}
	t.Cleanup(func() { master.Close() })
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	cause := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if cause == nil && err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if cause != nil || err != nil {
		skip(t, fmt.Errorf("no pseudo-terminal: %w %w", cause, err))
	}
	return master, slave
}

// keys types.
func (ty *typist) keys(text string) {
	ty.t.Helper()
	if _, err := ty.master.WriteString(text); err != nil {
		ty.t.Fatal(err)
	}
}

// times waits until the screen has n matches.
func (ty *typist) times(n int, text string) {
	ty.t.Helper()
	eventually(ty.t, fmt.Sprintf("%d times %q", n, text), func() bool { return strings.Count(ty.output(), text) >= n })
}

// runs waits until a program of that name has the state, as the engine's ps
// tells it.
func (ty *typist) runs(name, stat string) {
	ty.t.Helper()
	eventually(ty.t, name+" "+stat, func() bool {
		out, _ := docker("top", ty.name, "-eo", "pid,stat,args").Output()
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 2 && f[2] == name && strings.HasPrefix(f[1], stat[:1]) && strings.Contains(f[1], stat[1:]) {
				return true
			}
		}
		return false
	})
}

// TestTerminal: a shell in docker run --interactive --tty has job control.
func TestTerminal(t *testing.T) {
	t.Parallel()
	needEngine(t)
	needPrograms(t, "ps")
	ty := spec{opts: []string{"--env", "PS1=prompt> ", "--env", "TERM=dumb"}, argv: []string{"sh", "-i"}}.interactive(t)
	ty.times(1, "prompt> ")
	ty.keys("sleep 333\r")
	ty.runs("sleep", "S+") // in the foreground
	ty.keys("\x1a")        // Ctrl-Z
	ty.times(2, "prompt> ")
	ty.runs("sleep", "T")
	ty.keys("jobs\r")
	ty.times(3, "prompt> ")
	if !strings.Contains(ty.output(), "Stopped") {
		t.Error("the job was not suspended")
	}
	ty.keys("fg\r")
	ty.runs("sleep", "S+")
	ty.keys("\x03") // Ctrl-C ends the job alone
	ty.times(4, "prompt> ")
	ty.keys("echo $((6*7))\r")
	ty.times(1, "42\n")
	ty.keys("exit 5\r")
	ty.want(5)
	if strings.Contains(ty.output(), "job control") || strings.Contains(ty.output(), "level=") {
		t.Error("no job control, or a log on the terminal")
	}
}

// TestTerminalStop: docker stop drains as ever; Ctrl-C before it is the
// workload's alone, and Ctrl-Z leaves nothing suspended that nobody could
// continue.
func TestTerminalStop(t *testing.T) {
	t.Parallel()
	needEngine(t)
	ty := spec{env: map[string]string{"LOG_LEVEL": "info"}, argv: []string{"workload", "trap", "TERM=3"}}.interactive(t)
	ty.times(1, "ready")
	ty.keys("\x03")
	ty.times(1, "got INT")
	ty.keys("\x1a")
	ty.times(1, "got TSTP")
	if strings.Contains(ty.output(), "signal received") {
		t.Error("the drain began")
	}
	ty.stop("15")
	ty.want(3)
	ty.times(1, "got TERM")
	if n := strings.Count(ty.output(), "got "); n != 3 {
		t.Errorf("%d signals, want 3", n)
	}
}
