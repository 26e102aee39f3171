package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullPipe returns a pipe that takes nothing more.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	fd := int(w.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := unix.Write(fd, make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return r, w
}

// TestLogThatNobodyReads: standard error is a full pipe. Signals are passed on
// and the shutdown runs on time.
func TestLogThatNobodyReads(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		_, w := fullPipe(t)
		dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\nyes | head -n 20000\n"})
		p := program{pid1: pid1, err: w, argv: []string{"drainit", "--config-dir", dir, "--grace-period", "10", "--",
			"actor", "trap", "TERM=3"}}.start(t)
		p.waitLog("^ready")
		p.kill(syscall.SIGUSR1)
		p.waitLog("got USR1")
		from := time.Now()
		p.kill(syscall.SIGTERM)
		p.want(3)
		if took := time.Since(from); took > 3*time.Second {
			t.Errorf("the stop took %v", took)
		}
	})
}

// TestDroppedLinesAreCounted on /metrics.
func TestDroppedLinesAreCounted(t *testing.T) {
	t.Parallel()
	needPID1(t)
	_, w := fullPipe(t)
	addr := fmt.Sprintf("127.%d.0.9:8079", os.Getpid()%200+1)
	dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\nyes | head -n 20000\nexec sleep 3\n"})
	p := program{pid1: true, err: w, argv: []string{"drainit", "--config-dir", dir, "--grace-period", "10", "--probe-addr", addr, "--",
		"actor", "trap", "TERM=3"}}.start(t)
	p.waitLog("^ready")
	p.kill(syscall.SIGTERM)
	re := regexp.MustCompile(`(?m)^drainit_log_dropped_total ([0-9.e+]+)$`)
	eventually(t, "a count of dropped lines", func() bool {
		resp, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		m := re.FindSubmatch(b)
		if m == nil {
			return false
		}
		n, err := strconv.ParseFloat(string(m[1]), 64)
		return err == nil && n > 0
	})
	p.kill(syscall.SIGINT)
	p.want(3)
}

// TestLogWhoseReaderIsGone: a write fails with EPIPE, and that is all.
func TestLogWhoseReaderIsGone(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, pid1 bool) {
		start := func(argv ...string) *process {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			return program{pid1: pid1, err: w, argv: argv}.start(t)
		}
		p := start("drainit", "--", "actor", "trap", "TERM=3")
		p.waitLog("^ready")
		for i := range 20 {
			p.kill(syscall.SIGUSR1)
			eventually(t, "USR1", func() bool { return p.has(fmt.Sprintf("(got USR1\n){%d}", i+1)) })
		}
		p.kill(syscall.SIGTERM)
		p.want(3)
		if p.has("got PIPE") {
			t.Error("the init's own broken pipe was passed on")
		}
		start("drainit", "--nonsense", "--", "true").want(125)
		start("drainit", "--", "/no/such").want(127)
	})
}

// TestSharedNonblockingStream: a workload that makes the shared description
// non-blocking costs no log line.
func TestSharedNonblockingStream(t *testing.T) {
	t.Parallel()
	needPID1(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := unix.SetNonblock(int(w.Fd()), true); err != nil {
		t.Fatal(err)
	}
	dir := hookDir(t, map[string]string{"10-a": "#!/bin/sh\nseq 400\n"})
	p := program{pid1: true, err: w, argv: []string{"drainit", "--config-dir", dir, "--grace-period", "10", "--", "true"}}.start(t)
	w.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	p.want(0)
	if n := len(regexp.MustCompile(`hook output`).FindAll(b, -1)); n != 400 {
		t.Errorf("%d lines, want 400", n)
	}
}
