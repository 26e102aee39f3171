package probe

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// full has something in every family, and a name that needs every escape.
func full(now time.Time) *Snapshot {
	return &Snapshot{
		Service: "shop", Version: "1.2.3",
		States: []string{"starting", "ready", "draining", "exited"}, State: "draining",
		StoppedAt:    now.Add(-7250 * time.Millisecond),
		Stages:       []Timed{{"announce", 5}, {"phases", 0}},
		RunningStage: "phases", StageSince: now.Add(-2250 * time.Millisecond),
		Phases:         []PhaseResult{{"hand-over", 1.5, "ok"}, {"a\\b\"c\nd\xffé", 0.125, "overran"}},
		Steps:          []StepResult{{"migrate", "stopped", 0.75}, {"cache", "failed", 30}},
		Companions:     []Companion{{"proxy", 0, true}, {"shipper", 12, false}},
		KilledWorkload: 2,
		Signals:        map[string]uint64{"TERM": 1, "HUP": 12_345_678},
		Budget:         []Timed{{"prestop", 0}, {"announce", 5}, {"drain-timeout", 10}},
		Grace:          30,
		GraceKnown:     true,
	}
}

func counters() Counters {
	return Counters{Reaped: func() uint64 { return 1<<64 - 1 }, LogDropped: func() uint64 { return 3 }}
}

func text(s *Snapshot, c Counters, ready bool, now time.Time) string {
	p := page{snap: s, counters: c, ready: ready, now: now}
	p.write()
	return string(p.text)
}

func TestMetricsGolden(t *testing.T) {
	now := time.Now()
	done := full(now)
	done.Done, done.Shutdown, done.RunningStage = true, 9*time.Second, ""
	for name, got := range map[string]string{
		"full.prom":  text(full(now), counters(), false, now),
		"done.prom":  text(done, counters(), false, now),
		"empty.prom": text(new(Snapshot), Counters{}, true, now),
	} {
		got = strings.ReplaceAll(got, runtime.Version(), "GOVERSION")
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		t.Run(name, func(t *testing.T) { promtool(t, got) })
	}
}

// promtool must have nothing to say, neither an error nor a remark.
func promtool(t *testing.T, metrics string) {
	t.Helper()
	needPromtool(t)
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(metrics)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

func needPromtool(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err == nil {
		return
	}
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatal("promtool is missing")
	}
	t.Skip("promtool is missing")
}

// TestFamilies: the page of a full snapshot has each family, once, in order, with
// its labels and no other.
func TestFamilies(t *testing.T) {
	now := time.Now()
	page := text(full(now), counters(), true, now)
	var heads []string
	for _, f := range Families() {
		heads = append(heads, "# HELP "+f.Name+" "+f.Help, "# TYPE "+f.Name+" "+f.Type)
		pattern := "(?m)^" + f.Name
		for i, label := range f.Labels {
			pattern += map[bool]string{true: `\{`, false: ","}[i == 0] + label + `="[^"]*"`
		}
		if len(f.Labels) > 0 {
			pattern += `\}`
		}
		if !regexp.MustCompile(pattern + ` [0-9.]+$`).MatchString(page) {
			t.Errorf("%s: no sample like %s", f.Name, pattern)
		}
		for _, label := range f.Labels {
			if strings.Contains("owner token pod address", label) {
				t.Errorf("%s: label %s", f.Name, label)
			}
		}
	}
	got := regexp.MustCompile("(?m)^# .*$").FindAllString(page, -1)
	if strings.Join(got, "\n") != strings.Join(heads, "\n") {
		t.Errorf("heads: %q", got)
	}
}

// sample is the value behind the series, as text.
func sample(t *testing.T, body, series string) string {
	t.Helper()
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestScrape(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		r, body := h.ask(t, "GET", "/metrics")
		if ct := r.Header.Get("Content-Type"); ct != "text/plain; version=0.0.4; charset=utf-8" {
			t.Errorf("Content-Type %q", ct)
		}
		if r.ContentLength != int64(len(body)) || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("head %v", r.Header)
		}
		if head, empty := h.ask(t, "HEAD", "/metrics"); head.ContentLength != r.ContentLength || empty != "" {
			t.Errorf("HEAD %d %q", head.ContentLength, empty)
		}
		for status, want := range map[Status]string{Unavailable: "0", Ready: "1", Draining: "0"} {
			h.SetStatus(status)
			if _, body := h.ask(t, "GET", "/metrics"); sample(t, body, "drainit_ready") != want {
				t.Errorf("status %d: %s", status, body)
			}
		}
	})
}

// TestRising: the two figures of what is running rise from scrape to scrape,
// and the whole shutdown's stands when it is done.
func TestRising(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		shutdown, stage := `app_shutdown_duration_seconds{service="a"}`, `drainit_stage_duration_seconds{stage="gate"}`
		look := func(wantShutdown, wantStage string) {
			t.Helper()
			_, body := h.ask(t, "GET", "/metrics")
			if a, b := sample(t, body, shutdown), sample(t, body, stage); a != wantShutdown || b != wantStage {
				t.Errorf("%q %q, want %q %q", a, b, wantShutdown, wantStage)
			}
		}
		h.Publish(&Snapshot{Service: "a"})
		look("0", "")
		stopped := time.Now()
		time.Sleep(time.Second)
		h.Publish(&Snapshot{Service: "a", StoppedAt: stopped, RunningStage: "gate", StageSince: time.Now()})
		look("1", "0")
		time.Sleep(1500 * time.Millisecond)
		look("2.5", "1.5")
		h.Publish(&Snapshot{Service: "a", StoppedAt: stopped, Done: true, Shutdown: 3 * time.Second, Stages: []Timed{{"gate", 2}}})
		time.Sleep(time.Hour)
		look("3", "2")
		h.Publish(nil)
		synctest.Wait()
		if _, body := h.ask(t, "GET", "/metrics"); sample(t, body, `app_shutdown_duration_seconds{service=""}`) != "0" {
			t.Error(body)
		}
	})
}

func BenchmarkScrape(b *testing.B) {
	b.ReportAllocs()
	s := newServer(paths(), counters())
	s.Publish(full(time.Now()))
	p := new(page)
	for b.Loop() {
		p.fill(s)
	}
}
