package spread

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const s, ms = time.Second, time.Millisecond

// Item i of n starts at i*D/n, and slow runs shift nobody.
func TestEven(t *testing.T) {
	for name, took := range map[string]time.Duration{"quick": 0, "slow": 25 * s} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fake) {
				f.took = func(int) time.Duration { return took }
				f.want(f.options("a\nb\nc\nd\n", 10*s), 0, "", 7500*ms+took)
				equal(t, "starts", f.calls, []call{{0, "kick a"}, {2500 * ms, "kick b"}, {5 * s, "kick c"}, {7500 * ms, "kick d"}})
			})
		})
	}
}

// Nothing to do takes no time, whatever the window.
func TestNoItems(t *testing.T) {
	for _, input := range []string{"", "\n\r\n\n", "\r"} {
		bubble(t, func(f *fake) {
			f.want(f.options(input, time.Hour), 0, "", 0)
			if len(f.calls) > 0 {
				t.Error(f.calls)
			}
		})
	}
}

// The first run shows that the command can be run; the others are at once.
func TestNoTime(t *testing.T) {
	bubble(t, func(f *fake) {
		f.want(f.options(lines(100), 0), 0, "", 0)
		if len(f.calls) != 100 || f.calls[99].at != 0 {
			t.Error(f.starts())
		}
	})
}

// Not more than Parallel at a time; what had to wait starts as soon as one has
// ended, and those that are due later keep their own time.
func TestParallel(t *testing.T) {
	bubble(t, func(f *fake) {
		f.took = func(item int) time.Duration {
			if item == 0 {
				return 34 * s
			}
			return time.Hour
		}
		o := f.options(lines(36), 36*s)
		go func() { time.Sleep(35*s + 500*ms); f.sig <- syscall.SIGINT }()
		f.told = 10 * ms
		f.want(o, 130, "stopped: 33 of 36 runs were started", 35*s+510*ms)
		if f.most != Parallel {
			t.Errorf("%d at a time", f.most)
		}
		starts := f.starts()
		if starts[31] != 31*s || starts[32] != 34*s {
			t.Errorf("%v", starts[31:])
		}
	})
	bubble(t, func(f *fake) {
		f.took = func(item int) time.Duration { return 40 * s }
		f.want(f.options(lines(64), 64*s), 0, "", 111*s)
		starts := f.starts()
		for i, want := range map[int]time.Duration{31: 31 * s, 32: 40 * s, 39: 47 * s, 63: 71 * s} {
			if starts[i] != want {
				t.Errorf("run %d starts at %v, want %v", i, starts[i], want)
			}
		}
	})
	bubble(t, func(f *fake) { // the first ones are slow
		f.took = func(item int) time.Duration { return max(35*s-time.Duration(item)*s, 0) }
		f.want(f.options(lines(50), 50*s), 0, "", 49*s)
		starts := f.starts()
		if starts[31] != 31*s || starts[32] != 35*s || starts[34] != 35*s || starts[36] != 36*s || starts[49] != 49*s {
			t.Errorf("%v", starts[30:])
		}
	})
}

func TestJitter(t *testing.T) {
	bubble(t, func(f *fake) {
		o := f.options(lines(4), 8*s)
		random := []float64{0.5, 0, 0.25, 0.75}
		o.Jitter = func() float64 { r := random[0]; random = random[1:]; return r }
		f.want(o, 0, "", 7500*ms)
		equal(t, "starts", f.starts(), []time.Duration{1 * s, 2 * s, 4500 * ms, 7500 * ms})
	})
}

// What reading takes is on top of the time, or part of it.
func TestSlowInput(t *testing.T) {
	for _, c := range []struct {
		reading bool
		input   time.Duration
		want    []time.Duration
	}{
		{false, 4 * s, []time.Duration{4 * s, 9 * s}},
		{true, 4 * s, []time.Duration{4 * s, 7 * s}},
		{true, 12 * s, []time.Duration{12 * s, 12 * s}},
	} {
		bubble(t, func(f *fake) {
			o := f.options("", 10*s)
			o.In, o.Reading = &slow{c.input, strings.NewReader("a\nb")}, c.reading
			f.want(o, 0, "", c.want[1])
			equal(t, "starts", f.starts(), c.want)
		})
	}
}

func TestFailures(t *testing.T) {
	bubble(t, func(f *fake) {
		f.ends = func(item int) Change {
			switch item {
			case 1:
				return Change{Err: errTest}
			case 2: // it can be run, so this one is about the item
				return Change{Status: 126, Err: io.ErrClosedPipe}
			}
			return Change{}
		}
		f.want(f.options("a\nb\nc\nd\n", 4*s), 1, `2 of 4 runs failed, the first with "b": exit status 3`, 3*s)
		if len(f.calls) != 4 {
			t.Error(f.calls)
		}
	})
}

// What can't be an argument is a failed run of its own.
func TestBadItems(t *testing.T) {
	bubble(t, func(f *fake) {
		long := strings.Repeat("y", maxItem+1)
		f.want(f.options("a\x00b\nc\n"+long+"\nd\n", 4*s), 1, `2 of 4 runs failed, the first with "a\x00b": a NUL byte can't be part of an argument`, 3*s)
		equal(t, "runs", f.calls, []call{{1 * s, "kick c"}, {3 * s, "kick d"}})
	})
	bubble(t, func(f *fake) {
		long := strings.Repeat("y", maxItem+1)
		f.want(f.options(long, 4*s), 1, `1 of 1 runs failed, the first with "`+long[:shown]+`": longer than 1 MiB`, 0)
	})
	bubble(t, func(f *fake) {
		f.ends = func(int) Change { return Change{Err: errTest} }
		f.want(f.options(strings.Repeat("y", maxItem), 4*s), 1, `1 of 1 runs failed, the first with "`+strings.Repeat("y", shown)+`"...: exit status 3`, 0)
	})
}

// A command that can't be run is tried once.
func TestRefused(t *testing.T) {
	for _, over := range []time.Duration{0, 10 * s} {
		bubble(t, func(f *fake) {
			f.ends = func(int) Change { return Change{Status: 127, Err: errTest} }
			f.want(f.options(lines(100), over), 127, "exit status 3", 0)
			if len(f.calls) != 1 {
				t.Error(f.calls)
			}
		})
	}
	bubble(t, func(f *fake) { // no process is to be had for the first: that is not about the command
		f.ends = func(item int) Change {
			if item == 0 {
				return Change{Err: errTest}
			}
			return Change{}
		}
		f.want(f.options(lines(2), 10*s), 1, `1 of 2 runs failed, the first with "x": exit status 3`, 5*s)
	})
}

// A signal: no more starts, TERM to the rest, which has a second.
func TestStop(t *testing.T) {
	for _, c := range []struct{ told, took time.Duration }{
		{100 * ms, 4100 * ms}, // it hears
		{0, 5 * s},            // it does not
		{3 * s, 5 * s},
	} {
		bubble(t, func(f *fake) {
			f.took = func(int) time.Duration { return 20 * s }
			f.told = c.told
			go func() {
				time.Sleep(4 * s)
				f.sig <- syscall.SIGTERM
				f.sig <- syscall.SIGINT
			}()
			f.want(f.options(lines(10), 15*s), 143, "stopped: 3 of 10 runs were started", c.took)
			equal(t, "told", f.tells, []syscall.Signal{syscall.SIGTERM})
			synctest.Wait()
			time.Sleep(time.Minute) // the runs that did not hear
		})
	}
	bubble(t, func(f *fake) { // nothing runs
		go func() { time.Sleep(2 * s); f.sig <- syscall.SIGTERM }()
		f.want(f.options(lines(10), 15*s), 143, "stopped: 2 of 10 runs were started", 2*s)
	})
}

// A signal while the input goes on for ever.
func TestStopWhileReading(t *testing.T) {
	bubble(t, func(f *fake) {
		o := f.options("", s)
		r, w := io.Pipe()
		o.In = r
		go func() { fmt.Fprintln(w, "a"); time.Sleep(3 * s); f.sig <- syscall.SIGTERM }()
		f.want(o, 143, "stopped while reading the items", 3*s)
		w.Close()
		if len(f.calls) > 0 {
			t.Error(f.calls)
		}
	})
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

type faulty struct{}

func (faulty) Read([]byte) (int, error) { panic("fault") }

// What is not read to its end is not worked on.
func TestUnreadable(t *testing.T) {
	for in, text := range map[io.Reader]string{broken{}: "read the items: io: read/write on closed pipe", faulty{}: "read the items: internal fault"} {
		bubble(t, func(f *fake) {
			o := f.options("", s)
			o.In = io.MultiReader(strings.NewReader("a\nb\n"), in)
			f.want(o, 125, text, 0)
			if len(f.calls) > 0 {
				t.Error(f.calls)
			}
		})
	}
}

// Slots are even, in order, and end with the time, however many there are.
func TestSlot(t *testing.T) {
	for _, over := range []time.Duration{0, 1, 7, s, 10 * s, time.Hour, 366 * 24 * time.Hour} {
		for _, n := range []int{1, 2, 3, 7, 1000, 100_003, 50_000_000} {
			last := time.Duration(-1)
			for _, i := range []int{0, 1, n / 3, n/3 + 1, n / 2, n - 2, n - 1} {
				if i < 0 || i >= n {
					continue
				}
				at, late := slot(i, n, over, 0), slot(i, n, over, 0.999999)
				exact := float64(over) * float64(i) / float64(n)
				if d := float64(at) - exact; d > 64 || d < -64 { // what a float64 knows of a year
					t.Errorf("%d of %d in %v: %v, want %v", i, n, over, at, exact)
				}
				if at < 0 || late < at || late > over || i+1 < n && late > slot(i+1, n, over, 0) {
					t.Errorf("%d of %d in %v: from %v to %v", i, n, over, at, late)
				}
				if i > 0 && i < n/3 && at < last {
					t.Errorf("%d of %d in %v: %v, behind %v", i, n, over, at, last)
				}
				last = at
			}
		}
	}
}

func TestRead(t *testing.T) {
	long := strings.Repeat("z", 3*64<<10+5)
	for input, want := range map[string][]string{
		"a\nb\n": {"a", "b"}, "a\nb": {"a", "b"}, "a\r\nb\r": {"a", "b"}, "\n\r\na\n\n": {"a"},
		" a b \n\t\n": {" a b ", "\t"}, "a\rb\n": {"a\rb"}, "a\r\r\n": {"a\r"}, "-a\n": {"-a"},
		long + "\n" + long: {long, long}, "\xff\n": {"\xff"},
	} {
		all, err := read(strings.NewReader(input))
		var got []string
		for _, it := range all {
			if got = append(got, it.text); it.bad != nil {
				t.Error(it.bad)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%.20q: %.40q, %v", input, got, err)
		}
	}
}

// A line without an end takes no more memory than an item may have.
func TestReadEndless(t *testing.T) {
	all, err := read(io.LimitReader(zeros{}, 100<<20))
	if err != nil || len(all) != 1 || all[0].bad != errLong || len(all[0].text) != shown {
		t.Errorf("%d items, %v", len(all), err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestArgv(t *testing.T) {
	for _, c := range []struct{ command, want []string }{
		{[]string{"kick"}, []string{"kick", "it em"}},
		{[]string{"kick", "-f"}, []string{"kick", "-f", "it em"}},
		{[]string{"kick", "{}", "now"}, []string{"kick", "it em", "now"}},
		{[]string{"kick", "--id={}", "{}{}"}, []string{"kick", "--id=it em", "it emit em"}},
		{[]string{"{}"}, []string{"{}", "it em"}},
		{[]string{"{}", "{}"}, []string{"{}", "it em"}},
		{[]string{"kick", ""}, []string{"kick", "", "it em"}},
	} {
		before := slices.Clone(c.command)
		equal(t, fmt.Sprint(c.command), argv(c.command, "it em"), c.want)
		equal(t, "the command itself", c.command, before)
	}
	equal(t, "an item like the place for one", argv([]string{"kick", "{}"}, "{}"), []string{"kick", "{}"})
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\r\n\x00\n", "a\r\r\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		all, err := read(strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range all {
			if it.text == "" || strings.Contains(it.text, "\n") || (it.bad == nil) == strings.Contains(it.text, "\x00") {
				t.Errorf("%q, %v of %q", it.text, it.bad, input)
			}
		}
		if n := strings.Count(input, "\n") + 1; len(all) > n {
			t.Errorf("%d items of %q", len(all), input)
		}
	})
}
