package report

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// line is JSON that is being written. encoding/json would write maps in
// alphabetical order and 0.30000000000000004 for what is a third of a second.
type line struct {
	b    []byte
	text int // no string is longer, as it stands in the line
}

// full: it does not fit, so what is still to come makes no difference.
func (l *line) full() bool { return len(l.b) > MaxLine }

func (l *line) open(c byte)  { l.b = append(l.b, c) }
func (l *line) close(c byte) { l.b = append(l.b, c) }

// item begins the next member of an object or an array.
func (l *line) item() *line {
	if last := l.b[len(l.b)-1]; last != '{' && last != '[' {
		l.b = append(l.b, ',')
	}
	return l
}

// key begins the next member of an object.
func (l *line) key(name string) *line {
	l.item().string(name)
	l.b = append(l.b, ':')
	return l
}

// some is a member that is left out where it is empty.
func (l *line) some(key, value string) {
	if value != "" {
		l.key(key).string(value)
	}
}

func (l *line) int(n int)   { l.b = strconv.AppendInt(l.b, int64(n), 10) }
func (l *line) bool(v bool) { l.b = strconv.AppendBool(l.b, v) }

// century bounds what is written as a number of seconds.
const century = 100 * 366 * 24 * 3600

// seconds writes at most three decimals. JSON has no word for what is no
// number, and nothing takes less than no time: 0.
func (l *line) seconds(s float64) {
	if !(s > 0) {
		s = 0
	}
	l.b = strconv.AppendFloat(l.b, math.Round(min(s, century)*1000)/1000, 'f', -1, 64)
}

// cut marks a string that is not all there.
const cut = "…"

// string writes a string, or as much of it as there is place for.
func (l *line) string(s string) {
	l.b = append(l.b, '"')
	from := len(l.b)
	room := from // where the mark goes if the string has to be cut
	for _, r := range s {
		l.b = appendRune(l.b, r)
		if len(l.b)-from > l.text {
			l.b = append(l.b[:room], cut...)
			break
		}
		if len(l.b)-from <= l.text-len(cut) {
			room = len(l.b)
		}
	}
	l.b = append(l.b, '"')
}

// appendRune writes one character of a string (RFC 8259, section 7). Control
// characters are escaped, DEL and those above it too: a report is read on
// terminals. What is no UTF-8 came out of the string as U+FFFD.
func appendRune(b []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(b, '\\', byte(r))
	case r == '\n':
		return append(b, '\\', 'n')
	case r == '\t':
		return append(b, '\\', 't')
	case r < ' ' || r >= 0x7f && r < 0xa0:
		const hex = "0123456789abcdef"
		return append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
	}
	return utf8.AppendRune(b, r)
}
