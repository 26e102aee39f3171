package hooks

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The trust rule of an init that runs as root: what it executes must be root's
// alone to change. So every link, directory and file on the way from / to a hook
// is owned by root and not writable by group or others, whichever way links lead.
// Two kinds of directory may have write bits all the same:
//   - sticky ones (/tmp): others may add files there, and not replace root's;
//   - what lies on a read-only mount, where the bits permit nothing. Kubernetes
//     mounts a ConfigMap read-only with a root directory of mode 0777, and modes
//     of 0777 for the scripts in it are common.
//
// An owner other than root is never excused: it could chmod.

// maxLinks is the kernel's own bound (path_resolution(7)).
const maxLinks = 40

// distrust walks to name and returns why it can't be trusted, "" if it can. A
// trailing slash asks about the directory itself. A relative name counts from
// the working directory. What cannot be looked at is not trusted.
func distrust(name string) string {
	w := walk{at: "/", todo: name}
	if !strings.HasPrefix(name, "/") {
		dir, err := os.Getwd()
		if err != nil {
			return err.Error()
		}
		w.todo = dir + "/" + name
	}
	reason := judge("/")
	for reason == "" && w.todo != "" {
		reason = w.step()
	}
	// What is wrong with the name itself needs no second naming of it.
	return strings.TrimPrefix(reason, strconv.Quote(strings.TrimRight(name, "/"))+" is ")
}

// walk resolves a path as the kernel does, one component at a time: at holds no
// link any more, todo is what is left. filepath.EvalSymlinks does not tell which
// links and directories it passed, and those are the question here.
type walk struct {
	at, todo string
	links    int
}

func (w *walk) step() (reason string) {
	first, rest, _ := strings.Cut(w.todo, "/")
	w.todo = rest
	switch first {
	case "", ".":
		return ""
	case "..":
		w.at = path.Dir(w.at) // judged when we came down through it
		return ""
	}
	next := path.Join(w.at, first)
	if reason := judge(next); reason != "" {
		return reason
	}
	target, err := os.Readlink(next)
	if err != nil { // no link: judge could stat it, so it is there
		w.at = next
		return ""
	}
	if w.links++; w.links > maxLinks {
		return unix.ELOOP.Error()
	}
	if strings.HasPrefix(target, "/") {
		w.at = "/"
	}
	w.todo = target + "/" + w.todo
	return ""
}

// judge looks at one link, directory or file, whose path holds no other link.
func judge(name string) string {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Lstat(name, &st) }); err != nil {
		return fmt.Sprintf("%s: %v", strconv.Quote(name), err)
	}
	if st.Uid != 0 {
		return fmt.Sprintf("%s is owned by uid %d%s", strconv.Quote(name), st.Uid, asRoot)
	}
	kind := st.Mode & unix.S_IFMT
	sticky := kind == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	if kind == unix.S_IFLNK || st.Mode&0o022 == 0 || sticky || readOnly(name) {
		return "" // a link's own mode means nothing
	}
	return fmt.Sprintf("%s is writable by group or others (mode %04o)%s", strconv.Quote(name), st.Mode&0o7777, asRoot)
}

// readOnly reports a read-only mount or file system.
func readOnly(name string) bool {
	var fs unix.Statfs_t
	err := retry(func() error { return unix.Statfs(name, &fs) })
	return err == nil && fs.Flags&unix.ST_RDONLY != 0
}

// asRoot ends the reason, so that it tells why this matters here and not to
// another user.
const asRoot = ", and the init runs as root"

// hintFor is the remedy of a reason that distrust gave.
func hintFor(reason string) string {
	if strings.HasSuffix(reason, asRoot) {
		return "chown root: and chmod go-w it, mount it read-only, or run the container as another user"
	}
	return ""
}
