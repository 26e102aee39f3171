package hooks

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// All is what the configuration directory holds. The zero value is that of an
// absent one.
type All struct {
	Phases, Steps, Companions Set
}

// DiscoverAll reads the directories of all kinds below configDir, each as
// [Discover] does. An empty configDir holds no hooks.
//
// Whatever is refused in any of them, and a directory that can't be read too, is
// told together: every error is a [Problems], in order of the paths.
func DiscoverAll(configDir string, euid int) (All, error) {
	var all All
	if configDir == "" {
		return all, nil
	}
	if f, err := look(configDir); err == nil && f.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return all, Problems{{Path: configDir, Reason: unix.ENOTDIR.Error()}} // said once
	}
	var bad Problems
	for _, kind := range kinds() {
		dir := filepath.Join(configDir, kind.Dir())
		set, err := Discover(dir, kind, euid)
		if err != nil {
			bad = append(bad, problems(dir, err)...)
		}
		*all.of(kind) = set
	}
	if len(bad) > 0 {
		bad.sort()
		return All{}, bad
	}
	return all, nil
}

// AnyDirectory tells that configDir has a directory for hooks of any kind, be it
// an empty one.
func AnyDirectory(configDir string) bool {
	for _, kind := range kinds() {
		if _, err := look(filepath.Join(configDir, kind.Dir())); configDir != "" && err == nil {
			return true
		}
	}
	return false
}

// problems are those of one directory, or the one that it can't be read.
func problems(dir string, err error) Problems {
	var refused Problems
	if errors.As(err, &refused) {
		return refused
	}
	var open *fs.PathError // its path is the problem's
	if errors.As(err, &open) {
		err = open.Err
	}
	return Problems{{Path: dir, Reason: err.Error()}}
}

func (a *All) of(kind Kind) *Set {
	switch kind {
	case Step:
		return &a.Steps
	case Companion:
		return &a.Companions
	}
	return &a.Phases
}

// Waves is how many waves the steps make: those of one order are one.
func (a All) Waves() int {
	n := 0
	for i, h := range a.Steps.Hooks { // in order
		if i == 0 || h.Order != a.Steps.Hooks[i-1].Order {
			n++
		}
	}
	return n
}

// Ignored are the paths that were passed over with a notice, directory by
// directory.
func (a All) Ignored() []string {
	var all []string
	for _, kind := range kinds() {
		all = append(all, a.of(kind).Ignored...)
	}
	return all
}

// Some tells that there is a hook of any kind.
func (a All) Some() bool {
	return len(a.Phases.Hooks)+len(a.Steps.Hooks)+len(a.Companions.Hooks) > 0
}
