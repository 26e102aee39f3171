//go:build linux && !race

package containers

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drainit/signals"
)

// parts are what the workload can play.
func parts() map[string]func([]string) {
	return map[string]func([]string){
		"trap":   playTrap,
		"serve":  playServe,
		"ignore": playIgnore,
		"exit":   func(a []string) { os.Exit(number(a[0])) },
		"flaky":  playFlaky,
		"daemon": playDaemon,
		"facts":  playFacts,
		"eat":    playEat,
		"forge":  playForge,
	}
}

func workloadMain() {
	part := parts()[os.Args[1]]
	if part == nil {
		fail(fmt.Errorf("no part %q", os.Args[1]))
	}
	part(os.Args[2:])
	os.Exit(0)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "workload:", err)
	os.Exit(98)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		fail(err)
	}
	return n
}

// stay is for ever: without a sleeper the runtime would call it a deadlock.
func stay() {
	for {
		time.Sleep(time.Hour)
	}
}

// playTrap prints "ready", then the name of each signal that comes. An argument
// SIG=N ends it with status N at that signal, SIG=N@D after the duration D.
func playTrap(args []string) {
	type end struct {
		status int
		after  time.Duration
	}
	ends := map[syscall.Signal]end{}
	for _, a := range args {
		name, how, _ := strings.Cut(a, "=")
		sig, err := signals.Parse(name)
		if err != nil {
			fail(err)
		}
		status, after, _ := strings.Cut(how, "@")
		pause, _ := time.ParseDuration(after)
		ends[sig] = end{number(status), pause}
	}
	c := make(chan os.Signal, 64)
	for sig := syscall.Signal(1); sig <= 64; sig++ {
		if sig != syscall.SIGURG && sig != syscall.SIGCHLD {
			signal.Notify(c, sig)
		}
	}
	fmt.Println("ready")
	for s := range c {
		sig := s.(syscall.Signal)
		fmt.Println("got", signals.Name(sig))
		if e, ok := ends[sig]; ok {
			time.Sleep(e.after)
			os.Exit(e.status)
		}
	}
}

// playServe is playTrap with a server on a port of 127.0.0.1.
func playServe(args []string) {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", args[0]))
	if err != nil {
		fail(err)
	}
	go func() {
		fail(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "served") })))
	}()
	playTrap(args[1:])
}

// playIgnore ignores the named signals, prints "ready" and stays.
func playIgnore(args []string) {
	for _, a := range args {
		sig, err := signals.Parse(a)
		if err != nil {
			fail(err)
		}
		signal.Ignore(sig)
	}
	fmt.Println("ready")
	stay()
}

// playFlaky counts its runs in a file. The first n end with a status, the next
// one goes on as another part.
func playFlaky(args []string) {
	file, n, status := args[0], number(args[1]), number(args[2])
	b, _ := os.ReadFile(file)
	run := len(b) + 1
	if err := os.WriteFile(file, append(b, '.'), 0o600); err != nil {
		fail(err)
	}
	fmt.Println("run", run)
	if run <= n {
		os.Exit(status)
	}
	parts()[args[3]](args[4:])
}

// playDaemon starts a command as a daemon, in a session of its own. Then it goes
// on as another part.
func playDaemon(args []string) {
	split := len(args)
	for i, a := range args {
		if a == "then" {
			split = i
		}
	}
	cmd := exec.Command(args[0], args[1:split]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fail(err)
	}
	if rest := args[min(split+1, len(args)):]; len(rest) > 0 {
		parts()[rest[0]](rest[1:])
	}
}

// playFacts prints what it is confined by, and goes on as another part.
func playFacts(args []string) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fail(err)
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		facts[name] = strings.TrimSpace(value)
	}
	err = os.WriteFile("/written", nil, 0o600)
	init, _ := os.Readlink("/proc/1/exe")
	fmt.Printf("facts uid=%d caps=%s bounding=%s seccomp=%s nnp=%s readonly=%t init=%s\n", os.Getuid(), facts["CapEff"],
		facts["CapBnd"], facts["Seccomp"], facts["NoNewPrivs"], err != nil && strings.Contains(err.Error(), "read-only"), filepath.Base(init))
	parts()[args[0]](args[1:])
}

// playEat takes memory until it is ended for it.
func playEat([]string) {
	var all [][]byte
	for {
		b := make([]byte, 4<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
		fmt.Println("ate", len(all))
	}
}

// playForge asks an init as its own client does, but for that client's doubts:
// whom it talks to, and whether it will be heard. It prints what it is told.
func playForge(args []string) {
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		fail(err)
	}
	// Who is refused may be hung up on before a word.
	_, _ = fmt.Fprintf(conn, "{\"drainit\":1,\"verb\":%q}\n", args[1])
	_, _ = io.Copy(os.Stdout, conn)
}
