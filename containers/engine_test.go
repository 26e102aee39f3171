//go:build linux && !race

package containers

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the directory of the tests holds of the engine.
const (
	engineSocket = "docker.sock"
	engineLog    = "dockerd.log"
)

// startEngine starts dockerd in the house. It touches no network, and writes to
// state and to what the house hides.
func startEngine(dir, state string) error {
	path, err := program("dockerd")
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, engineLog))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path,
		"--host", "unix://"+filepath.Join(dir, engineSocket),
		"--data-root", filepath.Join(state, "data"), "--exec-root", filepath.Join(state, "exec"),
		"--pidfile", filepath.Join(state, "pid"),
		"--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", "/"+filepath.Base(dir),
	)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/usr/bin:/sbin:/bin")
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}

// program prefers what the distribution has installed: what comes first in PATH
// may be another thing of the same name.
func program(name string) (string, error) {
	for _, dir := range []string{"/usr/bin", "/usr/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

// engine waits for it and tells why there is none.
func (k *keeper) engine() error {
	if k.err != nil {
		return k.err
	}
	for _, name := range []string{"dockerd", "docker"} {
		if _, err := program(name); err != nil {
			return err
		}
	}
	err := await(func() error { return ask("/_ping", nil) })
	if err != nil {
		return fmt.Errorf("no engine: %w\n%s", err, tail(filepath.Join(k.dir, engineLog)))
	}
	return nil
}

// needEngine skips where there is none.
func needEngine(t *testing.T) {
	t.Helper()
	watchSources(t)
	if err := site.keeper.engine(); err != nil {
		skip(t, err)
	}
	needPrograms(t, "busybox")
	if site.image != nil {
		t.Fatal(site.image)
	}
}

// The images: one for each stage of testdata/Dockerfile.
func image(stage string) string { return "drainit-test:" + stage }

var stages = []string{"base", "quit", "int", "phases", "slow", "waits", "healthy"}

func buildImages() error {
	for _, stage := range stages {
		cmd := docker("build", "--quiet", "--network", "none", "--file", "testdata/Dockerfile", "--target", stage,
			"--tag", image(stage), filepath.Join(site.dir, "context"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("docker build %s: %w\n%s", stage, err, out)
		}
	}
	return nil
}

// docker is the client, with the engine of the tests and no settings of the user.
func docker(args ...string) *exec.Cmd {
	path, err := program("docker")
	cmd := &exec.Cmd{Path: path, Args: append([]string{"docker"}, args...), Err: err}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DOCKER_") && !strings.HasPrefix(v, "DRAINIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "DOCKER_HOST=unix://"+filepath.Join(site.dir, engineSocket),
		"DOCKER_CONFIG="+filepath.Join(site.dir, "config"), "DOCKER_BUILDKIT=0")
	return cmd
}

// dockerDo runs the client, which has to succeed.
func dockerDo(t *testing.T, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := docker(args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// get asks a server of a container that shares the network.
func get(port int, path string) (status int, body string, err error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: path}
	resp, err := client.Get(u.String())
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(b)), err
}

// freePorts are below those that the kernel gives away by itself, and each is
// given to one test.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var found []int
	for range 10000 {
		port := 10000 + (os.Getpid()+int(site.ports.Add(1)))%20000
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		l.Close()
		if found = append(found, port); len(found) == n {
			return found
		}
	}
	t.Fatal("no free port")
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }
