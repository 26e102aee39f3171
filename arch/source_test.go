package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Limits of size: what is longer does more than one thing.
const (
	maxFile     = 300
	maxFunction = 60
)

// source is one parsed file of the product.
type source struct {
	path, folder string
	set          *token.FileSet
	file         *ast.File
}

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

func (s source) lines(n ast.Node) int {
	return s.set.Position(n.End()).Line - s.set.Position(n.Pos()).Line + 1
}

// sources parses the product, in a stable order.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for name, folder := range production(t) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{name, folder, set, file})
	}
	slices.SortFunc(all, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return all
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		text, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > maxFile {
			t.Errorf("%s has %d lines, %d are the most", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.lines(f) > maxFunction {
				t.Errorf("%s: %s has %d lines, %d are the most", s.at(f), f.Name.Name, s.lines(f), maxFunction)
			}
		}
	}
}

// owned says which calls belong to one folder: the reaper is one, and so is the
// place that decides about the end.
func owned() map[string][]string {
	reaper := []string{"child"}
	return map[string][]string{
		"os.Exit": {""}, "log.Fatal": {}, "log.Fatalf": {}, "log.Fatalln": {}, "syscall.Exit": {}, "runtime.Goexit": {},
		"syscall.Wait4": reaper, "unix.Wait4": reaper, "unix.Waitid": reaper, "syscall.ForkExec": reaper,
		"syscall.StartProcess": {}, "os.StartProcess": {}, "os.FindProcess": {}, "syscall.Exec": {}, "unix.Exec": {},
		"syscall.Kill": reaper, "unix.Kill": reaper, "unix.PidfdSendSignal": {},
		"signal.Notify": {"signals"}, "signal.Ignore": {}, "signal.Reset": {}, "signal.Stop": {}, "signal.NotifyContext": {},
		"time.AfterFunc": {},
	}
}

// TestOwners: only its owner makes a call, and nobody imports os/exec, whose
// wait would lose against the one reaper.
func TestOwners(t *testing.T) {
	calls := owned()
	for _, s := range sources(t) {
		for _, i := range s.file.Imports {
			if i.Path.Value == `"os/exec"` || i.Path.Value == `"testing"` {
				t.Errorf("%s imports %s", s.at(i), i.Path.Value)
			}
			if i.Name != nil && i.Name.Name == "." {
				t.Errorf("%s imports %s by a dot", s.at(i), i.Path.Value)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok {
				name := x.Name + "." + sel.Sel.Name
				if owners, is := calls[name]; is && !slices.Contains(owners, s.folder) {
					t.Errorf("%s: %s is not for this folder", s.at(n), name)
				}
			}
			return true
		})
	}
}

// pure are the packages that decide: they are given the time, and touch nothing.
func pure() []string { return []string{"phases", "budget"} }

func TestPure(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(pure(), s.folder) {
			continue
		}
		for _, i := range s.file.Imports {
			if name := strings.Trim(i.Path.Value, `"`); name != "time" && name != "drainit/budget" {
				t.Errorf("%s imports %s", s.at(i), name)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType:
				t.Errorf("%s: nothing runs beside it", s.at(n))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker"}, n.Sel.Name) {
					t.Errorf("%s: time.%s", s.at(n), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestNoHiddenState: no init function, and no package variable but errors and
// tables that nothing ever writes to.
func TestNoHiddenState(t *testing.T) {
	byFolder := map[string][]source{}
	for _, s := range sources(t) {
		byFolder[s.folder] = append(byFolder[s.folder], s)
	}
	for _, files := range byFolder {
		vars := map[string]bool{}
		for _, s := range files {
			for _, d := range s.file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						t.Errorf("%s: func init", s.at(d))
					}
				case *ast.GenDecl:
					if d.Tok == token.VAR {
						variables(t, s, d, vars)
					}
				}
			}
		}
		for _, s := range files {
			writes(t, s, vars)
		}
	}
}

// variables takes in a declaration and refuses shapes that hold state.
func variables(t *testing.T, s source, d *ast.GenDecl, vars map[string]bool) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if name.Name == "_" {
				continue
			}
			vars[name.Name] = true
			if s.folder == "signals" && name.Name == "early" {
				continue // which has to come before main, see there
			}
			if i >= len(v.Values) || !constant(v.Values[i]) {
				t.Errorf("%s: package variable %s is neither an error nor a table", s.at(name), name.Name)
			}
		}
	}
}

// constant: a literal of values, or an error.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "errors" && sel.Sel.Name == "New"
	}
	return false
}

// writes refuses whatever may change one of the package's variables.
func writes(t *testing.T, s source, vars map[string]bool) {
	check := func(e ast.Expr, how string) {
		id := base(e)
		if id != nil && vars[id.Name] && !local(id) {
			t.Errorf("%s: package variable %s is %s", s.at(e), id.Name, how)
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if n.Tok != token.DEFINE {
					check(e, "assigned to")
				}
			}
		case *ast.IncDecStmt:
			check(n.X, "counted in")
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X, "given away by its address")
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && slices.Contains([]string{"delete", "clear", "copy", "append"}, f.Name) {
				check(n.Args[0], "written by "+f.Name)
			}
		}
		return true
	})
}

// base is the variable that x.y[z] belongs to.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// local: the parser knows what a name stands for within its file. A package
// variable is declared at the top, or is not resolved at all, being in another.
func local(id *ast.Ident) bool {
	if id.Obj == nil {
		return false
	}
	_, top := id.Obj.Decl.(*ast.ValueSpec)
	return !top
}
