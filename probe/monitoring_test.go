package probe

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What operators are given, docs/monitoring, is held to the metrics here.
const (
	monitoring    = "../docs/monitoring"
	dashboardFile = monitoring + "/dashboard.json"
	alertsFile    = monitoring + "/alerts.yml"
	alertTests    = monitoring + "/alerts_test.yml"
	monitoringDoc = "../docs/how-to/monitoring.md"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtoolRun runs promtool in the folder of the rules.
func promtoolRun(t *testing.T, args ...string) {
	t.Helper()
	needPromtool(t)
	cmd := exec.Command("promtool", args...)
	cmd.Dir = monitoring
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

func TestAlertRules(t *testing.T) {
	promtoolRun(t, "check", "rules", "--lint-fatal", filepath.Base(alertsFile))
	promtoolRun(t, "test", "rules", filepath.Base(alertTests))
}

// TestScrapeConfig: Prometheus reads what the page shows, and finds the pod at
// the port of its annotation, once. The discovery itself is played by a list:
// not every build of Prometheus has that of Kubernetes.
func TestScrapeConfig(t *testing.T) {
	needPromtool(t)
	block := regexp.MustCompile(`(?m)^    scrape_configs:\n(?:    .*\n)+`).FindString(readFile(t, monitoringDoc))
	text := strings.ReplaceAll("\n"+block, "\n    ", "\n")
	discovery := "  kubernetes_sd_configs:\n  - role: pod\n"
	if !strings.Contains(text, discovery) {
		t.Fatalf("found %q", block)
	}
	static := "  static_configs:\n"
	for _, pod := range [][4]string{
		{"10.0.0.1:8080", "http", "true", "Running"},
		{"10.0.0.1:8079", "probes", "true", "Running"},
		{"10.0.0.2:8079", "probes", "true", "Succeeded"},
		{"10.0.0.3:8079", "probes", "", "Running"},
		{"[fd00::4]:8078", "probes", "true", "Running"},
	} {
		static += fmt.Sprintf("  - targets: [%q]\n    labels: {__meta_kubernetes_pod_container_port_name: %q, "+
			"__meta_kubernetes_pod_annotation_prometheus_io_scrape: %q, __meta_kubernetes_pod_phase: %q, "+
			"__meta_kubernetes_pod_annotation_prometheus_io_port: '8079', __meta_kubernetes_namespace: shops, "+
			"__meta_kubernetes_pod_name: shop}\n", pod[0], pod[1], pod[2], pod[3])
	}
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(strings.Replace(text, discovery, static, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("promtool", "check", "service-discovery", "--timeout=1s", file, "drainit").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var found []struct{ Labels map[string]string }
	if err := json.Unmarshal(out[strings.Index(string(out), "["):], &found); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for _, target := range found {
		if l := target.Labels; len(l) > 0 {
			got = append(got, l["instance"]+" "+l["namespace"]+"/"+l["pod"])
		}
	}
	slices.Sort(got)
	if want := []string{"10.0.0.1:8079 shops/shop", "[fd00::4]:8079 shops/shop"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q\n%s", got, want, out)
	}
}

// TestAlertsAreTested: each alert has a test that it fires, and a page that
// tells what to do.
func TestAlertsAreTested(t *testing.T) {
	tests, page := readFile(t, alertTests), readFile(t, monitoringDoc)
	var names, headings []string
	for _, m := range regexp.MustCompile(`(?m)^  - alert: (\w+)$`).FindAllStringSubmatch(readFile(t, alertsFile), -1) {
		names = append(names, m[1])
		fires := regexp.MustCompile(`alertname: ` + m[1] + `\n +eval_time: \w+\n +exp_alerts:\n +- exp_labels`)
		if !fires.MatchString(tests) {
			t.Errorf("no test in which %s fires", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Drainit\w+)$`).FindAllStringSubmatch(page, -1) {
		headings = append(headings, m[1])
	}
	if len(names) < 9 || !slices.Equal(names, headings) {
		t.Errorf("alerts %q, %s has %q", names, monitoringDoc, headings)
	}
	for _, name := range names {
		if want := "runbook: docs/how-to/monitoring.md#" + strings.ToLower(name); !strings.Contains(readFile(t, alertsFile), want+"\n") {
			t.Errorf("no %q", want)
		}
	}
}

// TestMonitoredMetrics: what alerts and dashboard ask for is there, by name and
// by label.
func TestMonitoredMetrics(t *testing.T) {
	target := []string{"instance", "job", "service"} // that each target has, or any may
	known, labels := map[string][]string{}, map[string]bool{"exported_service": true}
	for _, f := range Families() {
		known[f.Name] = f.Labels
		for _, l := range slices.Concat(f.Labels, target) {
			labels[l] = true
		}
	}
	asked := map[string]bool{}
	for _, expr := range slices.Concat(alertExprs(t), dashboardExprs(t)) {
		for name, matched := range selectors(expr) {
			asked[name] = true
			own, ok := known[name]
			if !ok {
				t.Errorf("there is no metric %q: %s", name, expr)
			}
			for _, l := range matched {
				if !slices.Contains(own, l) && !slices.Contains(target, l) {
					t.Errorf("%s has no label %q: %s", name, l, expr)
				}
			}
		}
	}
	lists := regexp.MustCompile(`(?:by|without|on|ignoring) *\(([^)]*)\)`)
	for _, m := range lists.FindAllStringSubmatch(readFile(t, alertsFile)+readFile(t, dashboardFile), -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if name = strings.TrimSpace(name); !labels[name] {
				t.Errorf("there is no label %q: %s", name, m[0])
			}
		}
	}
	for name := range known {
		if !asked[name] {
			t.Errorf("neither an alert nor the dashboard shows %s", name)
		}
	}
}

// TestMonitoredValues: the states, results and figures that they look for are
// those that the reference lists.
func TestMonitoredValues(t *testing.T) {
	reference, known := readFile(t, "../docs/reference/metrics.md"), map[string][]string{}
	for what, label := range map[string]string{
		"States": "state", "Results of a phase": "result", "Results of a step": "result", "Figures of the plan": "figure",
	} {
		list := regexp.MustCompile(what + `: ([\w, ]+)`).FindStringSubmatch(reference)
		if list == nil {
			t.Fatalf("the reference has no %q", what)
		}
		known[label] = append(known[label], strings.Split(list[1], ", ")...)
	}
	matcher, seen := regexp.MustCompile(`\b(state|result|figure)=~?\\?"([^"\\]*)\\?"`), 0
	for _, file := range []string{alertsFile, alertTests, dashboardFile} {
		for _, m := range matcher.FindAllStringSubmatch(readFile(t, file), -1) {
			for value := range strings.SplitSeq(m[2], "|") {
				seen++
				if !slices.Contains(known[m[1]], value) {
					t.Errorf("%s: there is no %s %q", file, m[1], value)
				}
			}
		}
	}
	if seen < 40 {
		t.Errorf("%d were found", seen)
	}
}

// alertExprs are the expressions of the alerts.
func alertExprs(t *testing.T) []string {
	var all []string
	text := readFile(t, alertsFile)
	for _, m := range regexp.MustCompile(`(?ms)^    expr: (?:\|\n)?(.*?)^    (?:for|labels):`).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	if len(all) != strings.Count(text, "- alert:") {
		t.Fatalf("%d expressions: %q", len(all), all)
	}
	return all
}

// selectors are the metrics of an expression with the labels that are matched.
func selectors(expr string) map[string][]string {
	all := map[string][]string{}
	expr = regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, `""`)
	expr = regexp.MustCompile(`\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)`).ReplaceAllString(expr, "")
	expr = regexp.MustCompile(`\[[^\]]*\]`).ReplaceAllString(expr, "")
	for _, m := range regexp.MustCompile(`([a-zA-Z_:][\w:]*)\s*(\(|\{[^}]*\})?`).FindAllStringSubmatch(expr, -1) {
		if m[2] == "(" || slices.Contains([]string{"and", "or", "unless", "bool"}, m[1]) {
			continue
		}
		all[m[1]] = append(all[m[1]], labelNames(m[2])...)
	}
	return all
}

func labelNames(matchers string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(\w+)\s*[=!]`).FindAllStringSubmatch(matchers, -1) {
		all = append(all, m[1])
	}
	return all
}
