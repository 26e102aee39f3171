package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// setting is one value as somebody gave it, and where: the name of the flag or
// of the variable, which is what an error names.
type setting struct {
	name  string
	value string
	given bool
}

// reader asks flags first, then their twins. The first mistake is kept; what
// is read after it is not looked at any more.
type reader struct {
	env    func(string) (string, bool)
	nested bool // another init runs above this one
	err    *Error
}

// none turns a setting off.
const none = "none"

// socketVariable is set by an init for all that it starts.
const socketVariable = "DRAINIT_SOCKET"

// below tells that another init runs above. PID 1 has nobody above it in its
// namespace, whatever an image or the one who started it left in the environment.
func below(w World) bool {
	v, ok := w.Env(socketVariable)
	return ok && v != "" && w.PID != 1
}

// text returns a setting. An empty variable counts as not set: compose files
// and charts pass on what is not there as empty.
func (r *reader) text(flag string, value *string) setting {
	if value != nil {
		return setting{"--" + flag, *value, true}
	}
	name := twin(flag)
	if v, ok := r.env(name); ok && v != "" {
		return setting{name, v, true}
	}
	return setting{name: "--" + flag}
}

// own is text, but for what must not be taken over from an init above: its
// variables are in the environment of all that it starts, and meant for it. Below
// one, only the flag counts.
func (r *reader) own(flag string, value *string) setting {
	if r.nested && value == nil {
		return setting{name: "--" + flag}
	}
	return r.text(flag, value)
}

// list returns a setting that may be repeated; a variable holds one value a line.
func (r *reader) list(flag string, values []string) []setting {
	var all []setting
	for _, v := range values {
		all = append(all, setting{"--" + flag, v, true})
	}
	if all != nil {
		return all
	}
	s := r.text(flag, nil)
	for line := range strings.SplitSeq(s.value, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, setting{s.name, line, true})
		}
	}
	return all
}

// refuse notes a mistake.
func (r *reader) refuse(s setting, why, hint string) {
	if r.err == nil {
		r.err = &Error{Text: fmt.Sprintf("%s %q: %s", s.name, s.value, why), Hint: hint}
	}
}

// maxDuration keeps sums of durations far from overflowing; no grace period is
// longer.
const maxDuration = 366 * 24 * time.Hour

// duration reads Go's notation, or a bare number of seconds.
func (r *reader) duration(s setting, fallback time.Duration) time.Duration {
	if !s.given {
		return fallback
	}
	d, err := ParseDuration(s.value)
	if err != nil {
		r.refuse(s, err.Error(), "a duration is a number of seconds, or like 500ms or 1m30s")
	}
	return d
}

// limit reads a duration that bounds something, or none, which is 0 as when it
// is not given. A limit of 0 is refused: one reader takes it for no time, the
// next for no limit.
func (r *reader) limit(flag string, value *string) time.Duration {
	s := r.text(flag, value)
	if !s.given || s.value == none {
		return 0
	}
	d := r.duration(s, 0)
	if d == 0 {
		r.refuse(s, "not a positive duration", "a duration like 30s, or none for no limit")
	}
	return d
}

// maybe reads a duration that somebody else has the default for.
func (r *reader) maybe(flag string, value *string) *time.Duration {
	s := r.text(flag, value)
	if !s.given {
		return nil
	}
	d := r.duration(s, 0)
	return &d
}

// ParseDuration reads a duration of a setting: 500ms, 1m30s, or a bare number,
// which is seconds. Negative ones and those of more than a year are errors.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, numErr := strconv.ParseFloat(text, 64)
		if numErr != nil || strings.ContainsAny(text, "xXpP_nNiI") {
			return 0, fmt.Errorf("not a duration")
		}
		if !(seconds <= maxDuration.Seconds()) {
			return 0, fmt.Errorf("longer than a year")
		}
		d = time.Duration(seconds * float64(time.Second))
		if seconds < 0 {
			d = -1
		}
	}
	switch {
	case d < 0:
		return 0, fmt.Errorf("negative")
	case d > maxDuration:
		return 0, fmt.Errorf("longer than a year")
	}
	return d, nil
}

// on reads a switch: the flag, or its variable, in the words that kong takes
// for the flag.
func (r *reader) on(flag string, value *bool) bool {
	if value != nil {
		return *value
	}
	s := r.text(flag, nil)
	if !s.given {
		return false
	}
	on, ok := truth(s.value)
	if !ok {
		r.refuse(s, "neither true nor false", truths)
	}
	return on
}

// oneOf reads a word out of a list.
func (r *reader) oneOf(s setting, fallback string, words ...string) string {
	if !s.given {
		return fallback
	}
	for _, w := range words {
		if s.value == w {
			return w
		}
	}
	r.refuse(s, "unknown", "one of "+strings.Join(words, ", "))
	return fallback
}
