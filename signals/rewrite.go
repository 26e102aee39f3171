package signals

import (
	"fmt"
	"strings"
	"syscall"
)

// Rewrites says what is forwarded in place of a signal: another one, or
// nothing (0). A signal that is not a key is forwarded as it is. The nil map
// rewrites nothing.
type Rewrites map[syscall.Signal]syscall.Signal

// ParseRewrite reads one S:S or S: into r. The error is one line without the
// setting's name: an unknown signal, one that can't be received, a second rule
// for the same signal.
func (r Rewrites) ParseRewrite(text string) error {
	from, to, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("%q has no colon", text)
	}
	received, err := Parse(from)
	if err != nil {
		return err
	}
	if err := Receivable(received); err != nil {
		return err
	}
	if _, twice := r[received]; twice {
		return fmt.Errorf("two rules for %s", Name(received))
	}
	if to == "" {
		r[received] = 0
		return nil
	}
	sent, err := Parse(to)
	if err != nil {
		return err
	}
	r[received] = sent
	return nil
}

// Forward returns what is sent to the workload when sig was received; 0 is
// nothing.
func (r Rewrites) Forward(sig syscall.Signal) syscall.Signal {
	if to, ok := r[sig]; ok {
		return to
	}
	return sig
}

// ParseSet reads a list of signals separated by commas, each of which can be
// received, or none.
func ParseSet(text string) (Set, error) {
	if strings.EqualFold(text, "none") {
		return 0, nil
	}
	var s Set
	for _, word := range strings.Split(text, ",") {
		sig, err := Parse(strings.TrimSpace(word))
		if err != nil {
			return 0, err
		}
		if err := Receivable(sig); err != nil {
			return 0, err
		}
		s = s.With(sig)
	}
	return s, nil
}
