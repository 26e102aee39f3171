package hooks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Call is one call of a hook: what it is told about itself and the workload.
type Call struct {
	Kind           Kind
	Hook           string        // the hook's name
	Allowed        time.Duration // how long it may take; below 0 counts as 0
	Unbounded      bool          // nothing bounds it, and Allowed does not count; a companion never is
	Workload       string        // starting, running or exited
	WorkloadPID    int           // 0: there is none yet
	WorkloadStatus string        // "" unless exited
	Reason         string        // TERM, INT, drain, exited ...
	Service        string
	Socket         string // the control address; "" where there is none
}

// Environment is base without the variables in twins (they are flags of the init
// and would speak to any drainit that the hook runs), with the call's variables
// behind it. Whatever base held under those names is gone, given now or not: it
// spoke of another init. Neither base nor twins is changed.
//
// DRAINIT_ALLOWED has seconds with three decimals, DRAINIT_ALLOWED_MS whole
// milliseconds, both rounded down; neither is there where nothing bounds the
// call. DRAINIT_WORKLOAD_PID is empty where there is
// no workload: "kill 0" would reach the hook's own group. DRAINIT_SOCKET is only
// there with a Socket, DRAINIT_WORKLOAD_STATUS only once the workload has exited.
func Environment(base []string, twins []string, c Call) []string {
	own := c.variables()
	env := make([]string, 0, len(base)+len(own))
	for _, entry := range base {
		key, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(twins, key) && !slices.ContainsFunc(own, func(v variable) bool { return v.key == key }) {
			env = append(env, entry)
		}
	}
	for _, v := range own {
		if !v.absent {
			env = append(env, v.key+"="+v.value)
		}
	}
	return env
}

// variable is one that the init answers for, be it set in this call or absent.
type variable struct {
	key, value string
	absent     bool
}

func (c Call) variables() []variable {
	ms := max(c.Allowed, 0).Milliseconds()
	unbounded := c.Unbounded || c.Kind == Companion
	pid := ""
	if c.WorkloadPID > 0 {
		pid = strconv.Itoa(c.WorkloadPID)
	}
	return []variable{
		{"DRAINIT_SOCKET", c.Socket, c.Socket == ""},
		{"DRAINIT_HOOK", c.Hook, false},
		{"DRAINIT_HOOK_KIND", c.Kind.String(), false},
		{"DRAINIT_ALLOWED", fmt.Sprintf("%d.%03d", ms/1000, ms%1000), unbounded},
		{"DRAINIT_ALLOWED_MS", strconv.FormatInt(ms, 10), unbounded},
		{"DRAINIT_WORKLOAD", c.Workload, false},
		{"DRAINIT_WORKLOAD_PID", pid, false},
		{"DRAINIT_WORKLOAD_STATUS", c.WorkloadStatus, c.Workload != "exited"},
		{"DRAINIT_REASON", c.Reason, false},
		{"DRAINIT_SERVICE", c.Service, false},
	}
}
