package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drainit/config"
)

// absent ends a test whose program is not installed: in CI that is a failure.
func absent(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("DRAINIT_CI") != "" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

// TestCommandLines: each command line of drainit that a page shows is one that
// drainit accepts.
func TestCommandLines(t *testing.T) {
	seen := 0
	for name, text := range pages(t) {
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			args := strings.Fields(line)
			if len(args) == 0 || args[0] != "drainit" || !strings.HasPrefix(line, "    ") && !strings.Contains(text, "\n```sh\n") {
				continue
			}
			if strings.Contains(line, "[") || !strings.Contains(line, " -- ") {
				continue // a synopsis, or a sentence
			}
			seen++
			_, err := config.Parse(config.World{
				Args: args[1:], PID: 1, Env: func(string) (string, bool) { return "", false },
			})
			if err != nil {
				t.Errorf("docs/%s: %s: %v", name, strings.TrimSpace(line), err)
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d command lines were found", seen)
	}
}

// TestHAProxyPage: HAProxy accepts both backends of the page.
func TestHAProxyPage(t *testing.T) {
	absent(t, "haproxy")
	const begin = "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n" +
		"frontend web\n    bind 127.0.0.1:8000\n    default_backend shop\n"
	whole, other := "", "backend shop\n    server a 127.0.0.2:8080 check port 8079\n"
	for block := range strings.SplitSeq(read(t, "docs/how-to/haproxy.md"), "\n\n") {
		switch {
		case strings.HasPrefix(block, "    backend shop"):
			whole = strings.ReplaceAll(block, "\n    ", "\n")[4:] + "\n"
		case strings.HasPrefix(block, "        option httpchk"):
			other += block + "\n"
		}
	}
	for what, backend := range map[string]string{"expect status 200": whole, "disable-on-404": other} {
		if !strings.Contains(backend, what) {
			t.Errorf("no backend with %q: %s", what, backend)
		}
		file := filepath.Join(t.TempDir(), "haproxy.cfg")
		if err := os.WriteFile(file, []byte(begin+backend), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("haproxy", "-c", "-f", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", what, err, out, backend)
		}
	}
}
