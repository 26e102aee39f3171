package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// handshake is how long the init may take to say that it has taken a request. It
// does so within milliseconds unless it is stopped or frozen.
const handshake = 5 * time.Second

// redial is the pause before the next attempt.
const redial = 20 * time.Millisecond

// Why there was no answer.
var (
	errRefused = errors.New("refused")
	errHungUp  = errors.New("hung up without an answer")
	errDropped = errors.New("hung up without an answer, nor had it taken the request")
	errLate    = errors.New("no answer in time")
	errFull    = errors.New("too many clients wait in front of us")
)

// Ask asks the init at addr and returns its answer. progress, which may be nil,
// gets what it says meanwhile. An error says that there was no answer: nobody
// listens, it is not who it should be, it refuses to listen to us, it hung up, ctx
// was done, or it did not take the request within 5 seconds. After that only ctx
// bounds the wait. To end ctx is to hang up.
func Ask(ctx context.Context, addr string, r Request, progress func(text string)) (Answer, error) {
	a, err := ask(ctx, addr, r, progress, time.Now().Add(handshake))
	if err != nil {
		return Answer{}, explain(ctx, addr, err)
	}
	return a, nil
}

// ask is Ask with the time until which the request is to be taken.
func ask(ctx context.Context, addr string, r Request, progress func(string), due time.Time) (Answer, error) {
	if err := checkAddress(addr); err != nil {
		return Answer{}, err
	}
	text, err := encodeRequest(r)
	if err != nil {
		return Answer{}, err
	}
	for dropped := error(nil); ; {
		a, err := attempt(ctx, addr, text, progress, due)
		// Full up, or it let go of us for others before it had read our request:
		// nobody has heard of it, and it may be made again.
		again := errors.Is(err, syscall.EAGAIN) || errors.Is(err, errDropped)
		switch {
		case dropped != nil && errors.Is(err, os.ErrDeadlineExceeded):
			return a, dropped
		case !again || time.Now().After(due) || !pauseFor(ctx, redial):
			return a, err
		case errors.Is(err, errDropped):
			dropped = err
		}
	}
}

// pauseFor is false when ctx was done first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt connects and asks.
func attempt(ctx context.Context, addr string, text []byte, progress func(string), due time.Time) (Answer, error) {
	conn, err := connect(addr)
	if err != nil {
		return Answer{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	me, _ := whoami() // without /proc nobody is believed but PID 1
	if err := me.trustServer(conn, addr); err != nil {
		return Answer{}, &Error{err, "ask the init from within its own container, as its own user or as root"}
	}
	_ = conn.SetDeadline(due)
	_, _ = conn.Write(text) // whoever has closed already may have said why
	a, err := hear(conn, progress)
	if errors.Is(err, errRefused) && me.stranger(conn) {
		err = &Error{err, "run it as the init's own user, or as root: docker exec -u 0"}
	}
	return a, err
}

// hear reads what the init says until it has answered.
func hear(conn *net.UnixConn, progress func(string)) (Answer, error) {
	for b, taken := bufio.NewReader(conn), false; ; taken = true {
		text, err := nextLine(b)
		if errors.Is(err, errHungUp) && !taken {
			err = errDropped
		}
		if err != nil {
			return Answer{}, err
		}
		r, err := decodeReply(text)
		switch {
		case err != nil:
			return Answer{}, err
		case r.Refused != "":
			return Answer{}, fmt.Errorf("%w: %s", errRefused, r.Refused)
		case r.Answer != nil:
			return Answer{Code: r.Answer.Code, Text: r.Answer.Text, Status: r.Answer.Status}, nil
		}
		_ = conn.SetDeadline(time.Time{}) // it lives, and has taken the request
		if r.Progress != "" && progress != nil {
			progress(r.Progress)
		}
	}
}

// nextLine reads a whole line.
func nextLine(b *bufio.Reader) (text []byte, err error) {
	for {
		part, err := b.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > maxReply:
			return nil, fmt.Errorf("an answer longer than %d bytes", maxReply)
		case err == nil:
			return text, nil
		case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
			return nil, errHungUp
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// explain names the address, and puts the usual causes into plain words.
func explain(ctx context.Context, addr string, err error) error {
	hint := ""
	var e *Error
	switch {
	case errors.As(err, &e):
		hint = e.Hint
	case errors.Is(ctx.Err(), context.Canceled):
		err = ctx.Err()
	case ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		err, hint = errLate, "the init may be stopped or frozen"
	case errors.Is(err, syscall.EAGAIN):
		err, hint = errFull, "the init may be stopped or frozen"
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist):
		hint = "no init listens there; it may have ended, or have another --control"
	}
	return &Error{fmt.Errorf("ask %q: %w", addr, err), hint}
}

// connect does not wait: EAGAIN tells of a queue that is full.
func connect(addr string) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: addr})
	var op *net.OpError
	if errors.As(err, &op) { // it repeats the address
		err = op.Err
	}
	return conn, err
}
