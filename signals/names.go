// Package signals names signals, says which of them can be received, sent or
// passed on, and holds the program's only signal.Notify. It sends nothing.
package signals

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// Bounds of the signal numbers (signal(7)). The C library keeps the first
// real-time signals to itself, so that its SIGRTMIN is 34 (glibc); the numbers
// in names like RTMIN+3 count from there, as in kill(1) and bash.
const (
	Max   = 64
	rtMin = 34
)

// names holds the standard signals by number, without SIG, as signal(7) lists
// them for x86 and ARM.
var names = [...]string{
	1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS",
	8: "FPE", 9: "KILL", 10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE",
	14: "ALRM", 15: "TERM", 16: "STKFLT", 17: "CHLD", 18: "CONT", 19: "STOP",
	20: "TSTP", 21: "TTIN", 22: "TTOU", 23: "URG", 24: "XCPU", 25: "XFSZ",
	26: "VTALRM", 27: "PROF", 28: "WINCH", 29: "IO", 30: "PWR", 31: "SYS",
}

// aliases are other names in use for the same numbers.
var aliases = map[string]syscall.Signal{
	"IOT": syscall.SIGABRT, "POLL": syscall.SIGIO, "CLD": syscall.SIGCHLD,
}

// Name returns the name without SIG: TERM, RTMIN+3, RTMAX-2; a number that has
// no name, 0 and 32 among them, is returned in decimal.
func Name(s syscall.Signal) string {
	n := int(s)
	switch {
	case n > 0 && n < len(names):
		return names[n]
	case n == rtMin:
		return "RTMIN"
	case n == Max:
		return "RTMAX"
	case n > rtMin && n <= rtMin+15:
		return "RTMIN+" + strconv.Itoa(n-rtMin)
	case n > rtMin && n < Max:
		return "RTMAX-" + strconv.Itoa(Max-n)
	}
	return strconv.Itoa(n)
}

// Parse reads SIGTERM, TERM, term or 15, and the real-time signals as RTMIN+3
// or RTMAX-2. The error is one line without the setting's name.
func Parse(text string) (syscall.Signal, error) {
	name := strings.ToUpper(text)
	if n, err := strconv.ParseUint(name, 10, 16); err == nil {
		if n < 1 || n > Max {
			return 0, fmt.Errorf("no signal %s: the numbers go from 1 to %d", text, Max)
		}
		return syscall.Signal(n), nil
	}
	name = strings.TrimPrefix(name, "SIG")
	for n, known := range names {
		if known != "" && known == name {
			return syscall.Signal(n), nil
		}
	}
	if s, ok := aliases[name]; ok {
		return s, nil
	}
	if s, ok := realTime(name); ok {
		return s, nil
	}
	return 0, fmt.Errorf("unknown signal %q", text)
}

// realTime reads RTMIN, RTMIN+n, RTMAX and RTMAX-n.
func realTime(name string) (syscall.Signal, bool) {
	base, sign := rtMin, 1
	rest, ok := strings.CutPrefix(name, "RTMIN")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "RTMAX"); !ok {
			return 0, false
		}
		base, sign = Max, -1
	}
	if rest == "" {
		return syscall.Signal(base), true
	}
	if (rest[0] == '+') != (sign > 0) || (rest[0] != '+' && rest[0] != '-') {
		return 0, false
	}
	n, err := strconv.ParseUint(rest[1:], 10, 8)
	if err != nil || int(n) > Max-rtMin {
		return 0, false
	}
	return syscall.Signal(base + sign*int(n)), true
}
