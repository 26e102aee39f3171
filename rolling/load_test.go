//go:build linux

package rolling

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// The kinds of clients.
const (
	keepAlive = "keep-alive"
	closing   = "close"
)

// count is what one client, or all of a kind, have counted.
type count struct {
	ok     int
	losses map[string]int // by what happened
}

func (c count) lost() int {
	n := 0
	for _, m := range c.losses {
		n += m
	}
	return n
}

func (c count) total() int { return c.ok + c.lost() }

func (c count) String() string {
	text := fmt.Sprintf("%d requests, %d lost", c.total(), c.lost())
	for i, what := range slices.Sorted(maps.Keys(c.losses)) {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + fmt.Sprintf("%s %d", what, c.losses[what])
	}
	return text
}

// load is the clients of both kinds at work.
type load struct {
	stop  context.CancelFunc
	kinds map[string]*kind
}

type kind struct {
	done    atomic.Int64 // requests that have ended
	results chan count   // one of each client, at its end
}

// startLoad starts the clients. It is bounded by ctx, by stop, and by most
// requests of each client.
func startLoad(ctx context.Context, addr string, most int) *load {
	ctx, cancel := context.WithCancel(ctx)
	l := &load{stop: cancel, kinds: map[string]*kind{}}
	for _, name := range []string{keepAlive, closing} {
		k := &kind{results: make(chan count, clients)}
		l.kinds[name] = k
		for i := range clients {
			c := &client{addr: addr, keep: name == keepAlive}
			go func() { k.results <- c.work(ctx, i*most, most, &k.done) }()
		}
	}
	return l
}

// done is how many requests each kind has made at least.
func (l *load) done() int {
	return int(min(l.kinds[keepAlive].done.Load(), l.kinds[closing].done.Load()))
}

// finish lets each client end its request, and returns the counts by kind.
func (l *load) finish() map[string]count {
	l.stop()
	all := map[string]count{}
	for name, k := range l.kinds {
		sum := count{losses: map[string]int{}}
		for range clients {
			c := <-k.results
			sum.ok += c.ok
			for what, n := range c.losses {
				sum.losses[what] += n
			}
		}
		all[name] = sum
	}
	return all
}

// client makes one request after the other. It is no http.Client because that
// one quietly repeats a request when a kept connection turns out to be dead, and
// so would hide what is counted here.
type client struct {
	addr string
	keep bool
	conn net.Conn // nil: none
	r    *bufio.Reader
}

// work makes up to most requests, numbered from first, until ctx is done.
func (c *client) work(ctx context.Context, first, most int, done *atomic.Int64) count {
	result := count{losses: map[string]int{}}
	defer c.hangUp()
	for n := first; n < first+most && ctx.Err() == nil; n++ {
		err := c.get(n)
		done.Add(1)
		if err == nil {
			result.ok++
			continue
		}
		result.losses[lossOf(err)]++
		c.hangUp()
		// As clients do: an error is quick, and would otherwise make this one
		// count faster than the others.
		pause := time.NewTimer(longestRequest / 2)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
	return result
}

// get makes one request; nil: status 200 and the whole body, as expected.
func (c *client) get(n int) error {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, patience)
		if err != nil {
			return err
		}
		c.conn, c.r = conn, bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	connection := map[bool]string{true: "keep-alive", false: "close"}[c.keep]
	_, err := fmt.Fprintf(c.conn, "GET /item/%08d HTTP/1.1\r\nHost: rolling\r\nConnection: %s\r\n\r\n", n, connection)
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	switch {
	case answer.StatusCode != http.StatusOK:
		return statusError(answer.StatusCode)
	case err != nil:
		return errors.Join(errShort, err)
	case string(body) != bodyOf(n):
		return errWrong
	}
	if answer.Close || !c.keep {
		c.hangUp()
	}
	return nil
}

func (c *client) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is lost by it
		c.conn = nil
	}
}

// bodyOf is what every workload answers to request n.
func bodyOf(n int) string { return strings.Repeat(fmt.Sprintf("%08d", n), 512) }

type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

var (
	errShort = errors.New("short body")
	errWrong = errors.New("wrong body")
)

// lossOf names what happened to a request.
func lossOf(err error) string {
	var status statusError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, errShort):
		return errShort.Error()
	case errors.Is(err, errWrong):
		return errWrong.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed without an answer"
	}
	return err.Error()
}
