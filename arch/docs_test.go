package arch

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"drainit/budget"
	"drainit/config"
	"drainit/hooks"
	"drainit/phases"
	"drainit/probe"
	"drainit/signals"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMetrics holds the table to the code, word by word.
func TestMetrics(t *testing.T) {
	var want []string
	for _, f := range probe.Families() {
		labels := ""
		for i, l := range f.Labels {
			if i > 0 {
				labels += ","
			}
			labels += " `" + l + "`"
		}
		want = append(want, "| `"+f.Name+"` | "+f.Type+" |"+labels+" | "+f.Help+" |")
	}
	text := read(t, "docs/reference/metrics.md")
	var got []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/reference/metrics.md has\n%s\nthe code\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for what, names := range map[string][]string{"States": phases.Stages(), "Results of a phase": phases.Results(), "Figures of the plan": figures()} {
		if list := what + ": " + strings.Join(names, ", "); !strings.Contains(text, list) {
			t.Errorf("docs/reference/metrics.md has no %q", list)
		}
	}
}

func figures() []string {
	var names []string
	for _, f := range (budget.Plan{}).Figures() {
		names = append(names, f.Name)
	}
	return names
}

// TestSignals: the documentation's lists are the code's.
func TestSignals(t *testing.T) {
	text := read(t, "docs/reference/signals.md")
	var names []string
	for _, s := range signals.Forwardable().List() {
		if s < 35 && s != syscall.SIGTERM && s != syscall.SIGINT {
			names = append(names, signals.Name(s))
		}
	}
	if want := "Forwarded are: " + strings.Join(names, ", ") + ", all real-time signals from 35 to 64"; !strings.Contains(text, want) {
		t.Errorf("docs/reference/signals.md has no %q", want)
	}
	for s := syscall.Signal(1); s <= signals.Max; s++ {
		name := signals.Name(s)
		if signals.Receivable(s) != nil && !regexp.MustCompile(`(?m)^\|.*\b`+name+`\b`).MatchString(text) {
			t.Errorf("docs/reference/signals.md has no row with %s", name)
		}
		if signals.Stops(s) != nil && !regexp.MustCompile("(?m)^`--stop-signal`.*\\b"+name+`\b`).MatchString(text) {
			t.Errorf("docs/reference/signals.md does not refuse %s for --stop-signal", name)
		}
	}
}

// TestHooks: the variables and the results of the documentation are the code's.
func TestHooks(t *testing.T) {
	text := read(t, "docs/reference/hooks.md")
	var got, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(DRAINIT_[A-Z_]+)`").FindAllStringSubmatch(text, -1) {
		got = append(got, m[1])
	}
	for _, entry := range hooks.Environment(nil, nil, hooks.Call{Workload: "exited", Socket: "@x"}) {
		name, _, _ := strings.Cut(entry, "=")
		want = append(want, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/reference/hooks.md has the variables %q, hooks get %q", got, want)
	}
	for _, r := range phases.Results() {
		if !strings.Contains(text, "| `"+r+"` |") {
			t.Errorf("docs/reference/hooks.md has no result %q", r)
		}
	}
}

// TestPlatforms: the table is the code's, in its order.
func TestPlatforms(t *testing.T) {
	var got []string
	row := regexp.MustCompile("(?m)^\\| `([a-z]+)` \\|[^|]*\\| ([^|]*) \\| ([^|]*) \\|$")
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/reference/flags.md"), -1) {
		got = append(got, m[1])
		r, err := config.Parse(config.World{
			Args: []string{"--platform", m[1], "--", "app"}, PID: 1, Env: func(string) (string, bool) { return "", false },
		})
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		figure := func(what, cell string, is string) {
			if cell != is && !(is == "0s" && (cell == "0" || cell == "no limit")) {
				t.Errorf("docs/reference/flags.md: %s of %s is %s, in the code %s", what, m[1], cell, is)
			}
		}
		p := r.Run.Platform
		figure("grace period", m[2], strings.Replace(p.Grace.String(), "1m30s", "90s", 1))
		figure("announce delay", m[3], p.Announce.String())
	}
	if !slices.Equal(got, config.PlatformNames()) {
		t.Errorf("docs/reference/flags.md has the platforms %q, the code %q", got, config.PlatformNames())
	}
}

// pages are the documentation's, by their path below docs.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	dir := filepath.Join(root, "docs")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			name, _ := filepath.Rel(dir, path)
			all[name] = read(t, filepath.Join("docs", name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLinks: each link leads somewhere, to its heading too, and the index leads
// to every page.
func TestLinks(t *testing.T) {
	all := pages(t)
	unseen := maps.Clone(all)
	delete(unseen, "README.md")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			page := name
			if target != "" {
				page = filepath.Join(filepath.Dir(name), target)
			}
			if name == "README.md" {
				delete(unseen, page)
			}
			if _, err := os.Stat(filepath.Join(root, "docs", page)); err != nil {
				t.Errorf("docs/%s links to %s, which is not there", name, m[1])
			} else if heading != "" && !slices.Contains(headings(all[page]), heading) {
				t.Errorf("docs/%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
	for name := range unseen {
		t.Errorf("docs/README.md does not lead to %s", name)
	}
}

// headings are the anchors of a page.
func headings(text string) []string {
	var all []string
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.Lines(text) {
		if h := strings.TrimLeft(line, "#"); h != line {
			all = append(all, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), ""), " ", "-"))
		}
	}
	return all
}

// TestFlagsInPages: no page tells of a flag or a variable that is not there.
func TestFlagsInPages(t *testing.T) {
	twins := config.Twins()
	known := slices.Clone(twins)
	for _, entry := range hooks.Environment(nil, nil, hooks.Call{Workload: "exited", Socket: "@x"}) {
		name, _, _ := strings.Cut(entry, "=")
		known = append(known, name)
	}
	known = append(known, "DRAINIT_PORT") // Kubernetes', as an example of what is no twin
	flag := regexp.MustCompile("`(?:-g`, `|drainit )?--([a-z-]+)")
	for name, text := range pages(t) {
		for _, m := range regexp.MustCompile(`DRAINIT_[A-Z_]+`).FindAllString(text, -1) {
			if !slices.Contains(known, m) {
				t.Errorf("docs/%s has the variable %s", name, m)
			}
		}
		for _, m := range flag.FindAllStringSubmatch(text, -1) {
			twin := "DRAINIT_" + strings.ToUpper(strings.ReplaceAll(m[1], "-", "_"))
			if !slices.Contains(twins, twin) && m[1] != "help" && m[1] != "version" {
				t.Errorf("docs/%s has the flag --%s", name, m[1])
			}
		}
	}
}
