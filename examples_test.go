package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestHAProxyExample: HAProxy takes the configuration of examples/haproxy, and the
// page shows that one's backend.
func TestHAProxyExample(t *testing.T) {
	t.Parallel()
	const file = "examples/haproxy/haproxy.cfg"
	config := readFile(t, file)
	_, backend, found := strings.Cut(config, "\nbackend shop\n")
	if !found {
		t.Fatalf("%s has no backend", file)
	}
	shown := "\n    backend shop\n"
	for line := range strings.Lines(backend) {
		shown += "    " + line
	}
	if page := "docs/how-to/haproxy.md"; !strings.Contains(readFile(t, page), shown+"\n") {
		t.Errorf("%s does not show the backend of %s", page, file)
	}
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		skip(t, err.Error())
	}
	if out, err := exec.Command(haproxy, "-c", "-f", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
