package hooks

import (
	"fmt"
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
// their paths. As an error it is one line, and so is Hint.
type Problems []Problem

// Error names every offender with its reason, in order, on one line.
func (p Problems) Error() string {
	all := make([]string, len(p))
	for i, one := range p {
		all[i] = strconv.Quote(one.Path) + ": " + one.Reason
	}
	return "hooks refused: " + strings.Join(all, "; ")
}

// Hint is the remedy, "" where there is none. Where remedies differ it is that of
// the first problem that has one, with its path, and how many others there are:
// the next start tells them.
func (p Problems) Hint() string {
	var first Problem
	others := map[string]bool{}
	for _, one := range p {
		switch {
		case first.Hint == "":
			first = one
		case one.Hint != "" && one.Hint != first.Hint:
			others[one.Hint] = true
		}
	}
	if len(others) == 0 {
		return first.Hint
	}
	many := ""
	if len(others) > 1 {
		many = "s"
	}
	return fmt.Sprintf("%q: %s; and %d more hint%s, for the others", first.Path, first.Hint, len(others), many)
}

// sort keeps what was found about one file in the order in which it was found.
func (p Problems) sort() {
	sort.SliceStable(p, func(i, j int) bool { return p[i].Path < p[j].Path })
}
