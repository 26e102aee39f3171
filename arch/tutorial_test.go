package arch

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTutorial does what the tutorial says, in one shell, and finds in its
// output every line that the tutorial shows. Times and pids may differ.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	absent(t, "curl")
	text := read(t, "docs/tutorial/first-drain.md")
	dir := t.TempDir()
	run(t, "go", "build", "-o", filepath.Join(dir, "bin", "drainit"), ".")
	sh := exec.Command("sh", "-e", "-c", strings.ReplaceAll(blocks(text, "sh"), "127.0.0.1:8079", freeAddr(t)))
	sh.Dir = dir
	sh.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir}
	out, err := sh.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(blocks(text, "text")) {
		if line = strings.TrimSpace(line); !like(line).Match(out) {
			t.Errorf("no line like\n%s\nin\n%s", line, out)
		}
	}
}

// like matches a line that differs in what no two runs have in common: points
// in time, lengths of time, and pids.
func like(line string) *regexp.Regexp {
	varies := regexp.MustCompile(`((?:time|pid|used|window|allowed|announce|phases|gate|total)=|take )[^ ]+`)
	return regexp.MustCompile("(?m)^" + varies.ReplaceAllString(regexp.QuoteMeta(line), `${1}\S+`) + "$")
}

// blocks returns what stands in the fenced blocks of a language.
func blocks(text, language string) string {
	var b strings.Builder
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		b.WriteString(m[1])
	}
	return b.String()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
