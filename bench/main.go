//go:build linux

// Bench measures what an init costs: time at both ends of a container's life,
// signals on their way, memory, wake-ups, and reaping. All subjects are measured
// in one run, in turns, so that the noise of the machine falls on all of them;
// the ratios mean something, the absolute times do not travel.
//
// It is started by bench/run, which builds what is measured.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A harness is one run over all subjects, and what came of it.
type harness struct {
	plan       plan
	subjects   []subject
	judged     string
	child      string
	dir        string
	null       *os.File
	logs       map[string]*os.File
	tables     []table
	scores     map[string]float64
	faults     map[string]int // how often
	faultOrder []string
	hangs      map[string]int
	cleanup    []func()
}

type measurement struct {
	name string
	run  func(*harness)
}

func measurements() []measurement {
	return []measurement{
		{"startup", measureStartup},
		{"signals", measureLatency},
		{"idle", measureIdle},
		{"probes", measureProbes},
		{"orphans", measureOrphans},
		{"full", measureFull},
		{"size", measureSize},
	}
}

func measurementNames() []string {
	var names []string
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	return names
}

func main() {
	met, err := bench(os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case !met:
		os.Exit(3)
	}
}

// bench returns false when -strict was given and a goal is not met.
func bench(args []string) (bool, error) {
	o, err := parseOptions(args)
	if err != nil {
		return false, err
	}
	// Everything that is started here is ended by kill(-1), which must not
	// reach anything else.
	if os.Getpid() != 1 {
		return false, errors.New("not PID 1 of a PID namespace of its own: start it with bench/run")
	}
	h := &harness{plan: o.plan, subjects: o.subjects, judged: o.judged, child: o.child,
		logs: map[string]*os.File{}, scores: map[string]float64{}, hangs: map[string]int{}, faults: map[string]int{}}
	defer h.clean()
	if err := h.prepare(); err != nil {
		return false, err
	}
	h.cleanOnSignal()
	if o.realTime {
		if err := realTime(); err != nil {
			return false, err
		}
	}
	for _, m := range measurements() {
		if !o.wants(m.name) {
			continue
		}
		began := time.Now()
		fmt.Fprintf(os.Stderr, "bench: %s ...", m.name)
		m.run(h)
		runtime.GC()
		fmt.Fprintf(os.Stderr, " %.0fs\n", time.Since(began).Seconds())
	}
	return h.report(o)
}

// prepare also quiets the harness itself: one thread does the measuring, and
// the collector runs between measurements only.
func (h *harness) prepare() error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	var err error
	if h.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	if h.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	h.cleanup = append(h.cleanup, func() { _ = os.RemoveAll(h.dir) })
	return os.Chmod(h.dir, 0o755)
}

// realTime puts the measuring thread, and so all that is started from it, ahead
// of whatever else the machine does. Subjects and workload inherit the policy:
// sched(7).
func realTime() error {
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	if err := unix.SchedSetAttr(0, attr, 0); err != nil {
		return fmt.Errorf("set SCHED_RR: %w", err)
	}
	return nil
}

// clean may be called more than once.
func (h *harness) clean() {
	sweep()
	for _, f := range h.cleanup {
		f()
	}
}

func (h *harness) cleanOnSignal() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	go func() {
		<-stop
		h.clean()
		os.Exit(130)
	}()
}

// log is where a subject and its workload write; it is kept for lastWords.
func (h *harness) log(s subject) (*os.File, error) {
	if file := h.logs[s.name]; file != nil {
		return file, nil
	}
	file, err := os.OpenFile(filepath.Join(h.dir, s.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		h.logs[s.name] = file
	}
	return file, err
}

// lastWords is what a subject said last that tells of a failure.
func (h *harness) lastWords(s subject) string {
	text, _ := os.ReadFile(filepath.Join(h.dir, s.name+".log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.Contains(line, "fatal error:") || strings.Contains(line, "panic:") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// fault names a subject that hung, died or would not start.
func (h *harness) fault(s subject, doing string, err error) {
	text := fmt.Sprintf("%s: %s: %v", s.name, doing, err)
	fmt.Fprintf(os.Stderr, "\nbench: %s\n", text)
	if h.faults[text]++; h.faults[text] == 1 {
		h.faultOrder = append(h.faultOrder, text)
	}
	if errors.Is(err, errHung) {
		h.hangs[s.name]++
	}
}

// givenUp tells whether a subject hung so often that a run of hundreds of rounds
// should not wait for it any more.
func (h *harness) givenUp(s subject) bool { return h.hangs[s.name] >= 3 }

func (h *harness) score(key string, value float64) { h.scores[key] = value }

// measureSize is the size of the file itself: ls -l.
func measureSize(h *harness) {
	t := table{title: "Size", head: []string{"", "bytes", "ratio"}}
	sizes := map[string]float64{}
	for _, s := range inits(h.subjects) {
		info, err := os.Stat(s.prefix[0])
		if err != nil {
			h.fault(s, "size", err)
			continue
		}
		sizes[s.name] = float64(info.Size())
	}
	for _, s := range inits(h.subjects) {
		t.add(s.name, number(sizes[s.name], 0), number(sizes[s.name]/sizes[reference], 2))
	}
	if size, found := sizes[h.judged]; found {
		h.score("File", size/1e6)
	}
	h.tables = append(h.tables, t)
}
