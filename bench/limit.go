//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A limit is a bound on the number of processes and threads, and what the stage
// has to do to get below it. (The cgroup pids controller counts threads as the
// kernel's tasks: cgroups(7). So does RLIMIT_NPROC: getrlimit(2).)
type limit struct {
	kind  string
	dir   string // of the cgroup, "" without
	stage []string
}

// newLimit makes a cgroup or, where none can be had, takes a user id that
// nobody else has, since RLIMIT_NPROC counts per user and does not bind root.
func newLimit(name string, tasks int) *limit {
	// Version 1 first: where both are mounted, a controller that version 1
	// holds is missing in version 2.
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(tasks)), 0o644); err != nil {
			_ = os.Remove(dir)
			continue
		}
		return &limit{
			kind:  fmt.Sprintf("pids cgroup, pids.max = %d", tasks),
			dir:   dir,
			stage: []string{"-c", filepath.Join(dir, "cgroup.procs")},
		}
	}
	const base = 1_200_000_000
	uid := base + rand.IntN(1_000_000)
	return &limit{
		kind:  fmt.Sprintf("RLIMIT_NPROC = %d and a user of its own", tasks),
		stage: []string{"-n", strconv.Itoa(tasks), "-u", strconv.Itoa(uid)},
	}
}

// empty waits until nothing is left in the cgroup: a task leaves it a little
// after its parent has been told of its end.
func (l *limit) empty() error {
	if l.dir == "" {
		return nil
	}
	for end := now() + int64(hangLimit); now() < end; nap(time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(l.dir, "pids.current"))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(text)) == "0" {
			return nil
		}
	}
	return errors.New("the cgroup does not empty")
}

func (l *limit) remove() {
	if l.dir != "" {
		_ = l.empty()
		_ = os.Remove(l.dir)
	}
}
