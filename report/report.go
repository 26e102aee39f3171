// Package report makes the shutdown report, which is one line of JSON, and
// writes it to the file from which an orchestrator takes its termination
// message.
package report

import "sort"

// MaxLine is the most that a report may have, in bytes, its newline included:
// Kubernetes cuts a termination message there.
const MaxLine = 4096

// Report is what a shutdown was; its JSON is one line. What is empty or nil is
// left out of it, but for the reason, the exit status and the total.
type Report struct {
	Reason         string  // what began it: TERM, INT, drain, exited, failed ...
	Error          string  // what the init itself failed with
	EndedBy        string  // who ended the workload
	ExitStatus     int     // the init's own
	WorkloadStatus *int    // nil: the workload has not ended, or never ran
	TotalSeconds   float64 // from what began it to the end
	GraceSeconds   *float64
	GraceAssumed   bool    // GraceSeconds is the platform's default
	Stages         []Timed // that are over, in order
	Phases         []Hook  // in order
	Steps          []Hook  // lifecycle steps, in the order in which they were called
}

// Timed is how long something took.
type Timed struct {
	Name    string
	Seconds float64
}

// Hook is how one call of a hook ended.
type Hook struct {
	Name, Result string
	Seconds      float64
}

// ok is the result of a hook that did what it should.
const ok = "ok"

// Line returns the report as JSON with a newline behind it: at most MaxLine
// bytes, and valid whatever the strings hold. What does not fit is left out
// from the least important end: hooks that succeeded, the last ones first; then
// the longest strings are cut; then hooks that failed and stages, the last ones
// first. left_out tells how many hooks and stages are missing.
//
// The keys stand in the order in which a person wants to read them, since an
// orchestrator may cut the line further: Kubernetes gives the containers of a
// pod 12 KiB together.
func (r Report) Line() []byte {
	o := r.order()
	fits := func(n, text int) bool { return len(r.encode(o, n, text)) <= MaxLine }
	text := MaxLine - sort.Search(MaxLine-shortest, func(less int) bool {
		return fits(o.succeeded, MaxLine-less)
	})
	n := sort.Search(o.all, func(n int) bool { return fits(n, text) })
	return r.encode(o, n, text)
}

// shortest is what any string may have at the least, in bytes of the line. With
// three of them and no hook or stage the line is far below MaxLine.
const shortest = 64

// order says which hooks and stages are left out first: each has its place in
// the order, and of n that are left out those have the places below n.
type order struct {
	stages, phases, steps []int
	succeeded             int // so many are hooks that succeeded
	all                   int
}

func (r Report) order() order {
	o := order{
		stages: make([]int, len(r.Stages)),
		phases: make([]int, len(r.Phases)),
		steps:  make([]int, len(r.Steps)),
	}
	hooks := func(list []Hook, places []int, succeeded bool) {
		for i := len(list) - 1; i >= 0; i-- {
			if (list[i].Result == ok) == succeeded {
				places[i] = o.all
				o.all++
			}
		}
	}
	hooks(r.Steps, o.steps, true)
	hooks(r.Phases, o.phases, true)
	o.succeeded = o.all
	hooks(r.Steps, o.steps, false)
	hooks(r.Phases, o.phases, false)
	for i := len(r.Stages) - 1; i >= 0; i-- {
		o.stages[i] = o.all
		o.all++
	}
	return o
}

// encode writes the report without n of its hooks and stages, and with no
// string longer than text.
func (r Report) encode(o order, n, text int) []byte {
	l := line{text: text}
	l.open('{')
	l.key("reason").string(r.Reason)
	l.some("error", r.Error)
	l.some("ended_by", r.EndedBy)
	l.key("exit_status").int(r.ExitStatus)
	if r.WorkloadStatus != nil {
		l.key("workload_status").int(*r.WorkloadStatus)
	}
	l.key("total_seconds").seconds(r.TotalSeconds)
	if r.GraceSeconds != nil {
		l.key("grace_seconds").seconds(*r.GraceSeconds)
		if r.GraceAssumed {
			l.key("grace_assumed").bool(true)
		}
	}
	l.stages(r.Stages, o.stages, n)
	l.hooks("phases", r.Phases, o.phases, n)
	l.hooks("steps", r.Steps, o.steps, n)
	if n > 0 {
		l.key("left_out").int(n)
	}
	l.close('}')
	return append(l.b, '\n')
}

// stages writes those that are left as one object.
func (l *line) stages(list []Timed, places []int, n int) {
	if !left(places, n) {
		return
	}
	l.key("stages").open('{')
	for i, s := range list {
		if places[i] >= n && !l.full() {
			l.key(s.Name).seconds(s.Seconds)
		}
	}
	l.close('}')
}

// hooks writes those that are left as an array of objects.
func (l *line) hooks(key string, list []Hook, places []int, n int) {
	if !left(places, n) {
		return
	}
	l.key(key).open('[')
	for i, h := range list {
		if places[i] < n || l.full() {
			continue
		}
		l.item().open('{')
		l.key("name").string(h.Name)
		l.key("result").string(h.Result)
		l.key("seconds").seconds(h.Seconds)
		l.close('}')
	}
	l.close(']')
}

// left tells whether one is.
func left(places []int, n int) bool {
	for _, p := range places {
		if p >= n {
			return true
		}
	}
	return false
}
