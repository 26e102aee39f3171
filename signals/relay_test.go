package signals

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperVariable makes a process of its own of the test binary: what a Relay
// does to the process is for good.
const helperVariable = "SIGNALS_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "":
		os.Exit(m.Run())
	case "forward":
		relay := Open()
		relay.Rest()
		relay.Ignored()
		report(relay)
	case "early":
		report(Open())
	case "burst":
		burst()
	case "flood":
		flood()
	case "two":
		two()
	case "ignored":
		ignored()
	}
	os.Exit(0)
}

// report prints the name of every signal that arrives.
func report(r *Relay) {
	fmt.Println("open")
	for {
		// CHLD stands for many things, a signal that came another way among them.
		if sig, _ := r.Next(time.Time{}); sig != syscall.SIGCHLD {
			fmt.Println(Name(sig))
		}
	}
}

// burst sends itself every signal several times over before it takes one, and
// prints those that arrive.
func burst() {
	relay := Open()
	relay.Rest()
	relay.Ignored()
	// The kernel itself drops a CONT that waits when TSTP, TTIN or TTOU comes, and
	// the other way round (signal(7)).
	sent := Forwardable().Minus(Of(syscall.SIGCONT))
	for range 5 {
		for _, sig := range sent.List() {
			if err := syscall.Kill(os.Getpid(), sig); err != nil {
				fmt.Println(Name(sig), err)
			}
		}
	}
	var got Set
	patience := time.Now().Add(20 * time.Second)
	for got.Minus(Of(syscall.SIGCHLD)) != sent {
		sig, ok := relay.Next(patience)
		if !ok {
			fmt.Println("lost", sent.Minus(got))
			return
		}
		got = got.With(sig)
	}
	fmt.Println("all")
}

// ignored prints what a child finds ignored before Open, after it, and what
// arrives after Rest.
func ignored() {
	fmt.Println(childIgnores())
	relay := Open()
	fmt.Println(childIgnores())
	relay.Rest()
	fmt.Println(childIgnores())
	relay.Ignored()
	report(relay)
}

// childIgnores returns the signals that a child finds ignored (proc_pid_status(5)).
func childIgnores() Set {
	status, err := exec.Command("cat", "/proc/self/status").Output()
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigIgn:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return Set(n)
		}
	}
	return 0
}

// helper is a running process of the test binary.
type helper struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Scanner
}

// start runs the test binary as the named helper, below a shell that has run
// the given commands before.
func start(t *testing.T, name, prepare string) *helper {
	t.Helper()
	cmd := exec.Command("sh", "-c", prepare+"\nexec \"$0\"", os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return &helper{t, cmd, bufio.NewScanner(out)}
}

// next returns the next line that the helper prints.
func (h *helper) next() string {
	h.t.Helper()
	// Only so that a signal that never arrives fails this test by name, instead
	// of the whole run by its time limit.
	stuck := time.AfterFunc(30*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer stuck.Stop()
	if !h.out.Scan() {
		h.t.Fatalf("the helper ended: %v", h.out.Err())
	}
	return h.out.Text()
}

func (h *helper) send(sig syscall.Signal) {
	h.t.Helper()
	if err := syscall.Kill(h.cmd.Process.Pid, sig); err != nil {
		h.t.Fatalf("%s: %v", Name(sig), err)
	}
}

// arrives sends a signal and waits until it is the next to arrive.
func (h *helper) arrives(sig syscall.Signal) {
	h.t.Helper()
	h.send(sig)
	if got := h.next(); got != Name(sig) {
		h.t.Errorf("%s arrived as %s", Name(sig), got)
	}
}

func TestEveryForwardableSignalArrives(t *testing.T) {
	h := start(t, "forward", "")
	if h.next() != "open" {
		t.Fatal("not open")
	}
	for _, sig := range Forwardable().List() {
		h.arrives(sig)
	}
	// These do nothing, and what comes behind them is not disturbed.
	for _, sig := range []syscall.Signal{syscall.SIGPIPE, syscall.SIGCHLD, syscall.SIGURG} {
		h.send(sig)
	}
	h.arrives(syscall.SIGTERM)
}

func TestEarlySignalsArriveBeforeRest(t *testing.T) {
	h := start(t, "early", "")
	if h.next() != "open" {
		t.Fatal("not open")
	}
	for _, sig := range before.List() {
		h.arrives(sig)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !before.Has(sig) {
			t.Errorf("%s is not among the early ones", Name(sig))
		}
	}
	page, err := os.ReadFile("../docs/reference/signals.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Before the workload runs")
	told, _, _ := strings.Cut(section, " are kept")
	for _, sig := range before.List() {
		if !strings.Contains(told, Name(sig)) {
			t.Errorf("docs/reference/signals.md does not say that %s is kept: %q", Name(sig), told)
		}
	}
	if n := strings.Count(told, ",") + 2; n != len(before.List()) {
		t.Errorf("docs/reference/signals.md has %d early signals, there are %d", n, len(before.List()))
	}
	if before.Minus(Forwardable()) != 0 {
		t.Errorf("%s can't arrive", before.Minus(Forwardable()))
	}
}

func TestBurstLosesNone(t *testing.T) {
	if got := start(t, "burst", "").next(); got != "all" {
		t.Error(got)
	}
}

// What was ignored when the init was started (nohup, a background job of a
// shell) is ignored in the workload too, as far as the runtime lets it be, and
// reaches the init all the same once the workload runs.
func TestIgnoredStaysIgnored(t *testing.T) {
	kept := Of(syscall.SIGHUP, syscall.SIGINT, syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	h := start(t, "ignored", `trap "" HUP INT CONT TSTP TTIN TTOU`)
	if got := h.next(); got != kept.String() {
		t.Errorf("before Open a child ignores %s, want %s", got, kept)
	}
	for _, when := range []string{"Open", "Rest"} {
		if got := h.next(); got != kept.String() {
			t.Errorf("after %s a child ignores %s, want %s", when, got, kept)
		}
	}
	if h.next() != "open" {
		t.Fatal("not open")
	}
	for _, sig := range kept.List() {
		h.arrives(sig)
	}
}

// Nothing is ignored that was not ignored before, whatever that was.
func TestNothingElseIsIgnored(t *testing.T) {
	h := start(t, "ignored", "")
	before := h.next()
	for _, when := range []string{"Open", "Rest"} {
		if after := h.next(); after != before {
			t.Errorf("a child ignores %s before Open and %s after %s", before, after, when)
		}
	}
}

// A signal that somebody repeats while the loop is busy costs no other one.
func TestFloodHidesNone(t *testing.T) {
	if got := start(t, "flood", "").next(); got != "TERM" {
		t.Error(got)
	}
}

// flood is busy while USR1 comes 300 times, and TERM once, and then takes what
// there is.
func flood() {
	relay := Open()
	relay.Rest()
	for i := range 301 {
		sig := syscall.SIGUSR1
		if i == 300 {
			sig = syscall.SIGTERM
		}
		_ = syscall.Kill(os.Getpid(), sig)
		time.Sleep(500 * time.Microsecond) // so that each is delivered
	}
	for range 300 {
		if sig, ok := relay.Next(time.Now().Add(20 * time.Second)); !ok || sig == syscall.SIGTERM {
			fmt.Println(Name(sig))
			return
		}
	}
	fmt.Println("USR1 alone")
}

// Nor do two that are always there, both of them before it in the kernel's order.
func TestTwoHideNone(t *testing.T) {
	if got := start(t, "two", "").next(); got != "TERM" {
		t.Error(got)
	}
}

// two sends USR1 and USR2 to the thread that waits before each wait.
func two() {
	relay := Open()
	send := func(sig syscall.Signal) { _ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), sig) }
	send(syscall.SIGTERM)
	for range 10 {
		send(syscall.SIGUSR1)
		send(syscall.SIGUSR2)
		if sig, ok := relay.Next(time.Now().Add(20 * time.Second)); !ok || sig == syscall.SIGTERM {
			fmt.Println(Name(sig))
			return
		}
	}
	fmt.Println("USR1 and USR2 alone")
}
