//go:build linux && !race

package containers

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bundle is a container for runc: what an engine makes of a pod's specification,
// and what no engine would make.
type bundle struct {
	env      map[string]string // settings: their names without DRAINIT_
	more     []string          // further variables
	argv     []string          // behind "drainit --"
	root     string            // "": the context of the images
	uid      int
	caps     []string
	writable bool // the root
	newPrivs bool
	mounts   []mount
	refuse   *refusal
	ids      int // where the IDs of a user namespace begin; 0: none
}

// mount as the runtime specification has it.
type mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type,omitempty"`
	Source      string   `json:"source"`
	Options     []string `json:"options,omitempty"`
}

// refusal is a seccomp profile that allows all but some system calls.
type refusal struct {
	calls []string
	errno int
}

type object = map[string]any

// config is the file that runc reads. The specification:
// https://github.com/opencontainers/runtime-spec/blob/main/config.md
func (b bundle) config(name string) object {
	linux := object{
		"namespaces":  b.namespaces(),
		"cgroupsPath": "/" + filepath.Base(site.dir) + "/" + name,
	}
	if b.refuse != nil {
		linux["seccomp"] = object{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []object{
			{"names": b.refuse.calls, "action": "SCMP_ACT_ERRNO", "errnoRet": b.refuse.errno},
		}}
	}
	if b.ids != 0 {
		ids := []object{{"containerID": 0, "hostID": b.ids, "size": 65536}}
		linux["uidMappings"], linux["gidMappings"] = ids, ids
	}
	root := b.root
	if root == "" {
		root = filepath.Join(site.dir, "context")
	}
	return object{
		"ociVersion": "1.0.2",
		"root":       object{"path": root, "readonly": !b.writable},
		"process": object{
			"args": append([]string{"drainit", "--"}, b.argv...), "env": b.environment(), "cwd": "/",
			"user": object{"uid": b.uid, "gid": b.uid}, "noNewPrivileges": !b.newPrivs,
			"capabilities": object{"bounding": b.caps, "effective": b.caps, "permitted": b.caps},
		},
		"mounts": b.allMounts(),
		"linux":  linux,
	}
}

func (b bundle) namespaces() []object {
	var all []object
	for _, kind := range []string{"pid", "mount", "ipc", "uts", "network"} {
		all = append(all, object{"type": kind})
	}
	if b.ids != 0 {
		all = append(all, object{"type": "user"})
	}
	return all
}

func (b bundle) environment() []string {
	env := append([]string{"PATH=/bin"}, b.more...)
	for k, v := range b.env {
		env = append(env, "DRAINIT_"+k+"="+v)
	}
	return env
}

func (b bundle) allMounts() []mount {
	return append([]mount{
		{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "mode=755", "size=65536k"}},
		{"/proc", "proc", "proc", []string{"nosuid", "noexec", "nodev"}},
	}, b.mounts...)
}

// jar is a running bundle.
type jar struct {
	*printer
	name string
}

// run runs it in the foreground of runc; it is removed at the end of the test.
func (b bundle) run(t *testing.T) *jar {
	t.Helper()
	j := &jar{name: nameOf(t)}
	dir := t.TempDir()
	text, err := json.Marshal(b.config(j.name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runc("delete", "--force", j.name).Run() })
	j.printer = runPrinter(t, runc("run", "--bundle", dir, j.name))
	return j
}

// runc runs it in the house.
func runc(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--target", site.keeper.pid(), "--mount", "--pid", "--",
		"runc", "--root", filepath.Join(site.dir, "state", "runc")}, args...)...)
}

// kill sends a signal to the first process.
func (j *jar) kill(signal string) {
	j.t.Helper()
	if out, err := runc("kill", j.name, signal).CombinedOutput(); err != nil {
		j.t.Fatalf("runc kill: %v\n%s", err, out)
	}
}

// want waits for the end and holds the status against what is expected.
func (j *jar) want(status int) {
	j.t.Helper()
	if got := j.status(); got != status {
		j.t.Errorf("status %d, want %d; output:\n%s", got, status, j.output())
	}
}

// needRunc skips where there is none.
func needRunc(t *testing.T) {
	t.Helper()
	watchSources(t)
	needPrograms(t, "runc", "nsenter", "busybox")
	if err := site.keeper.err; err != nil {
		skip(t, err)
	}
}

// ownedRoot copies the root for a container whose IDs begin elsewhere.
func ownedRoot(t *testing.T, id int) string {
	t.Helper()
	dir, err := os.MkdirTemp(site.dir, "root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	from := filepath.Join(site.dir, "context")
	err = filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, from))
		switch link, notLink := os.Readlink(path); {
		case d.IsDir():
			err = os.Mkdir(to, 0o755)
		case notLink == nil:
			err = os.Symlink(link, to)
		default:
			err = copyFile(path, to)
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		return errors.Join(os.Lchown(to, id, id), chmodDir(to, d))
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func chmodDir(path string, d os.DirEntry) error {
	if !d.IsDir() {
		return nil
	}
	return os.Chmod(path, 0o755)
}
