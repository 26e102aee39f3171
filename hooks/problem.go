package hooks

import (
	"sort"
	"strconv"
	"strings"
)

// Problem is one refused file, or a refused directory.
type Problem struct {
	Path   string // as in [Hook]
	Reason string // what is wrong, one line, without the path
	Hint   string // what to do about it; "" where nothing obvious is
}

// Problems are all refused files of a directory, or of all of them, in order of
// their paths. As an error it is one line; Hint says what to do about the first that has a remedy.
type Problems []Problem

// Error names every offender with its reason, in order, on one line.
func (p Problems) Error() string {
	all := make([]string, len(p))
	for i, one := range p {
		all[i] = strconv.Quote(one.Path) + ": " + one.Reason
	}
	return "hooks refused: " + strings.Join(all, "; ")
}

// Hint is one remedy, that of the first problem that has one, else "".
func (p Problems) Hint() string {
	for _, one := range p {
		if one.Hint != "" {
			return one.Hint
		}
	}
	return ""
}

// sort keeps what was found about one file in the order in which it was found.
func (p Problems) sort() {
	sort.SliceStable(p, func(i, j int) bool { return p[i].Path < p[j].Path })
}
