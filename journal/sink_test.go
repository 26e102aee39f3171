package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain makes the test binary its own helper: the process that signals may
// end or stop must not be the one that tests.
func TestMain(m *testing.M) {
	switch os.Getenv("JOURNAL_TEST_HELPER") {
	case "":
		os.Exit(m.Run())
	case "closed reader":
		closedReader()
	case "tostop":
		toStop()
	case "sleep":
		select {} // killed by its parent
	}
}

func helper(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_HELPER="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestClosedReader(t *testing.T) {
	cmd := helper("closed reader")
	within(t, "the helper", func() {
		if out, err := cmd.Output(); err != nil || string(out) != "window changed\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// closedReader prints which signals reach the process when it logs to nobody. Of
// two pending signals os/signal hands on the lower number first, so that a PIPE
// (13) raised by a write comes before the WINCH (28) that is sent after it.
func closedReader() {
	got := make(chan os.Signal, 10)
	signal.Notify(got, unix.SIGPIPE, unix.SIGWINCH)
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		panic(err)
	}
	unix.Close(p[0])
	j := Open(Options{Format: "text", FD: p[1]})
	for range 5 {
		j.Logger().Info("line")
	}
	j.Close(patience)
	if j.Dropped() != 5 {
		println("dropped", j.Dropped())
		os.Exit(1)
	}
	unix.Kill(os.Getpid(), unix.SIGWINCH)
	os.Stdout.WriteString((<-got).String() + "\n")
	os.Exit(0)
}

// Lines to a reader that is gone are lost and nothing more; once there is one
// again, it is told how many. (A new pipe under the same descriptor.)
func TestSinkComesBack(t *testing.T) {
	r, w := pipe(t, 0)
	unix.Close(r)
	j := Open(Options{Format: "text", FD: w})
	for range 3 {
		j.Logger().Info("lost")
	}
	j.Flush(patience)
	if j.Dropped() != 3 {
		t.Errorf("%d dropped", j.Dropped())
	}
	r2, w2 := pipe(t, 0)
	must(t, unix.Dup3(w2, w, unix.O_CLOEXEC))
	j.Logger().Info("back")
	s := lines(r2)
	for _, want := range []string{"msg=back", `level=WARN msg="log lines dropped" count=3`} {
		if line := next(t, s); !strings.HasSuffix(line, want) {
			t.Errorf("line %q, want %s", line, want)
		}
	}
	j.Close(patience)
}

func TestNoDescriptor(t *testing.T) {
	const unused = 1 << 20
	j := Open(Options{FD: unused})
	formatted := 0
	j.format = counting{j.format, &formatted}
	j.Logger().Info("line")
	within(t, "Close", func() { j.Close(patience) })
	if j.Dropped() != 1 {
		t.Errorf("%d dropped", j.Dropped())
	}
	ended(t, j)
	if formatted != 1 {
		t.Errorf("%d lines formatted: a lost line was told of while the sink is dead", formatted)
	}
}

// counting counts the lines that are formatted.
type counting struct {
	slog.Handler
	n *int
}

func (c counting) Handle(ctx context.Context, r slog.Record) error {
	*c.n++
	return c.Handler.Handle(ctx, r)
}

// The writer is not held by a blocking pipe that nobody reads: neither when the
// pipe is full, nor when it has room for a part of the line only.
func TestUnreadPipeHoldsNoWriter(t *testing.T) {
	for name, room := range map[string]int{"full": 0, "a page": 4096} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe(t, 0)
			defer unix.Close(r)
			fill(t, w)
			if room > 0 {
				_, err := unix.Read(r, make([]byte, room))
				must(t, err)
			}
			j := Open(Options{Format: "text", FD: w})
			j.Logger().Info("line", "long", strings.Repeat("y", 3*room))
			within(t, "Close", func() { j.Close(10 * time.Millisecond) })
			ended(t, j)
			if j.Dropped() != 1 {
				t.Errorf("%d dropped", j.Dropped())
			}
		})
	}
}

// A sink that is called writable and takes nothing is asked again; an eventfd
// whose number does not fit is one (see TestWriterStuckInWrite).
func TestReadyAndUnwilling(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	must(t, err)
	defer unix.Close(fd)
	j := Open(Options{Format: "text", FD: fd})
	for range 2 {
		j.put(&item{format: number{w: j.out}})
	}
	j.Flush(10 * time.Millisecond) // the second is refused
	_, err = unix.Read(fd, make([]byte, 8))
	must(t, err)
	j.Flush(patience)
	if j.Dropped() != 0 {
		t.Errorf("%d dropped", j.Dropped())
	}
	j.Close(patience)
	ended(t, j)
}

// A line longer than a pipe holds comes out whole, through a sink that takes it
// in pieces, blocking or not.
func TestLongLine(t *testing.T) {
	for name, flags := range map[string]int{"blocking": 0, "nonblocking": unix.O_NONBLOCK} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe(t, flags)
			fill(t, w)
			j := Open(Options{Format: "text", FD: w})
			long := strings.Repeat("0123456789", 20_000)
			j.Logger().Info("line", "long", long)
			if line := next(t, lines(r)); !strings.HasSuffix(line, " msg=line long="+long) {
				t.Errorf("%d bytes", len(line))
			}
			j.Close(patience)
			ended(t, j)
		})
	}
}

// A terminal with tostop stops a background process that writes to it.
func TestBackgroundOfATerminal(t *testing.T) {
	master, tty := terminal(t)
	cmd := helper("tostop")
	stdin, err := unix.Dup(tty) // the file closes its descriptor, the test its own
	must(t, err)
	cmd.Stdin = os.NewFile(uintptr(stdin), "tty")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	within(t, "the helper", func() {
		var status unix.WaitStatus
		_, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		}
		if err != nil || !status.Exited() || status.ExitStatus() != 0 {
			t.Errorf("%v, status %#x: stopped by its own log line?", err, status)
		}
		if status.Stopped() {
			unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		}
	})
	if t.Failed() {
		return // and no line will come
	}
	if line := next(t, lines(master)); !strings.Contains(line, "from the background") {
		t.Errorf("line %q", line)
	}
}

// toStop is the leader of a session whose terminal, standard input, has another
// group in its foreground.
func toStop() {
	termios, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		panic(err)
	}
	termios.Lflag |= unix.TOSTOP
	foreground := helper("sleep")
	foreground.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := errors.Join(unix.IoctlSetTermios(0, unix.TCSETS, termios), foreground.Start()); err != nil {
		panic(err)
	}
	defer foreground.Process.Kill()
	if err := unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, foreground.Process.Pid); err != nil {
		panic(err)
	}
	fd, err := unix.Dup(0) // FD 0 would stand for standard error
	if err != nil {
		panic(err)
	}
	j := Open(Options{FD: fd})
	j.Logger().Info("from the background")
	j.Close(patience)
	if j.Dropped() != 0 {
		panic("dropped")
	}
}

// An idle writer stays asleep: it blocks on the queue, with no timer beside it.
func TestIdleNeverWakes(t *testing.T) {
	r, w := pipe(t, 0)
	j := Open(Options{Format: "text", FD: w})
	j.Logger().Info("line")
	next(t, lines(r))
	j.Flush(patience)
	before := sleeps(t)
	unix.Poll(nil, 6*slice) // the one wait for nothing to happen
	// One more: it may only now have gone to sleep behind the flush.
	if after := sleeps(t); after > before+1 {
		t.Errorf("the writer went to sleep %d times, then %d", before, after)
	}
	j.Close(patience)
}

// sleeps returns how often the writer's thread gave the processor up by itself.
// Nothing else in this process blocks SIGPIPE and SIGTTOU, bits 12 and 21.
func sleeps(t *testing.T) (n int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	for _, task := range tasks {
		status, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		_, rest, blocked := strings.Cut(string(status), "SigBlk:\t0000000000201000")
		if _, count, ok := strings.Cut(rest, "\nvoluntary_ctxt_switches:\t"); blocked && ok {
			_, err := fmt.Sscan(count, &n)
			must(t, err)
			return n
		}
	}
	t.Fatal("no thread blocks SIGPIPE and SIGTTOU")
	return 0
}
