package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// message is one log line of the code or of the documentation: "LEVEL message".
type message = string

// levels are slog's methods that take a message first.
func levels() map[string]string {
	return map[string]string{"Debug": "DEBUG", "Info": "INFO", "Warn": "WARN", "Error": "ERROR"}
}

// TestLogs holds docs/reference/logs.md to the code in both directions, and the
// fields that a call names to those that its row does.
func TestLogs(t *testing.T) {
	inCode, inDocs := logged(t), documentedLogs(t)
	for _, m := range slices.Sorted(maps.Keys(inCode)) {
		fields, ok := inDocs[m]
		if !ok {
			t.Errorf("the code logs %q, docs/reference/logs.md does not have it", m)
			continue
		}
		for _, f := range inCode[m] {
			if f == "hook" { // hookAttr: the key is the hook's kind
				f = documentedKind(fields)
			}
			if !slices.Contains(fields, f) {
				t.Errorf("%q has the field %q, which its row does not", m, f)
			}
		}
	}
	for m := range inDocs {
		if _, ok := inCode[m]; !ok {
			t.Errorf("docs/reference/logs.md has %q, no code logs it", m)
		}
	}
}

// documentedKind is the kind of hook that a row names; a row has to name one.
func documentedKind(fields []string) string {
	for _, kind := range []string{"phase", "step", "companion"} {
		if slices.Contains(fields, kind) {
			return kind
		}
	}
	return "phase"
}

// logged finds every message in the code, with the fields that can be read off
// the call.
func logged(t *testing.T) map[message][]string {
	all := map[message][]string{}
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			m, args := logCall(call)
			switch {
			case m == "":
			case strings.HasSuffix(m, " "):
				t.Errorf("%s: the message is no constant", s.at(call))
			default:
				all[m] = append(all[m], fields(args)...)
			}
			return true
		})
	}
	return all
}

// logCall reads a call of a logging method, or of any function that is given a
// level and a text; "" for every other call. A message that is no constant
// comes as the level and a blank.
func logCall(call *ast.CallExpr) (message, []ast.Expr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", nil
	}
	if level, is := levels()[sel.Sel.Name]; is {
		text, _ := literal(call.Args[0])
		return level + " " + text, call.Args[1:]
	}
	for i, a := range call.Args[:len(call.Args)-1] {
		level, is := a.(*ast.SelectorExpr)
		if !is || !strings.HasPrefix(level.Sel.Name, "Level") {
			continue
		}
		if text, is := literal(call.Args[i+1]); is {
			return levels()[strings.TrimPrefix(level.Sel.Name, "Level")] + " " + text, call.Args[i+2:]
		}
	}
	return "", nil
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// fields are the keys among a call's arguments: those of slog's constructors and
// of our own (durAttr), and those that stand alone.
func fields(args []ast.Expr) []string {
	var keys []string
	for _, a := range args {
		if key, ok := literal(a); ok {
			keys = append(keys, key)
		}
		call, ok := a.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			if key, ok := literal(call.Args[0]); ok {
				keys = append(keys, key)
			}
		case *ast.Ident:
			name, ours := strings.CutSuffix(f.Name, "Attr")
			if key, ok := literal(call.Args[0]); ok && ours {
				keys = append(keys, key)
			} else if ours {
				keys = append(keys, map[string]string{"err": "error"}[name]+strings.TrimPrefix(name, "err"))
			}
		}
	}
	return keys
}

// documentedLogs reads the rows "| `message` | LEVEL | fields | when |".
func documentedLogs(t *testing.T) map[message][]string {
	row := regexp.MustCompile("^\\| `([^`]+)` \\| (DEBUG|INFO|WARN|ERROR) \\| ([^|]*) \\| [^|]*\\|$")
	code := regexp.MustCompile("`([^`]+)`")
	all := map[message][]string{}
	for line := range strings.Lines(read(t, "docs/reference/logs.md")) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		key := m[2] + " " + m[1]
		if _, twice := all[key]; twice {
			t.Errorf("docs/reference/logs.md has %q twice", key)
		}
		all[key] = []string{}
		for _, f := range code.FindAllStringSubmatch(m[3], -1) {
			all[key] = append(all[key], f[1])
		}
	}
	return all
}
