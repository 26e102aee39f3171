package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneReaper: a program in which two places wait for children loses statuses
// (golang.org/issue/13987 and its kin). So outside of child/ nothing starts a
// process or waits for one, by whatever package.
func TestOneReaper(t *testing.T) {
	forbidden := map[string]bool{
		"os.StartProcess": true, "os.FindProcess": true,
		"syscall.ForkExec": true, "syscall.StartProcess": true, "syscall.Wait4": true, "syscall.Exec": true,
		"unix.Wait4": true, "unix.Waitid": true, "unix.Exec": true,
	}
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		for _, i := range file.Imports {
			if i.Path.Value == `"os/exec"` {
				t.Errorf("%s imports os/exec", set.Position(i.Pos()))
			}
		}
		if filepath.Dir(path) == "child" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && forbidden[x.Name+"."+s.Sel.Name] {
					t.Errorf("%s: %s.%s", set.Position(n.Pos()), x.Name, s.Sel.Name)
				}
			}
			return true
		})
	})
}

// TestOneNotify: signals are subscribed to in signals alone, and no disposition
// is ever given back or ignored, since children would inherit that.
func TestOneNotify(t *testing.T) {
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok || x.Name != "signal" {
				return true
			}
			switch s.Sel.Name {
			case "Notify":
				if dir := filepath.Dir(path); dir != "signals" && !strings.HasPrefix(dir, "signals/") {
					t.Errorf("%s: signal.Notify", set.Position(n.Pos()))
				}
			case "Ignore", "Reset", "Stop", "NotifyContext":
				t.Errorf("%s: signal.%s", set.Position(n.Pos()), s.Sel.Name)
			}
			return true
		})
	})
}

// eachFile parses every file of the init itself: not the tests, and not what is
// measured and checked with programs of its own.
func eachFile(t *testing.T, f func(string, *ast.File, *token.FileSet)) {
	t.Helper()
	set := token.NewFileSet()
	n := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bench" || path == "testdata" || path == "examples" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err == nil {
			n++
			f(path, file, set)
		}
		return err
	})
	if err != nil || n < 20 {
		t.Fatalf("%d files: %v", n, err)
	}
}
