// Package hooks owns the directories that hold an operator's commands:
// which of their files are hooks, in what order they run, what their
// directives say, whether they can be trusted, and what environment they get.
// It runs nothing and keeps no state.
//
// A hook is a regular file (symbolic links are followed) that has an x bit,
// begins with "#!" or an ELF header, or has a name that begins with a number.
// What looks like a hook and cannot be run is refused, not passed over: a
// hand-over that silently never happens is worse than a start that fails.
package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Hook is one command of a directory, as its file was when it was read.
type Hook struct {
	Kind Kind
	// Name is the file's name without number, separator and extension:
	// "hand-over" for 10-hand-over.sh. Unique in its directory, and so among the
	// hooks of its kind; never empty.
	Name string
	// Path is the directory as given plus the file's name. Symbolic links are
	// not resolved in it, so that a swapped ConfigMap brings its new file.
	Path string
	// Order is the directive's, else the number the name begins with, else 50.
	// Steps of one order are one wave.
	Order int
	// MaxDuration is what the hook declared it may take, a step's start that is;
	// 0 where it did not.
	MaxDuration time.Duration
}

// Set is what a directory holds. The zero value is that of an absent one.
type Set struct {
	// Hooks stand in running order: by Order, ties by file name, byte by byte.
	Hooks []Hook
	// Ignored are the paths that were passed over with a notice, by file name:
	// what is no regular file, and files that look like no hook. Names that
	// begin with "." or end in "~", ".bak", ".md" or ".dpkg-*" are not told of.
	Ignored []string
}

// Discover reads dir, which should be an absolute path as the init changes its
// own directory later. An absent directory is an empty set.
//
// Where a file is refused the error is a [Problems] that names all of them, in
// order of their file names, and the set is empty. Any other error means that
// the directory itself could not be read. With euid 0 the trust rules hold (see
// trust.go); what may be executed is always asked for the calling thread's own
// effective user. A file that vanishes while the directory is being read counts
// as a dangling link does: refused where its name begins with a number, else
// ignored.
func Discover(dir string, kind Kind, euid int) (Set, error) {
	entries, err := readDir(dir)
	if err != nil || len(entries) == 0 {
		return Set{}, err
	}
	found := reading{dir: strings.TrimRight(dir, "/"), kind: kind, euid: euid, byName: map[string]string{}}
	for _, e := range entries {
		found.take(e.Name())
	}
	if err := found.refused(); err != nil {
		return Set{}, err
	}
	sortHooks(found.set.Hooks)
	return found.set, nil
}

// Recheck holds the file behind a discovered hook against the rules again: it
// exists, is a regular file, may be executed, and with euid 0 can be trusted.
// The error is a [Problems] with one entry. Between this and the start of the
// hook the file may still change; with the trust rules only by root's hand.
func Recheck(h Hook, euid int) error {
	f, err := look(h.Path)
	reason := ""
	switch {
	case err != nil:
		reason = missing(h.Path, err)
	case !f.regular():
		reason = "not a regular file"
	case !f.runnable():
		return Problems{f.notRunnable()}
	case euid == 0:
		reason = distrust(h.Path)
	}
	if reason == "" {
		return nil
	}
	return Problems{{Path: h.Path, Reason: reason, Hint: hintFor(reason)}}
}

// readDir lists dir by name. os.ReadDir opens with O_DIRECTORY, so that a FIFO
// in the directory's place is an error and not a wait.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return entries, err
	}
	// A link that leads nowhere is not an absent directory: somebody meant it
	// to hold something, and the volume behind it is not mounted.
	if _, lerr := os.Lstat(dir); lerr == nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: errDangling}
	}
	return nil, nil
}

// reading is a directory while it is being read.
type reading struct {
	dir    string
	kind   Kind
	euid   int
	set    Set
	byName map[string]string // hook name -> path of the first file of that name
	bad    Problems
}

// take sorts one file of the directory into hook, ignored, refused or nothing.
func (r *reading) take(file string) {
	if passedOver(file) {
		return
	}
	path := r.dir + "/" + file
	f, err := look(path)
	numbered := beginsWithNumber(file)
	switch {
	case err != nil && numbered:
		r.refuse(Problem{path, missing(path, err), "remove it, or mount what it points to"})
		return
	case err != nil || !f.regular():
		r.set.Ignored = append(r.set.Ignored, path)
		return
	}
	if err := f.read(); err != nil {
		r.refuse(Problem{path, "cannot be read: " + err.Error(), ""})
		return
	}
	if !numbered && !f.executable() && !f.program() {
		r.set.Ignored = append(r.set.Ignored, path)
		return
	}
	r.add(file, f)
}

// add takes a hook in, and with it all that is wrong with it, so that one start
// tells an operator everything there is to mend.
func (r *reading) add(file string, f *file) {
	number, name, err := splitName(file)
	if err != nil {
		r.refuse(Problem{f.path, err.Error(), "use a smaller number"})
	}
	if !f.runnable() {
		r.refuse(f.notRunnable())
	}
	if first, taken := r.byName[name]; taken {
		r.refuse(Problem{f.path, fmt.Sprintf("has the same hook name, %q, as %q", name, first),
			"rename one of them: number and extension are not part of a hook's name"})
	} else {
		r.byName[name] = f.path
	}
	d, err := parseDirectives(r.kind, f.head)
	if err != nil {
		r.refuse(Problem{f.path, err.Error(), directiveHint(r.kind)})
	}
	if d.ordered {
		number = d.order
	}
	r.set.Hooks = append(r.set.Hooks, Hook{Kind: r.kind, Name: name, Path: f.path, Order: number, MaxDuration: d.maxDuration})
}

func (r *reading) refuse(p Problem) { r.bad = append(r.bad, p) }

// refused is what the start fails with. Trust comes last, since it only matters
// where there is a hook: an empty directory that others may write is no danger.
func (r *reading) refused() error {
	if r.euid == 0 && len(r.set.Hooks) > 0 {
		r.distrusted()
	}
	if len(r.bad) == 0 {
		return nil
	}
	r.bad.sort()
	return r.bad
}

// distrusted looks at the directory once and then at each file, so that a bad
// directory is told once and not once a file.
func (r *reading) distrusted() {
	if reason := distrust(r.dir + "/"); reason != "" {
		r.refuse(Problem{r.dir, reason, hintFor(reason)})
		return
	}
	for _, h := range r.set.Hooks {
		if reason := distrust(h.Path); reason != "" {
			r.refuse(Problem{h.Path, reason, hintFor(reason)})
		}
	}
}

// missing says why a path cannot be looked at. A dangling link gets its own
// word, since "no such file" about a file that ls shows helps nobody.
func missing(path string, err error) string {
	if _, lerr := os.Lstat(path); lerr == nil && errors.Is(err, unix.ENOENT) {
		return errDangling.Error()
	}
	return err.Error()
}

var errDangling = errors.New("dangling symbolic link")
