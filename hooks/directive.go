package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// directiveLines is how far into a file directives are looked for.
const directiveLines = 20

// directives are what a hook declares about itself.
type directives struct {
	order       int
	ordered     bool // order was declared
	maxDuration time.Duration
}

// word is one directive: the kinds of hook that may carry it, and what its value
// sets. This table is the whole grammar; what a kind may say is a row or a kind
// in a row.
type word struct {
	name  string
	kinds []Kind
	set   func(d *directives, value string) error
}

func words() []word {
	return []word{
		{"max-duration", []Kind{Phase, Step}, func(d *directives, v string) (err error) {
			d.maxDuration, err = parseDuration(v)
			return err
		}},
		{"order", kinds(), func(d *directives, v string) (err error) {
			d.order, err = parseOrder(v)
			d.ordered = err == nil
			return err
		}},
	}
}

// directiveHint lists what a kind of hook may say.
func directiveHint(kind Kind) string {
	var names []string
	for _, w := range words() {
		if slices.Contains(w.kinds, kind) {
			names = append(names, w.name+"=")
		}
	}
	return "a " + kind.String() + " knows: " + strings.Join(names, ", ")
}

// parseDirectives reads the comment lines among the first directiveLines lines
// of head: "# drainit: max-duration=5s order=10". The error is one line and
// begins with the line's number.
func parseDirectives(kind Kind, head []byte) (directives, error) {
	var d directives
	if len(head) == 0 || isELF(head) {
		return d, nil
	}
	lines := bytes.SplitN(wholeLines(head), []byte("\n"), directiveLines+1)
	lines = lines[:min(len(lines), directiveLines)]
	// Other binary formats (binfmt_misc) have no comments either. A script may
	// well carry a payload, which does not count behind "#!".
	if !bytes.HasPrefix(head, []byte("#!")) && bytes.IndexByte(bytes.Join(lines, nil), 0) >= 0 {
		return d, nil
	}
	seen := map[string]int{}
	for i, line := range lines {
		text, ok := directive(string(line))
		if !ok {
			continue
		}
		if err := d.line(kind, text, i+1, seen); err != nil {
			return directives{}, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return d, nil
}

// wholeLines cuts head to headSize bytes and then, if the file went on, back to
// the last whole line: half a directive can read like a whole one.
func wholeLines(head []byte) []byte {
	if len(head) <= headSize {
		return head
	}
	return head[:bytes.LastIndexByte(head[:headSize], '\n')+1]
}

// directive returns what follows "drainit:" in a comment line. Prose that
// mentions drainit further on is no directive.
func directive(line string) (text string, ok bool) {
	line = strings.TrimLeft(line, " \t")
	for _, marker := range []string{"#", "//", ";", "--"} {
		if rest, is := strings.CutPrefix(line, marker); is {
			rest = strings.TrimLeft(rest, marker[:1]+" \t") // "##", "///", ";;" too
			return strings.CutPrefix(rest, "drainit:")
		}
	}
	return "", false
}

// line takes in one directive's words. seen holds the line on which a word stood
// first: said twice, one of the two would be lost silently.
func (d *directives) line(kind Kind, text string, number int, seen map[string]int) error {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return errors.New("directive without a word")
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		if first := seen[name]; first != 0 {
			return fmt.Errorf("%q stands on line %d already", name, first)
		}
		seen[name] = number
		if err := d.word(kind, name, value); err != nil {
			return err
		}
	}
	return nil
}

func (d *directives) word(kind Kind, name, value string) error {
	for _, w := range words() {
		if w.name == name && slices.Contains(w.kinds, kind) {
			return w.set(d, value)
		}
	}
	return fmt.Errorf("unknown word %q", name)
}

// parseDuration reads a positive duration: Go's, or a bare number of seconds, as
// on the command line.
func parseDuration(s string) (time.Duration, error) {
	text := s
	if strings.Trim(s, "0123456789.") == "" {
		text = s + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("max-duration %q is not a duration", s)
	}
	if d <= 0 {
		return 0, fmt.Errorf("max-duration %q is not positive", s)
	}
	return d, nil
}
