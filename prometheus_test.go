package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// needPrometheus skips where Prometheus is not installed. setpriv ends it with
// the tests, whatever ends these.
func needPrometheus(t *testing.T) {
	t.Helper()
	for _, name := range []string{"prometheus", "promtool", "setpriv"} {
		if _, err := exec.LookPath(name); err != nil {
			skip(t, err.Error())
		}
	}
}

// prometheus is a real one with a life of its own.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus scrapes each target under the name of its job, and has the
// alerts of the documentation loaded.
func startPrometheus(t *testing.T, interval time.Duration, targets map[string]string) *prometheus {
	t.Helper()
	rules, err := filepath.Abs("docs/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := fmt.Sprintf("global: {scrape_interval: %v, scrape_timeout: %v, evaluation_interval: 500ms}\nrule_files: [%q]\nscrape_configs:\n", interval, interval, rules)
	for job, addr := range targets {
		conf += fmt.Sprintf("- {job_name: %q, static_configs: [{targets: [%q]}]}\n", job, addr)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	p := program{argv: []string{
		"setpriv", "--pdeathsig", "KILL", "prometheus", "--config.file", file,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0",
	}}.start(t)
	s := &prometheus{t: t, url: "http://" + p.waitLog(`msg="Listening on" address=(\S+)`)[1]}
	p.waitLog("Server is ready")
	return s
}

// get asks the HTTP API.
func (s *prometheus) get(path string, into any) {
	s.t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	answer := struct{ Data any }{into}
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %v, %s", path, err, body)
	}
}

// series is one of an answer. A value is its time and, as text, itself.
type series struct {
	Metric map[string]string
	Values [][2]any // of a range
	Value  [2]any   // of an instant
}

// query returns what an expression comes to now.
func (s *prometheus) query(expr string) []series {
	s.t.Helper()
	var answer struct{ Result []series }
	s.get("/api/v1/query?query="+url.QueryEscape(expr), &answer)
	return answer.Result
}

// samples returns every sample of the only series of a selector.
func (s *prometheus) samples(selector string) []float64 {
	s.t.Helper()
	found := s.query(selector + "[5m]")
	if len(found) != 1 {
		s.t.Fatalf("%s: %v", selector, found)
	}
	var all []float64
	for _, v := range found[0].Values {
		f, err := strconv.ParseFloat(v[1].(string), 64)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func (s *prometheus) wait(expr string) {
	s.t.Helper()
	eventually(s.t, expr, func() bool { return len(s.query(expr)) > 0 })
}

// host is an address of its own for one init's probes.
func host() string {
	return fmt.Sprintf("127.%d.%d.1:8079", os.Getpid()%200+1, hosts.Add(1))
}

// TestPrometheus follows one drain through a Prometheus, with the alerts and the
// dashboard of the documentation.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	needPID1(t)
	needPrometheus(t)
	full, err := os.ReadFile("probe/testdata/full.prom")
	if err != nil {
		t.Fatal(err)
	}
	// A page with something in every metric, for the panels.
	golden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(full) }))
	defer golden.Close()
	addr := host()
	s := startPrometheus(t, 200*time.Millisecond, map[string]string{"shop": addr, "golden": strings.TrimPrefix(golden.URL, "http://")})
	dir := hookDir(t, map[string]string{"10-hand-over.sh": "#!/bin/sh\nsleep 1\n", "20-leave": "#!/bin/sh\nexit 1\n"})
	p := program{pid1: true, argv: []string{
		"drainit", "--probe-addr", addr, "--config-dir", dir, "--announce-delay", "2s", "--grace-period", "60",
		"--", "actor", "trap", "TERM=0", "1s",
	}}.start(t)
	p.waitLog("^ready")
	s.wait(`drainit_ready{job="shop"} == 1`)
	pages := map[string]string{}
	collect(addr, pages)
	p.kill(syscall.SIGTERM)
	for running := true; running; time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.done:
			running = false
		default:
			collect(addr, pages)
		}
	}
	p.want(0)
	wantPages(t, pages, "running", "announce", "phases", "gate")
	wantDrain(t, s)
	wantAlerts(t, s)
	wantPanels(t, s)
}

// collect takes the page of the present state.
func collect(addr string, pages map[string]string) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return // it has just gone
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	state := regexp.MustCompile(`(?m)^drainit_state\{state="(\w+)"\} 1$`).FindSubmatch(body)
	if err == nil && state != nil {
		pages[string(state[1])] = string(body)
	}
}

// wantPages: promtool has nothing to say about any of them.
func wantPages(t *testing.T, pages map[string]string, states ...string) {
	t.Helper()
	for _, state := range states {
		if pages[state] == "" {
			t.Errorf("no page was seen in the state %s", state)
		}
	}
	for state, page := range pages {
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(page)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: promtool: %v\n%s", state, err, out)
		}
	}
}

// wantDrain: what Prometheus has seen of it, after the container is gone.
func wantDrain(t *testing.T, s *prometheus) {
	t.Helper()
	eventually(t, "the target is down", func() bool { return len(s.query(`up{job="shop"} == 0`)) == 1 })
	if left := s.query(`drainit_ready{job="shop"}`); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	took := s.samples(`app_shutdown_duration_seconds{job="shop",service="actor"}`)
	last := took[len(took)-1]
	if took[0] != 0 || !slices.IsSorted(took) || last < 2.5 || last > 10 || len(slices.Compact(slices.Clone(took))) < 6 {
		t.Errorf("app_shutdown_duration_seconds: %v", took)
	}
	if ready := slices.Compact(s.samples(`drainit_ready{job="shop"}`)); !slices.Equal(ready, []float64{1, 0}) && !slices.Equal(ready, []float64{0, 1, 0}) {
		t.Errorf("drainit_ready: %v", ready)
	}
	var order []float64 // the first time that it was seen in each state
	for _, state := range []string{"running", "announce", "phases", "gate"} {
		at := s.query(`min_over_time(timestamp(drainit_state{job="shop",state="` + state + `"} == 1)[5m:100ms])`)
		if len(at) != 1 {
			t.Fatalf("never seen in %s", state)
		}
		f, _ := strconv.ParseFloat(at[0].Value[1].(string), 64)
		order = append(order, f)
	}
	if !slices.IsSorted(order) || len(slices.Compact(order)) != 4 {
		t.Errorf("drainit_state: %v", order)
	}
	for phase, result := range map[string]string{"hand-over": "ok", "leave": "failed"} {
		got := s.samples(`drainit_phase_result{job="shop",phase="` + phase + `"}`)
		if got[0] != 1 || len(s.query(`last_over_time(drainit_phase_result{job="shop",phase="`+phase+`",result="`+result+`"}[5m])`)) != 1 {
			t.Errorf("phase %s: %v", phase, got)
		}
	}
	if d := s.samples(`drainit_phase_duration_seconds{job="shop",phase="hand-over"}`); d[0] < 1 || d[0] > 5 {
		t.Errorf("hand-over took %v", d)
	}
}

// wantAlerts: Prometheus evaluates all of them, and the one about the phase that
// failed fires though the target is gone.
func wantAlerts(t *testing.T, s *prometheus) {
	t.Helper()
	type rule struct {
		Name, Health, LastError string
		Alerts                  []struct {
			State  string
			Labels map[string]string
		}
	}
	var rules []rule
	eventually(t, "every rule has been evaluated", func() bool {
		var answer struct{ Groups []struct{ Rules []rule } }
		s.get("/api/v1/rules", &answer)
		if len(answer.Groups) != 1 || len(answer.Groups[0].Rules) < 9 {
			t.Fatalf("%+v", answer)
		}
		rules = answer.Groups[0].Rules
		return !slices.ContainsFunc(rules, func(r rule) bool { return r.Health == "unknown" })
	})
	for _, r := range rules {
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("%+v", r)
		}
	}
	// Not from an evaluation that has still seen the target.
	later := time.Now().Add(time.Second).Unix()
	s.wait(fmt.Sprintf(`timestamp(ALERTS{alertname="DrainitPhaseFailed",alertstate="firing",job="shop",phase="leave"}) > %d`, later))
	for _, name := range []string{"DrainitPhaseOverran", "DrainitWorkloadKilled", "DrainitPlanTooLong", "DrainitShutdownNearBudget"} {
		if found := s.query(`ALERTS{alertname="` + name + `",job="shop"}`); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// wantPanels: each query of the dashboard has found something in the last minute.
func wantPanels(t *testing.T, s *prometheus) {
	t.Helper()
	text, err := os.ReadFile("docs/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "2s", "$__range", "1m", "$__interval", "1s", "$service", ".*", "$instance", ".+")
	exprs := regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(text, -1)
	if len(exprs) < 20 {
		t.Fatalf("%d queries", len(exprs))
	}
	for _, m := range exprs {
		var expr string
		if err := json.Unmarshal(m[1], &expr); err != nil {
			t.Fatal(err)
		}
		now := float64(time.Now().UnixMilli()) / 1000
		var answer struct{ Result []series }
		s.get(fmt.Sprintf("/api/v1/query_range?start=%.3f&end=%.3f&step=0.2&query=%s", now-60, now, url.QueryEscape(fill.Replace(expr))), &answer)
		if len(answer.Result) == 0 {
			t.Errorf("nothing found by %s", expr)
		}
	}
}

// TestLinger: a shutdown that is over before any scrape leaves its final figures
// in Prometheus, and the init goes when it has them.
func TestLinger(t *testing.T) {
	t.Parallel()
	needPID1(t)
	needPrometheus(t)
	addr := host()
	s := startPrometheus(t, 2*time.Second, map[string]string{"shop": addr})
	dir := hookDir(t, map[string]string{"10-leave": "#!/bin/sh\nexit 1\n"})
	p := program{pid1: true, argv: []string{
		"drainit", "--probe-addr", addr, "--config-dir", dir, "--announce-delay", "0", "--grace-period", "60", "--linger", "15s",
		"--", "actor", "trap", "TERM=0",
	}}.start(t)
	p.waitLog("^ready")
	s.wait(`drainit_ready{job="shop"} == 1`)
	p.kill(syscall.SIGTERM)
	from := time.Now()
	p.want(0)
	if took := time.Since(from); took > 8*time.Second {
		t.Errorf("took %v; it was scraped every 2s", took)
	}
	total, err := time.ParseDuration(p.waitLog(`shutdown complete.* total=(\S+)`)[1])
	if err != nil {
		t.Fatal(err)
	}
	took := s.samples(`app_shutdown_duration_seconds{job="shop"}`)
	if last := took[len(took)-1]; last == 0 || math.Abs(last-total.Seconds()) > 0.001 || total > time.Second {
		t.Errorf("the last figure is %v, the log says %v", took, total)
	}
	for _, expr := range []string{
		`last_over_time(drainit_phase_result{job="shop",phase="leave",result="failed"}[1m])`,
		`last_over_time(drainit_stage_duration_seconds{job="shop",stage="gate"}[1m])`,
		`last_over_time(drainit_state{job="shop",state="linger"}[1m]) == 1`,
		`last_over_time(drainit_ready{job="shop"}[1m]) == 0`,
	} {
		if len(s.query(expr)) == 0 {
			t.Errorf("Prometheus has not seen %s\n%s", expr, p.output())
		}
	}
}

// TestLingerInVain: nobody comes, and who asks for something else, or for no
// more than the head, is not the one who is waited for.
func TestLingerInVain(t *testing.T) {
	t.Parallel()
	needPID1(t)
	addr := host()
	p := program{pid1: true, argv: []string{
		"drainit", "--probe-addr", addr, "--grace-period", "60", "--linger", "1s", "--", "actor", "trap", "TERM=0",
	}}.start(t)
	p.waitLog("^ready")
	p.kill(syscall.SIGTERM)
	p.waitLog("stage began.* stage=linger")
	began := time.Now()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, ask := range []string{"/readyz", "/livez", "/metrics"} {
		resp, err := client.Head("http://" + addr + ask)
		if err != nil {
			t.Errorf("%s: %v", ask, err)
			continue
		}
		resp.Body.Close()
	}
	p.want(0)
	if took := time.Since(began); took < 900*time.Millisecond || took > patience/2 {
		t.Errorf("lingered for %v", took)
	}
}
