package arch

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// root is the module's directory, seen from this one.
const root = ".."

// house says which packages of the module each may import. A package that
// stands in no row is refused, so that a new one gets its place by a decision.
func house() map[string][]string {
	return map[string][]string{
		"": {"*"}, // main: wiring

		"supervise": {"budget", "child", "config", "control", "hooks", "phases", "probe", "report", "signals"},
		"phases":    {"budget"},
		"config":    {"budget", "signals"},

		"budget": nil, "chart": nil, "child": nil, "control": nil, "hooks": nil, "journal": nil, "probe": nil,
		"report": nil, "self": nil, "signals": nil, "spread": nil,

		// Beside the product: no package of it imports them.
		"arch": nil, "bench": nil, "containers": nil, "rolling": nil,
	}
}

// tools are no part of the product, so what the product may not do is open to them.
func tools() []string { return []string{"arch", "bench", "containers", "rolling"} }

// modules are what may be used from outside, and where. The system's own calls
// are golang.org/x/sys/unix, which any leaf may need beside one of the others.
func modules() map[string][]string {
	return map[string][]string{
		"github.com/alecthomas/kong":      {"config"},
		"github.com/lmittmann/tint":       {"journal"},
		"golang.org/x/sys":                {"child", "control", "hooks", "journal", "self", "bench"},
		"github.com/rogpeppe/go-internal": nil, // tests alone
	}
}

// pkg is what go list tells of a package, by its path below the module's.
type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	GoFiles    []string
	folder     string
}

// packages lists the module's.
func packages(t *testing.T) []pkg {
	t.Helper()
	out := run(t, "go", "list", "-json=ImportPath,Name,Imports,GoFiles", "./...")
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p.folder = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "drainit"), "/")
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list: %s", out)
	}
	return all
}

func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, errs.String())
	}
	return out
}

// TestDirections: what a package may import of the module, and of the world.
func TestDirections(t *testing.T) {
	allowed, outside := house(), modules()
	for _, p := range packages(t) {
		may, known := allowed[p.folder]
		if !known {
			t.Errorf("package %q has no place in the house: give it a row", p.folder)
			continue
		}
		var foreign []string
		for _, imported := range p.Imports {
			if inner, ours := strings.CutPrefix(imported, "drainit/"); ours {
				if !slices.Contains(may, inner) && !slices.Contains(may, "*") || slices.Contains(tools(), inner) {
					t.Errorf("%q imports %q", p.folder, inner)
				}
				continue
			}
			module := moduleOf(imported, outside)
			if module == "" {
				if strings.Contains(strings.Split(imported, "/")[0], ".") {
					t.Errorf("%q imports %q, which is no module that may be used", p.folder, imported)
				}
				continue
			}
			if !slices.Contains(outside[module], p.folder) {
				t.Errorf("%q imports %q", p.folder, imported)
			}
			if module != "golang.org/x/sys" {
				foreign = append(foreign, module)
			}
		}
		if len(foreign) > 1 {
			t.Errorf("%q uses %q: one module beside the system's calls is the most", p.folder, foreign)
		}
	}
}

func moduleOf(imported string, all map[string][]string) string {
	for module := range all {
		if imported == module || strings.HasPrefix(imported, module+"/") {
			return module
		}
	}
	return ""
}

// TestModules: go.mod asks for what may be used and for nothing else.
func TestModules(t *testing.T) {
	var mod struct {
		Require, Replace, Exclude []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(run(t, "go", "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	allowed := modules()
	for _, r := range mod.Require {
		if _, ok := allowed[r.Path]; !ok && !r.Indirect {
			t.Errorf("go.mod requires %s", r.Path)
		}
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Errorf("go.mod replaces or excludes: %v, %v", mod.Replace, mod.Exclude)
	}
}

// production returns the product's own files with their folders.
func production(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, p := range packages(t) {
		if slices.Contains(tools(), p.folder) {
			continue
		}
		for _, f := range p.GoFiles {
			files[path.Join(p.folder, f)] = p.folder
		}
	}
	return files
}
