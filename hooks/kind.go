package hooks

import "fmt"

// Kind is what a directory's hooks are for, and so which directives they may
// carry (see the table in directive.go).
type Kind int

const (
	// Phase is a hook of phases.d: it runs once, before the stop signal.
	Phase Kind = iota
	// Step is a lifecycle step, a hook of lifecycle.d: it is called with start
	// before the workload is started, and with stop after its end.
	Step
	// Companion is a hook of background.d: it runs beside the workload.
	Companion
)

// kinds are all of them.
func kinds() []Kind { return []Kind{Phase, Step, Companion} }

// String names one hook of the kind, as it stands in messages and in
// DRAINIT_HOOK_KIND.
func (k Kind) String() string {
	switch k {
	case Phase:
		return "phase"
	case Step:
		return "step"
	case Companion:
		return "companion"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Dir is the name of the directory that holds the kind's hooks.
func (k Kind) Dir() string {
	switch k {
	case Phase:
		return "phases.d"
	case Step:
		return "lifecycle.d"
	case Companion:
		return "background.d"
	}
	return ""
}
