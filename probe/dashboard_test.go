package probe

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboardExprs are those of the panels, the annotations and the variables,
// with Grafana's own variables filled in.
func dashboardExprs(t *testing.T) []string {
	var board any
	if err := json.Unmarshal([]byte(readFile(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$__range", "6h", "$__interval", "15s", "$service", ".+", "$instance", ".+")
	var all []string
	walk(board, func(key, value string) {
		if inner, ok := strings.CutPrefix(value, "label_values("); ok && key == "definition" {
			all = append(all, fill.Replace(inner[:strings.LastIndex(inner, ",")]))
		}
		if key == "expr" {
			all = append(all, fill.Replace(value))
		}
	})
	if len(all) < 20 {
		t.Fatalf("%d expressions: %q", len(all), all)
	}
	return all
}

// walk visits each text of a JSON value.
func walk(value any, visit func(key, text string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if text, ok := value[key].(string); ok {
				visit(key, text)
			}
			walk(value[key], visit)
		}
	case []any:
		for _, inner := range value {
			walk(inner, visit)
		}
	}
}

// TestDashboardQueries: Prometheus itself reads each of them, as a rule.
func TestDashboardQueries(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for i, expr := range dashboardExprs(t) {
		rules = append(rules, rule{fmt.Sprintf("dashboard:%d", i), expr})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml") // YAML knows JSON
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtoolRun(t, "check", "rules", "--lint-fatal", file)
}

// board is what Grafana needs of a dashboard to import and to show it.
type board struct {
	UID, Title    string
	SchemaVersion int
	Inputs        []any `json:"__inputs"` // none: it asks for nothing at its import
	Templating    struct {
		List []struct{ Name, Type, Query any }
	}
	Panels []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Datasource  struct{ Type, UID string }
		Targets     []struct {
			RefID, Expr string
			Datasource  struct{ Type, UID string }
		}
	}
}

func TestDashboard(t *testing.T) {
	text := readFile(t, dashboardFile)
	var b board
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	if b.UID == "" || b.Title == "" || b.SchemaVersion < 36 || b.Inputs == nil || len(b.Inputs) > 0 {
		t.Errorf("%+v", b)
	}
	variables := []string{"__rate_interval", "__range", "__interval"}
	for _, v := range b.Templating.List {
		variables = append(variables, fmt.Sprint(v.Name))
	}
	for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(text, -1) {
		if m[1] != "__all" && !slices.Contains(variables, m[1]) {
			t.Errorf("there is no variable %q", m[1])
		}
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken || x >= 24 {
					t.Fatalf("panel %q lies over %q, or beyond the edge", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if refs[q.RefID] || q.Expr == "" || q.Datasource.UID != "${datasource}" || q.Datasource != p.Datasource {
				t.Errorf("panel %q: %+v", p.Title, q)
			}
			refs[q.RefID] = true
		}
		if (len(refs) == 0) != (p.Type == "row") {
			t.Errorf("panel %q asks nothing", p.Title)
		}
	}
}
