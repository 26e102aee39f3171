package config

import (
	"reflect"
	"strconv"
	"strings"
)

// truths are the words that a switch takes, as kong does for the flag.
const truths = "true, 1, yes, false, 0 or no"

// truth reads one of them, in capitals too.
func truth(word string) (value, ok bool) {
	switch strings.ToLower(word) {
	case "true", "1", "yes":
		return true, true
	case "false", "0", "no":
		return false, true
	}
	return false, false
}

// wrong makes one line of what kong says, and adds the remedy for the commonest
// mistakes: a command that no "--" stands in front of, a verb that does not come
// first, and those that one argument shows alone.
func (v *verb) wrong(grammar reflect.Type, l line, err error) error {
	e := &Error{Text: oneLine(err.Error()), Hint: v.help() + " lists the flags"}
	loose, unknown := "", false // loose: the first that is neither a flag nor the value of one
	for i := 0; i < len(l.args) && loose == ""; i++ {
		a := l.args[i]
		name, value, valued := strings.Cut(a, "=")
		f, known := flagNamed(grammar, name)
		switch {
		case !strings.HasPrefix(a, "-"):
			loose = a
		case known:
			if bad := misused(f, name, value, valued, i == len(l.args)-1); bad != nil {
				return bad
			}
			if !valued && !isSwitch(f) {
				i++
			}
		case a == "-v" && v.name == "":
			return &Error{Text: "unknown flag -v", Hint: "--version prints the version, --log-level=debug logs more"}
		default:
			unknown = unknown || a != "-g" && a != "-h" && a != "--help"
		}
	}
	switch {
	case v.name == "" && isVerb(loose):
		e.Hint = "the verb stands first: drainit " + loose + " [flags]"
	case loose != "" && !unknown && !l.cut && v.command:
		e.Hint = "the command stands behind --: " + v.usage
	}
	return e
}

// misused is what is wrong with a flag that there is; nil: nothing that shows here.
func misused(f reflect.StructField, name, value string, valued, last bool) error {
	_, word := truth(value)
	switch {
	case !strings.HasPrefix(name, "--"):
		return &Error{Text: "unknown flag " + name, Hint: "two dashes: -" + name}
	case valued && isSwitch(f) && !word:
		return &Error{Text: name + " " + strconv.Quote(value) + ": neither true nor false", Hint: truths}
	case !valued && !isSwitch(f) && last:
		return &Error{Text: name + ": no value behind it", Hint: name + "=" + f.Tag.Get("placeholder")}
	}
	return nil
}

// flagNamed finds the flag that name means, with two dashes or with one.
func flagNamed(grammar reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range fields(grammar) {
		if flag := flagName(f.Name); name == "--"+flag || name == "-"+flag {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func isSwitch(f reflect.StructField) bool {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Bool
}

// unknownVerb is the mistake in the first argument, with the verb that may have
// been meant.
func unknownVerb(l line) error {
	name, hint := l.args[0], ""
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
		if near(name, v.name) {
			hint = "did you mean drainit " + v.name + "? "
		}
	}
	if hint == "" && !l.cut {
		hint = "a command stands behind --: " + mainJob().usage + "; "
	}
	return &Error{Text: "unknown verb " + strconv.Quote(name), Hint: hint + "the verbs are " + strings.Join(names, ", ")}
}

// near tells that a becomes b by one letter more, less or another, or by two that
// change places.
func near(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a)+len(b) > 0 && len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// oneLine keeps an error on its line, whatever an argument holds: what can't be
// printed is written as in a Go string.
func oneLine(text string) string {
	quoted := strconv.Quote(text)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}
