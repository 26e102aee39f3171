package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wsClients is how many clients the server has.
const wsClients = 20

// TestWebsocketExample runs examples/websocket as docs/how-to/websockets.md tells:
// after the stop signal each client gets a close frame that tells it to come back
// later, they get them spread over the window and not at once, and only when all
// have gone is the server told to stop.
func TestWebsocketExample(t *testing.T) {
	t.Parallel()
	const budget = 12 * time.Second // a tenth of it is for the programs' own start-up
	p := startWebsocket(t, budget)
	addr := "127.0.0.1:" + p.waitLog(`^serving on (\d+)$`)[1]
	closed := make(chan wsClosed)
	var all []*wsConn
	for range wsClients {
		all = append(all, dialWebsocket(t, addr))
	}
	for _, c := range all {
		c.echo(t, "hello")
		go func() { closed <- c.untilClosed() }()
	}

	from := time.Now()
	p.kill(syscall.SIGTERM)
	var at []time.Duration
	for range all {
		select {
		case end := <-closed:
			if end.err != nil || end.code != 1012 {
				t.Errorf("close frame %d, %v", end.code, end.err)
			}
			at = append(at, end.at.Sub(from))
		case <-time.After(patience):
			t.Fatalf("%d of %d clients were closed: %s", len(at), wsClients, p.output())
		}
	}
	p.want(0)
	evenly(t, at, budget-budget/10)
	out := p.output()
	if n := strings.Count(out, " with 1012"); n != wsClients || strings.LastIndex(out, " with 1012") > strings.Index(out, "told to stop, 0 connections left") {
		t.Errorf("%d were closed before the stop signal:\n%s", n, out)
	}
	if !p.has("phase ended.*phase=close-clients result=ok") {
		t.Error(out)
	}
}

// evenly: no tenth of the window has more than a few, and they take up most of it.
func evenly(t *testing.T, at []time.Duration, window time.Duration) {
	t.Helper()
	slices.Sort(at)
	for i, first := range at {
		n := 0
		for _, other := range at[i:] {
			if other < first+window/10 {
				n++
			}
		}
		if n > wsClients/3 {
			t.Errorf("%d of %d within a tenth of %v: %v", n, len(at), window, at)
			break
		}
	}
	if used := at[len(at)-1] - at[0]; used < window*7/10 || used > window {
		t.Errorf("spread over %v of %v: %v", used, window, at)
	}
}

// TestWebsocketExampleWithout the phase: the server has to send all away at once,
// so that the other test means something.
func TestWebsocketExampleWithout(t *testing.T) {
	t.Parallel()
	p := startWebsocket(t, 0)
	c := dialWebsocket(t, "127.0.0.1:"+p.waitLog(`^serving on (\d+)$`)[1])
	p.kill(syscall.SIGTERM)
	if end := c.untilClosed(); end.err != nil || end.code != 1001 {
		t.Errorf("close frame %d, %v", end.code, end.err)
	}
	p.want(0)
	if !p.has("told to stop, 1 connections left") {
		t.Error(p.output())
	}
}

// startWebsocket starts the example, with its phase where there is a budget for it.
func startWebsocket(t *testing.T, budget time.Duration) *process {
	t.Helper()
	const example = "examples/websocket"
	phase := readFile(t, filepath.Join(example, "phases.d", "20-close-clients"))
	for _, name := range []string{"server.py", "admin.py"} {
		readFile(t, filepath.Join(example, name)) // so that a change of it is one of the test's
	}
	dir, err := filepath.Abs(example)
	if err != nil {
		t.Fatal(err)
	}
	init, err := exec.LookPath("drainit")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Dir(init) + ":" + os.Getenv("PATH")
	if _, err := os.Stat("/usr/bin/python3"); err == nil { // what comes first in PATH may be a wrapper that takes its time
		path = filepath.Dir(init) + ":/usr/bin:/bin"
	} else if _, err := exec.LookPath("python3"); err != nil {
		skip(t, err.Error())
	}
	config := "none"
	if budget > 0 {
		config = hookDir(t, map[string]string{"20-close-clients": phase})
	}
	socket := filepath.Join(t.TempDir(), "admin")
	return program{
		dir: dir, env: quietEnv("PATH="+path, "CHAT_ADMIN="+socket),
		argv: []string{
			"drainit", "--config-dir", config, "--grace-period", "60s", "--drain-budget", budget.String(),
			"--", "python3", "server.py", "0", socket,
		},
	}.start(t)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wsConn is the client's end of a websocket.
type wsConn struct {
	net.Conn
	in *bufio.Reader
}

// wsClosed is the close frame that a client got; code 0: it got none.
type wsClosed struct {
	code uint16
	at   time.Time
	err  error
}

// The opcodes of RFC 6455, section 5.2.
const (
	wsContinuation, wsText, wsClose, wsPing, wsPong = 0, 1, 8, 9, 10

	wsFinal = 0x80
)

// dialWebsocket connects and shakes hands.
func dialWebsocket(t *testing.T, addr string) *wsConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &wsConn{conn, bufio.NewReader(conn)}
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	var nonce [16]byte
	_, _ = rand.Read(nonce[:])
	key := base64.StdEncoding.EncodeToString(nonce[:])
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", addr, key)
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	if want := base64.StdEncoding.EncodeToString(sum[:]); resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != want {
		t.Fatalf("%s, %v", resp.Status, resp.Header)
	}
	return c
}

// send sends a frame as a client has to, masked. first is the opcode and the
// final bit.
func (c *wsConn) send(first byte, payload string) error {
	mask := [4]byte{0x12, 0x34, 0x56, 0x78}
	frame := append([]byte{first, 0x80 | byte(len(payload))}, mask[:]...)
	for i := range len(payload) {
		frame = append(frame, payload[i]^mask[i%4])
	}
	_, err := c.Write(frame)
	return err
}

// frame reads a short frame.
func (c *wsConn) frame() (first byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	if head[1] > 125 {
		return 0, nil, fmt.Errorf("a frame with length byte %d", head[1])
	}
	payload = make([]byte, head[1])
	_, err = io.ReadFull(c.in, payload)
	return head[0], payload, err
}

// echo sends a message in two parts with a ping between them, and wants the pong
// first and then the whole message.
func (c *wsConn) echo(t *testing.T, text string) {
	t.Helper()
	_ = c.send(wsText, text[:2])
	_ = c.send(wsFinal|wsPing, "ping")
	_ = c.send(wsFinal|wsContinuation, text[2:])
	for _, want := range []struct {
		first byte
		text  string
	}{{wsFinal | wsPong, "ping"}, {wsFinal | wsText, text}} {
		if first, payload, err := c.frame(); err != nil || first != want.first || string(payload) != want.text {
			t.Fatalf("%#x %q, %v; want %#x %q", first, payload, err, want.first, want.text)
		}
	}
}

// untilClosed reads to the close frame, answers it, and waits for the server to
// hang up.
func (c *wsConn) untilClosed() wsClosed {
	for {
		first, payload, err := c.frame()
		switch {
		case err != nil:
			return wsClosed{err: err}
		case first == wsFinal|wsPing:
			_ = c.send(wsFinal|wsPong, string(payload))
		case first == wsFinal|wsClose && len(payload) >= 2:
			end := wsClosed{code: binary.BigEndian.Uint16(payload), at: time.Now()}
			end.err = c.send(wsFinal|wsClose, string(payload))
			if rest, err := io.ReadAll(c.in); err != nil || !bytes.Equal(rest, nil) {
				end.err = fmt.Errorf("behind the close frame: %q, %v", rest, err)
			}
			return end
		}
	}
}
