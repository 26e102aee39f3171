//go:build linux && !race

package containers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// daemonBeside is a workload that ends at TERM with status 5, and has a daemon
// that ends at TERM too.
func daemonBeside() []string {
	return []string{"workload", "daemon", "workload", "trap", "TERM=0", "then", "trap", "TERM=5"}
}

// stopsInOrder ends a workload that is daemonBeside, and holds the end against
// what it has to be.
func stopsInOrder(t *testing.T, j *jar) {
	t.Helper()
	j.ready()
	j.bothReady()
	j.kill("TERM")
	j.want(5)
	j.inOrder(`msg="signal received".* signal=TERM`, `stage=gate`, `msg="workload exited".* status=5`, `msg="shutdown complete".* ended_by="stop signal"`)
}

// TestPod: a container as Kubernetes makes it for a pod that asks for the
// strictest of its security standards.
func TestPod(t *testing.T) {
	t.Parallel()
	needRunc(t)
	message := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(message, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(message, 0o666); err != nil {
		t.Fatal(err)
	}
	j := bundle{
		uid: 65534, more: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443", "DRAINIT_PORT=tcp://10.0.0.2:80"},
		env:    map[string]string{"ANNOUNCE_DELAY": "300ms", "GRACE_PERIOD": "10s", "CONFIG_DIR": "/hooks"},
		mounts: []mount{{"/dev/termination-log", "bind", message, []string{"bind", "rw"}}},
		argv:   daemonBeside(),
	}.run(t)
	stopsInOrder(t, j)
	j.quiet()
	j.inOrder(`msg="signal received"`, `stage=announce`, `phase=hand-over result=ok`, `stage=gate`, `msg="descendants told to stop".* count=1`)
	j.wait(`phase=hand-over line="phase by 65534, the workload is running"`)
	wantReport(t, message, "TERM", 5)
}

// wantReport holds the termination message against the shutdown.
func wantReport(t *testing.T, path, reason string, status int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Reason     string `json:"reason"`
		ExitStatus *int   `json:"exit_status"`
	}
	if err := json.Unmarshal(text, &r); err != nil || len(text) > 4096 || strings.Count(string(text), "\n") > 1 {
		t.Fatalf("the termination message is %q: %v", text, err)
	}
	if r.Reason != reason || r.ExitStatus == nil || *r.ExitStatus != status {
		t.Errorf("the termination message is %s, want the reason %s and status %d", text, reason, status)
	}
}

// TestPreStop: drainit drain as a pod's preStop hook: kubelet runs it with the
// container's user and rights, and sends TERM when it has ended.
func TestPreStop(t *testing.T) {
	t.Parallel()
	needRunc(t)
	j := bundle{
		uid: 65534, more: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"},
		env:  map[string]string{"ANNOUNCE_DELAY": "300ms", "GRACE_PERIOD": "10s", "CONFIG_DIR": "/hooks"},
		argv: daemonBeside(),
	}.run(t)
	j.ready()
	if out, err := runc("exec", "--user", "65534:65534", j.name, "drainit", "drain").CombinedOutput(); err != nil {
		t.Fatalf("drainit drain: %v\n%s", err, out)
	}
	j.wait(`phase=flush result=ok`)
	if j.has("^got") || j.has("signal received") {
		t.Error("the workload was touched")
	}
	stopsInOrder(t, j)
	j.quiet()
	for what, most := range map[string]int{`msg="phase started".* phase=hand-over`: 1, "got TERM": 2} {
		if n := len(regexp.MustCompile(what).FindAllString(j.output(), -1)); n != most {
			t.Errorf("%d times %s, want %d", n, what, most)
		}
	}
	// No second announcement: that was long ago.
	if took := j.at(`msg="shutdown complete"`).Sub(j.at(`msg="signal received"`)); took > 250*time.Millisecond {
		t.Errorf("the stop took %v", took)
	}
}

// TestPodAssumes: in a pod that declares nothing the plan is Kubernetes's.
func TestPodAssumes(t *testing.T) {
	t.Parallel()
	needRunc(t)
	j := bundle{more: []string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}, argv: []string{"workload", "exit", "6"}}.run(t)
	j.want(6)
	j.inOrder(`msg="grace assumed".* grace=30s platform=kubernetes`, `msg="drain plan".* announce=5s .* grace=30s`, `ended_by=itself exit_status=6`)
}

// TestUserNamespace: root in the container is nobody outside.
func TestUserNamespace(t *testing.T) {
	t.Parallel()
	needRunc(t)
	const ids = 200000
	j := bundle{
		ids: ids, root: ownedRoot(t, ids), env: map[string]string{"GRACE_PERIOD": "10s", "CONFIG_DIR": "/hooks"},
		argv: daemonBeside(),
	}.run(t)
	stopsInOrder(t, j)
	j.quiet()
	j.wait(`phase=hand-over line="phase by 0, the workload is running"`)
	j.inOrder(`phase=hand-over result=ok`, `msg="descendants told to stop".* count=1`)
}

// TestProfiles: a seccomp profile that refuses what an init can do without.
func TestProfiles(t *testing.T) {
	t.Parallel()
	needRunc(t)
	// What a profile from before them does not know. Engines have long answered
	// with EPERM; a kernel that has none of them answers with ENOSYS.
	newer := []string{
		"clone3", "close_range", "openat2", "faccessat2", "pidfd_open", "pidfd_send_signal", "pidfd_getfd", "epoll_pwait2",
		"statx", "rseq", "io_uring_setup", "process_madvise", "memfd_create", "getrandom", "membarrier",
	}
	// What hardened services are refused.
	tuning := []string{
		"prctl", "setrlimit", "prlimit64", "getrlimit", "sched_setaffinity", "sched_getaffinity", "setpriority", "uname", "sysinfo",
	}
	for _, c := range []struct {
		name   string
		refuse refusal
	}{
		{"newer calls, EPERM", refusal{newer, int(syscall.EPERM)}},
		{"newer calls, ENOSYS", refusal{newer, int(syscall.ENOSYS)}},
		{"tuning", refusal{tuning, int(syscall.EPERM)}},
		{"waiting", refusal{[]string{"rt_sigtimedwait", "tgkill"}, int(syscall.EPERM)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := bundle{refuse: &c.refuse, env: map[string]string{"GRACE_PERIOD": "10s", "CONFIG_DIR": "/hooks"}, argv: daemonBeside()}.run(t)
			stopsInOrder(t, j)
			j.quiet()
			j.inOrder(`phase=hand-over result=ok`, `msg="descendants told to stop".* count=1`)
		})
	}
}
