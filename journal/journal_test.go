package journal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds what must happen at once; a test waits for it only to fail.
const patience = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pipe returns a pipe's ends as raw descriptors, so that nothing but the flags
// given decides whether they block.
func pipe(t *testing.T, flags int) (r, w int) {
	t.Helper()
	var p [2]int
	must(t, unix.Pipe2(p[:], flags|unix.O_CLOEXEC))
	t.Cleanup(func() { unix.Close(p[1]) }) // reading ends belong to lines, or to the test
	return p[0], p[1]
}

// hangUp ends what w's reader can read. The number stays taken until the test's
// end, when it is closed: closing it twice could hit somebody else's.
func hangUp(t *testing.T, w int) {
	t.Helper()
	null, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(null)
	must(t, unix.Dup3(null, w, unix.O_CLOEXEC))
}

// fill stuffs a pipe until it takes no byte more, and leaves its flags as they were.
func fill(t *testing.T, w int) {
	t.Helper()
	flags, err := unix.FcntlInt(uintptr(w), unix.F_GETFL, 0)
	must(t, err)
	must(t, unix.SetNonblock(w, true))
	for _, n := range []int{4096, 1} {
		for err = nil; err == nil; {
			_, err = unix.Write(w, []byte(strings.Repeat("x", n)))
		}
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	_, err = unix.FcntlInt(uintptr(w), unix.F_SETFL, flags)
	must(t, err)
}

// lines reads r's lines to its end; what fill left stands before the first.
func lines(r int) *bufio.Scanner {
	s := bufio.NewScanner(os.NewFile(uintptr(r), "reader"))
	s.Buffer(nil, 1<<20)
	return s
}

// next returns the next line without its stuffing.
func next(t *testing.T, s *bufio.Scanner) string {
	t.Helper()
	if !s.Scan() {
		t.Fatalf("no more lines: %v", s.Err())
	}
	return strings.TrimLeft(s.Text(), "x")
}

// within fails when f takes longer than patience.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s hangs", what)
	}
}

// ended waits for the writer, which Close has told to stop.
func ended(t *testing.T, j *Journal) {
	t.Helper()
	select {
	case <-j.done:
	case <-time.After(patience):
		t.Fatal("the writer goes on")
	}
}

func TestOrder(t *testing.T) {
	r, w := pipe(t, 0)
	j := Open(Options{Format: "json", FD: w})
	got := make(chan []string)
	go func() {
		var all []string
		for s := lines(r); s.Scan(); {
			all = append(all, s.Text())
		}
		got <- all
	}()
	const producers, each = 4, 1000
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			log := j.Logger().With("p", p)
			for i := range each {
				log.Info("line", "i", i)
				if i%100 == 0 {
					j.Flush(patience)
				}
			}
		})
	}
	wg.Wait()
	j.Close(patience)
	ended(t, j)
	hangUp(t, w)
	all := <-got
	if len(all) != producers*each || j.Dropped() != 0 {
		t.Fatalf("%d lines, %d dropped", len(all), j.Dropped())
	}
	for p := range producers {
		i := 0
		for _, line := range all {
			if strings.Contains(line, fmt.Sprintf(`"p":%d,`, p)) {
				if want := fmt.Sprintf(`"i":%d}`, i); !strings.HasSuffix(line, want) {
					t.Fatalf("%s, want %s", line, want)
				}
				i++
			}
		}
	}
}

// Nobody reads, then somebody does. Blocking or not must make no difference.
func TestNobodyReads(t *testing.T) {
	for name, flags := range map[string]int{"blocking": 0, "nonblocking": unix.O_NONBLOCK} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe(t, flags)
			fill(t, w)
			j := Open(Options{Format: "text", FD: w})
			const sent = 3000
			within(t, "logging", func() {
				for i := range sent {
					j.Logger().Info("line", "i", i)
				}
			})
			const limit = 30 * time.Millisecond
			begin := time.Now()
			within(t, "Flush", func() { j.Flush(limit) })
			if took := time.Since(begin); took < limit {
				t.Errorf("Flush returned after %v with the sink full", took)
			}
			dropped := j.Dropped()
			if dropped < sent-capacity-1 || dropped > sent-capacity {
				t.Errorf("%d dropped of %d", dropped, sent)
			}
			if is, err := unix.FcntlInt(uintptr(w), unix.F_GETFL, 0); err != nil || is&unix.O_NONBLOCK != flags {
				t.Errorf("the shared description's flags were changed: %#x, %v", is, err)
			}
			s := lines(r)
			for i := range capacity { // the one more comes whenever the writer took the first
				if line := next(t, s); !strings.HasSuffix(line, fmt.Sprintf(" i=%d", i)) {
					t.Fatalf("line %q, want i=%d", line, i)
				}
			}
			if dropped == sent-capacity-1 {
				next(t, s)
			}
			if line, want := next(t, s), fmt.Sprintf(`level=WARN msg="log lines dropped" count=%d`, dropped); !strings.HasSuffix(line, want) {
				t.Errorf("line %q, want %s", line, want)
			}
			for _, msg := range []string{"after", "end"} { // and the loss is told once
				j.Logger().Info(msg)
				j.Flush(patience)
				if line := next(t, s); !strings.HasSuffix(line, "msg="+msg) {
					t.Errorf("line %q, want %s", line, msg)
				}
			}
			if j.Dropped() != dropped {
				t.Errorf("%d dropped, before %d", j.Dropped(), dropped)
			}
			j.Close(patience)
			ended(t, j)
		})
	}
}

// number is a format whose line is a number close to the largest that an eventfd
// holds.
type number struct {
	slog.Handler
	w io.Writer
}

func (n number) Handle(context.Context, slog.Record) error {
	_, err := n.w.Write([]byte("\xf0\xff\xff\xff\xff\xff\xff\xf0"))
	return err
}

// The writer in a write that the kernel does not end: an eventfd calls itself
// writable and blocks where the number does not fit any more (eventfd(2)). The
// second line is the one that does not.
func TestWriterStuckInWrite(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	j := Open(Options{Format: "text", FD: fd})
	for range 10 {
		j.put(&item{format: number{w: j.out}})
	}
	within(t, "Flush", func() { j.Flush(10 * time.Millisecond) })
	within(t, "many Flushes", func() {
		var wg sync.WaitGroup
		for range 4 * flushes {
			wg.Go(func() { j.Flush(10 * time.Millisecond) })
		}
		wg.Wait()
	})
	if n := len(j.queue); n > 8+flushes {
		t.Errorf("%d places of the queue taken: markers crowd it", n)
	}
	within(t, "Close", func() { j.Close(10 * time.Millisecond) })
	select {
	case <-j.done:
		t.Fatal("the writer was not stuck, so nothing was tested")
	default:
	}
	if d := j.Dropped(); d != 8 {
		t.Errorf("%d dropped, not the 8 that the queue held at Close", d)
	}
	_, err = unix.Read(fd, make([]byte, 8)) // lets the writer go
	must(t, err)
	ended(t, j)
}

func TestHookLinesCrowdNobodyOut(t *testing.T) {
	for name, c := range map[string]struct {
		size, most int
	}{
		"many":  {10, hookCapacity},
		"large": {16 << 10, hookBytes / (16 << 10)},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := pipe(t, 0)
			fill(t, w)
			j := Open(Options{Format: "json", FD: w})
			const sent, own = 2000, capacity/2 - 1
			for range sent {
				j.HookLine([]slog.Attr{slog.String("hook", "chatty")}, strings.Repeat("y", c.size))
			}
			atMost := j.Dropped()
			for i := range own {
				j.Logger().Info("own", "i", i)
			}
			if j.Dropped() != atMost {
				t.Errorf("%d of the init's own records were dropped", j.Dropped()-atMost)
			}
			hooks := sent - int(atMost)
			if hooks < c.most-1 || hooks > c.most+1 {
				t.Errorf("%d hook lines queued, want %d", hooks, c.most)
			}
			s := lines(r)
			for i := range hooks + own + 1 {
				line := next(t, s)
				want := map[bool]string{true: `"msg":"hook output","hook":"chatty","line":"yyy`, false: `"msg":"own"`}[i < hooks]
				if i == hooks+own {
					want = `"msg":"log lines dropped"`
				}
				if !strings.Contains(line, want) {
					t.Fatalf("line %d is %.200q, want %s", i, line, want)
				}
			}
			j.Flush(patience)
			if j.lines.Load() != 0 || j.bytes.Load() != 0 { // the share came back
				t.Errorf("%d lines, %d bytes still counted", j.lines.Load(), j.bytes.Load())
			}
			j.Close(patience)
		})
	}
}
