package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func pointer[T any](v T) *T { return &v }

func TestLine(t *testing.T) {
	full := Report{
		Reason: "TERM", EndedBy: "stop signal", ExitStatus: 143, WorkloadStatus: pointer(0),
		TotalSeconds: 7.6123, GraceSeconds: pointer(30.0), GraceAssumed: true,
		Stages: []Timed{{"phases", 0.1 + 0.2}, {"announce", 5}, {"gate", 1.9996}},
		Phases: []Hook{{"hand-over", "ok", 0.25}, {"leave", "failed", 0}},
		Steps:  []Hook{{"migrate", "ok", 1e-9}},
	}
	for want, r := range map[string]Report{
		`{"reason":"TERM","ended_by":"stop signal","exit_status":143,"workload_status":0,"total_seconds":7.612,` +
			`"grace_seconds":30,"grace_assumed":true,"stages":{"phases":0.3,"announce":5,"gate":2},` +
			`"phases":[{"name":"hand-over","result":"ok","seconds":0.25},{"name":"leave","result":"failed","seconds":0}],` +
			`"steps":[{"name":"migrate","result":"ok","seconds":0}]}`: full,
		`{"reason":"failed","error":"start \"app\": no such file","ended_by":"never started","exit_status":127,"total_seconds":0}`: {
			Reason: "failed", Error: `start "app": no such file`, EndedBy: "never started", ExitStatus: 127,
			GraceAssumed: true, // of nothing
		},
		`{"reason":"","exit_status":0,"total_seconds":0}`: {},
		`{"reason":"a\\\n\t\u0000\u001b[1m\u007f\u009bé🙂��","exit_status":-1,"total_seconds":0}`: {
			Reason: "a\\\n\t\x00\x1b[1m\x7f\u009bé🙂\xff\xc3", ExitStatus: -1,
		},
	} {
		if got := string(r.Line()); got != want+"\n" {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}

// What is no time is none, and no number is longer than it has to be.
func TestSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", -1: "0", math.NaN(): "0", math.Inf(-1): "0",
		0.0004: "0", 0.0005: "0.001", 0.1 + 0.2: "0.3", 1: "1", 59.9999: "60", 123456.789: "123456.789",
		math.Inf(1): "3162240000", 1e300: "3162240000", math.SmallestNonzeroFloat64: "0",
	} {
		var l line
		if l.seconds(s); string(l.b) != want {
			t.Errorf("%g: %s, want %s", s, l.b, want)
		}
	}
}

// A string is as long as it may be at the most, quotes apart, and no shorter
// than a character and the mark of the cut make it.
func TestString(t *testing.T) {
	for _, s := range []string{"abcdefghijklmnop", "ääääääääää", "\x00\x01\x02", "🙂🙂🙂🙂", `"""""""""`} {
		for text := shortest; text > 0; text-- {
			l := line{text: max(text, len(cut))}
			l.string(s)
			if n := len(l.b) - 2; n > l.text || len(s) > text && n < l.text-5-len(cut) || !json.Valid(l.b) {
				t.Errorf("%q, %d at the most: %s", s, l.text, l.b)
			}
		}
	}
}

// read is a line as a reader of it sees it.
type read struct {
	Reason         string             `json:"reason"`
	Error          string             `json:"error"`
	EndedBy        string             `json:"ended_by"`
	ExitStatus     int                `json:"exit_status"`
	WorkloadStatus *int               `json:"workload_status"`
	TotalSeconds   float64            `json:"total_seconds"`
	GraceSeconds   *float64           `json:"grace_seconds"`
	GraceAssumed   bool               `json:"grace_assumed"`
	Stages         map[string]float64 `json:"stages"`
	Phases, Steps  []Hook
	LeftOut        int `json:"left_out"`
}

// parse holds a line against what is promised of every line.
func parse(t *testing.T, line []byte) read {
	t.Helper()
	if len(line) > MaxLine || !utf8.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
		t.Fatalf("%d bytes, or not one line of UTF-8: %q", len(line), line)
	}
	var got read
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return got
}

// hooks returns n of them, each third of which failed.
func hooks(n int, name string) []Hook {
	var all []Hook
	for i := range n {
		h := Hook{fmt.Sprint(name, i), ok, 1}
		if i%3 == 2 {
			h.Result = "failed"
		}
		all = append(all, h)
	}
	return all
}

func count(list []Hook, result string) (n int) {
	for _, h := range list {
		if h.Result == result {
			n++
		}
	}
	return n
}

// Hooks that succeeded go first, and no more of them than has to be.
func TestLineLeavesOutWhatSucceeded(t *testing.T) {
	r := Report{Reason: "TERM", Error: strings.Repeat("e", 300), Stages: []Timed{{"gate", 1}}, Phases: hooks(90, "phase"), Steps: hooks(6, "step")}
	line := r.Line()
	got := parse(t, line)
	if got.Error != r.Error || len(got.Stages) != 1 {
		t.Errorf("something else was cut: %s", line)
	}
	if n := count(got.Phases, "failed"); n != 30 || count(got.Steps, "failed") != 2 {
		t.Errorf("%d failed phases are left: %s", n, line)
	}
	if count(got.Steps, ok) != 0 {
		t.Errorf("steps are left where phases are not: %s", line)
	}
	succeeded := count(got.Phases, ok)
	if succeeded == 0 || succeeded == 60 {
		t.Fatalf("%d phases that succeeded are left", succeeded)
	}
	if got.Phases[0].Name != "phase0" || got.LeftOut != 96-len(got.Phases)-len(got.Steps) {
		t.Errorf("left_out %d, %d phases: %s", got.LeftOut, len(got.Phases), line)
	}
	if len(line) < MaxLine-60 {
		t.Errorf("only %d bytes", len(line))
	}
}

// The longest strings are cut next, at the end of a character.
func TestLineCutsTheLongest(t *testing.T) {
	for _, long := range []string{strings.Repeat("e", 5000), strings.Repeat("ä€🙂", 700), strings.Repeat("\x00", 3000), strings.Repeat("\xff", 9000)} {
		r := Report{Reason: "failed", Error: long, Phases: append(hooks(3, "phase"), Hook{strings.Repeat("n", 100), "failed", 1})}
		line := r.Line()
		got := parse(t, line)
		kept, is := strings.CutSuffix(got.Error, cut)
		if !is || !strings.HasPrefix(strings.ToValidUTF8(long, ""), strings.ReplaceAll(kept, "\ufffd", "")) || len(line) < MaxLine-80 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
		if len(got.Phases[len(got.Phases)-1].Name) != 100 {
			t.Errorf("a short name was cut as well: %s", line)
		}
	}
}

// At last hooks that failed go, then stages, the last ones first.
func TestLineKeepsTheFirst(t *testing.T) {
	r := Report{Reason: "TERM", Error: strings.Repeat("e", 5000), Phases: hooks(3000, "phase"), Stages: []Timed{{"announce", 1}, {"gate", 2}}}
	got := parse(t, r.Line())
	if len(got.Stages) != 2 || len(got.Phases) == 0 || count(got.Phases, ok) > 0 || got.Phases[0].Name != "phase2" {
		t.Errorf("%+v", got)
	}
	if got.LeftOut != 3000-len(got.Phases) {
		t.Errorf("left_out %d of which %d are left", got.LeftOut, len(got.Phases))
	}
	r = Report{Reason: "TERM"}
	for i := range 1000 {
		r.Stages = append(r.Stages, Timed{fmt.Sprint("stage", i), 1})
	}
	got = parse(t, r.Line())
	if _, first := got.Stages["stage0"]; !first || got.LeftOut != 1000-len(got.Stages) {
		t.Errorf("%+v", got)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("TERM", "", "stop signal", "hand-over", "ok", "gate", 7.5, 30.0, 3, 2, 0)
	f.Add("\xff\x00\"\\", strings.Repeat("\x1b", 900), "\u2028<>", strings.Repeat("€", 300), "failed", "\n", math.NaN(), -1.0, 200, 90, 137)
	f.Add("", "", "", "", "", "", 0.1+0.2, 1e300, 0, 0, -1)
	f.Fuzz(func(t *testing.T, reason, err, by, name, result, stage string, a, b float64, phases, stages, status int) {
		r := Report{Reason: reason, Error: err, EndedBy: by, ExitStatus: status, TotalSeconds: a, GraceSeconds: &b, GraceAssumed: status%2 == 0}
		for i := range phases % 300 {
			r.Phases = append(r.Phases, Hook{fmt.Sprint(name, i), result, a})
			r.Steps = append(r.Steps, Hook{name, ok, b})
		}
		for i := range stages % 100 {
			r.Stages = append(r.Stages, Timed{fmt.Sprint(i, stage), b})
		}
		got := parse(t, r.Line())
		if n := len(got.Stages) + len(got.Phases) + len(got.Steps) + got.LeftOut; n != len(r.Stages)+len(r.Phases)+len(r.Steps) {
			t.Errorf("%d hooks and stages of %d: %s", n, len(r.Stages)+len(r.Phases)+len(r.Steps), r.Line())
		}
		if got.ExitStatus != status || !(got.TotalSeconds >= 0) {
			t.Errorf("%+v", got)
		}
	})
}
