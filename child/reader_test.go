package child

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// fakeProc answers a number's double at once, but for those in hangs, which it
// answers when they are closed. It tells what it was asked.
func fakeProc(hangs map[int]chan struct{}, asked chan<- int) func() func(int) int {
	return func() func(int) int {
		return func(n int) int {
			asked <- n
			if c := hangs[n]; c != nil {
				<-c
			}
			return 2 * n
		}
	}
}

func upTo(n int) (all []int) {
	for i := 1; i <= n; i++ {
		all = append(all, i)
	}
	return all
}

// TestReaderThatHangs: the others are read all the same, and what hangs is not
// asked again before it has answered.
func TestReaderThatHangs(t *testing.T) {
	t.Parallel()
	const all = 3 * atOnce
	hang := make(chan struct{})
	asked := make(chan int, 10*all)
	proc := fakeProc(map[int]chan struct{}{5: hang}, asked)
	r := newReader[int, int]()
	var got []int
	take := func(n, double int) {
		if double != 2*n {
			t.Errorf("%d for %d", double, n)
		}
		got = append(got, n)
	}
	want := slices.DeleteFunc(upTo(all), func(n int) bool { return n == 5 })
	for range 2 {
		if got = nil; r.each(upTo(all), zero, proc, take) > 1 || !slices.Equal(got, want) || !r.stuck[5] || len(r.stuck) != 1 {
			t.Fatalf("%v, %v stuck", got, r.stuck)
		}
	}
	if n := len(asked); n != 2*all-1 {
		t.Errorf("%d were asked for", n)
	}
	close(hang)
	eventually(t, "the one that hung", func() bool {
		got = nil
		return r.each(upTo(all), zero, proc, take) == 0 && slices.Equal(got, upTo(all)) && len(r.stuck) == 0
	})
}

// TestReadersThatHang are but a few, and cost a bounded time once.
func TestReadersThatHang(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	hangs := map[int]chan struct{}{}
	for n := 1; n <= 100; n += 2 {
		hangs[n] = hang
	}
	asked := make(chan int, 1000)
	proc := fakeProc(hangs, asked)
	r := newReader[int, int]()
	n := 0
	began := time.Now()
	for range 10 {
		if r.each(upTo(100), zero, proc, func(int, int) { n++ }) == 0 {
			t.Error("all have been read")
		}
	}
	if took := time.Since(began); took > (maxStuck+1)*readPatience+time.Second {
		t.Errorf("took %v", took)
	}
	if len(r.stuck) != maxStuck || n != maxStuck-1 || len(asked) != 2*maxStuck-1 {
		t.Errorf("%d stuck, %d read, %d asked", len(r.stuck), n, len(asked))
	}
	close(hang) // and then all is well
	eventually(t, "all answers", func() bool {
		n = 0
		return r.each(upTo(100), zero, proc, func(int, int) { n++ }) == 0 && n == 100 && len(r.stuck) == 0
	})
}

// TestReaderInTime: what has not been read by then is missing, and is not stuck
// for good.
func TestReaderInTime(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	proc := fakeProc(map[int]chan struct{}{2: hang}, make(chan int, 1000))
	r := newReader[int, int]()
	n := 0
	began := time.Now()
	if r.each(upTo(3), began.Add(readPatience/10), proc, func(int, int) { n++ }) != 2 || n != 1 {
		t.Errorf("%d read", n)
	}
	if took := time.Since(began); took > readPatience/2 {
		t.Errorf("took %v", took)
	}
	if r.each(upTo(3), began, proc, func(int, int) { n++ }) != 2 || n != 1 {
		t.Errorf("%d read when the time is over", n)
	}
	close(hang)
	eventually(t, "all answers", func() bool { n = 0; return r.each(upTo(3), zero, proc, func(int, int) { n++ }) == 0 && n == 3 })
}

// TestReaderThatFaults costs the one process.
func TestReaderThatFaults(t *testing.T) {
	t.Parallel()
	proc := func() func(int) int {
		return func(n int) int {
			if n == 2 {
				panic("boom")
			}
			return n
		}
	}
	r := newReader[int, int]()
	var got []int
	if r.each(upTo(4), zero, proc, func(n, _ int) { got = append(got, n) }) != 1 || !slices.Equal(got, []int{1, 3, 4}) {
		t.Errorf("%v", got)
	}
}

// TestUnseen: what the kernel tells of a process that hangs. One that is not our
// child is nobody's, unless its group or session says so.
func TestUnseen(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if p, alive := unseen(pid); !alive || p.parent != os.Getpid() || p.session != pid || p.group != pid || p.start != 0 {
		t.Errorf("a child: %+v", p)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if p, alive := unseen(pid); alive {
		t.Errorf("one that is gone: %+v", p)
	}
	if p, alive := unseen(os.Getppid()); !alive || p.parent != unknownParent {
		t.Errorf("a stranger: %+v", p)
	}
}
