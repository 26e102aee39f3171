package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// enough bounds every wait for something that has to come.
const enough = 20 * time.Second

// skip leaves a test out where the machine can't run it. Where DRAINIT_CI is set
// nothing may be left out.
func skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatal("may not be skipped with DRAINIT_CI set: " + why)
	}
	t.Skip(why)
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "needs root")
	}
}

// helper makes the test binary another program: what it does, and its arguments.
const helper = "CONTROL_TEST_HELPER"

func TestMain(m *testing.M) {
	if part := os.Getenv(helper); part != "" {
		os.Exit(play(part, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// play is what other processes do, as other users and in other namespaces.
func play(part string, args []string) int {
	switch part {
	case "ask": // ADDR VERB: as a client does it
		a, err := Ask(context.Background(), args[0], Request{Verb: args[1]}, func(s string) { fmt.Println("progress", s) })
		fmt.Println("answer", a.Code, a.Text, err)
	case "later": // ADDR VERB: when it is told to on standard input
		_, _ = os.Stdin.Read(make([]byte, 1))
		return play("ask", args)
	case "raw": // ADDR VERB: without a look at who listens
		conn, err := connect(args[0])
		if err != nil {
			fmt.Println(err)
			return 1
		}
		b, _ := encodeRequest(Request{Verb: args[1]})
		_, _ = conn.Write(b)
		_, _ = io.Copy(os.Stdout, conn)
	case "serve": // [ADDR]: answers everything, by default at its own address
		addr, err := Default(os.Getpid())
		if len(args) > 0 {
			addr = args[0]
		}
		s, err2 := Listen(addr, Options{})
		if err := errors.Join(err, err2); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(addr)
		go echo(s)
		s.Serve(context.Background())
	case "flood": // ADDR: comes and goes, until it is killed
		for range 50 {
			go func() {
				for {
					if conn, err := connect(args[0]); err == nil {
						_ = conn.Close()
					} else {
						time.Sleep(time.Millisecond)
					}
				}
			}()
		}
		select {}
	case "family": // a server, and a child of it that asks
		addr, _ := Default(os.Getpid())
		s, err := Listen(addr, Options{})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		go echo(s)
		go s.Serve(context.Background())
		out, _ := relative(nil, "ask", addr, Status).CombinedOutput()
		fmt.Print(string(out))
	case "container": // a server that is PID 1, and below it another one, and a client
		_ = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		err := unix.Mount("proc", "/proc", "proc", 0, "")
		addr, err2 := Default(os.Getpid())
		s, err3 := Listen(addr, Options{})
		if err := errors.Join(err, err2, err3); err != nil {
			fmt.Println(err)
			return 1
		}
		go s.Serve(context.Background())
		cmd := relative(nil, "find-self")
		out, _ := cmd.CombinedOutput()
		fmt.Print(string(out))
	case "find-self": // with a server of its own
		addr, _ := Default(os.Getpid())
		return play("find", []string{addr})
	case "shares": // PID
		me, err := whoami()
		pid, _ := strconv.Atoi(args[0])
		fmt.Println(errors.Join(err, me.sharesByNumber(pid)))
	case "find": // ADDR...: with those bound
		for _, addr := range args {
			s, err := Listen(addr, Options{})
			if err != nil {
				fmt.Println(err)
				return 1
			}
			defer s.Close()
		}
		fmt.Println(Find(func(string) (string, bool) { return "", false }))
	default:
		return 99
	}
	return 0
}

// echo answers every call by its verb.
func echo(s *Server) {
	for c := range s.Calls() {
		s.Answer(c.ID, Answer{Text: "did " + c.Request.Verb})
	}
}

// relative is the test binary in another part. Any user can execute it by this
// name, wherever the directory is that it was built in.
func relative(attr *syscall.SysProcAttr, part string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), helper+"="+part, "GORACE=atexit_sleep_ms=0")
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	return cmd
}

func user(id uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
}

func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// neighbour starts a server in another process and returns its address.
func neighbour(t testing.TB, attr *syscall.SysProcAttr, args ...string) (addr string, pid int) {
	t.Helper()
	cmd := relative(attr, "serve", args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	b := bufio.NewReader(out)
	first, err := b.ReadString('\n')
	if err != nil || !strings.HasPrefix(first, "@") && !strings.HasPrefix(first, "/") {
		t.Fatalf("%q, %v", first, err)
	}
	return strings.TrimSpace(first), cmd.Process.Pid
}

// house is a server that runs, with what it was heard to say.
type house struct {
	*Server
	log   *record
	woken atomic.Int32
	stop  func() // ends Serve and waits for it
}

// record is a log that may be read while it is written.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// own returns an address of the test's own.
func own(t testing.TB) string {
	return "@control-test/" + strconv.Itoa(os.Getpid()) + "/" + strings.ReplaceAll(t.Name(), "/", "-")
}

// bound makes a server that does not serve yet.
func bound(t testing.TB) *house {
	t.Helper()
	h := &house{log: &record{}}
	s, err := Listen(own(t), Options{Wake: func() { h.woken.Add(1) }, Log: slog.New(slog.NewTextHandler(h.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	h.Server = s
	t.Cleanup(s.Close)
	return h
}

// serve lets it serve.
func (h *house) serve(t testing.TB) *house {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); h.Serve(context.Background()) }()
	h.stop = func() {
		h.Close()
		select {
		case <-done:
		case <-time.After(enough):
			t.Fatal("Serve has not returned")
		}
	}
	t.Cleanup(h.stop)
	return h
}

func open(t testing.TB) *house { t.Helper(); return bound(t).serve(t) }

// accepted is a connection to a server that does not serve, seen from both ends.
func accepted(t testing.TB, h *house) (*wire, *caller) {
	t.Helper()
	w := h.dial(t)
	var conn *net.UnixConn
	ln, err := h.adopt()
	if err == nil {
		conn, err = ln.AcceptUnix()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return w, newCaller(conn)
}

// next waits for a call.
func (h *house) next(t testing.TB) Call {
	t.Helper()
	select {
	case c := <-h.Calls():
		return c
	case <-time.After(enough):
		t.Fatalf("no call; log: %s", h.log)
	}
	return Call{}
}

// quiet says that no call is there, nor comes within a moment.
func (h *house) quiet(t testing.TB) {
	t.Helper()
	select {
	case c := <-h.Calls():
		t.Errorf("a call: %+v", c)
	case <-time.After(30 * time.Millisecond):
	}
}

// wire is a client that knows nothing of Ask.
type wire struct {
	*net.UnixConn
	t testing.TB
	b *bufio.Reader
}

func (h *house) dial(t testing.TB) *wire {
	t.Helper()
	var conn *net.UnixConn
	eventually(t, "connect", func() bool {
		var err error
		conn, err = connect(h.Addr())
		if err != nil && !errors.Is(err, syscall.EAGAIN) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(enough))
	return &wire{conn, t, bufio.NewReaderSize(conn, 64)}
}

func (w *wire) send(text string) *wire {
	w.t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// ask sends a request of this verb.
func (w *wire) ask(verb string) *wire {
	w.t.Helper()
	return w.send(`{"drainit":1,"verb":"` + verb + "\"}\n")
}

// hear returns the next line.
func (w *wire) hear() reply {
	w.t.Helper()
	text, err := nextLine(w.b)
	var r reply
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		w.t.Fatalf("%q: %v", text, err)
	}
	return r
}

// over waits for the end of the connection and returns what came until then.
func (w *wire) over() string {
	w.t.Helper()
	rest, err := io.ReadAll(w.b)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		w.t.Errorf("not over: %v", err)
	}
	return string(rest)
}

// waits begins a drain and returns when the loop has it.
func (h *house) waits(t testing.TB) (*wire, uint64) {
	t.Helper()
	w := h.dial(t).ask(Drain)
	c := h.next(t)
	if c.Left || c.Request.Verb != Drain {
		t.Fatalf("%+v", c)
	}
	if r := w.hear(); !r.Taken {
		t.Fatalf("%+v", r)
	}
	return w, c.ID
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(enough); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// inside counts the connections that are open.
func (h *house) inside() int {
	h.crowd.mu.Lock()
	defer h.crowd.mu.Unlock()
	return len(h.crowd.inside)
}

// used is the processor time that the process has used.
func used(t testing.TB) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
