package hooks

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEnvironment(t *testing.T) {
	base := []string{
		"PATH=/bin", "DRAINIT_GRACE_PERIOD=9s", "DRAINIT_PORT=tcp://10.0.0.1:80", "DRAINIT_HOOK=outer", "EMPTY=", "noequals",
		"DRAINIT_SOCKET=@outer", "DRAINIT_WORKLOAD_STATUS=3", "DRAINIT_FENCE_TOKEN=42", "DRAINIT_SERVICE=flag", "PATH=/again", "=odd",
		"DRAINIT_HOOK_KIND=companion", "DRAINIT_ALLOWED=9.000", "DRAINIT_ALLOWED_MS=9000",
	}
	twins := []string{"DRAINIT_GRACE_PERIOD", "DRAINIT_SERVICE", "DRAINIT_UNSET"}
	before := slices.Clone(base)
	kept := []string{"PATH=/bin", "DRAINIT_PORT=tcp://10.0.0.1:80", "EMPTY=", "noequals", "DRAINIT_FENCE_TOKEN=42", "PATH=/again", "=odd"}
	for _, c := range []struct {
		name string
		call Call
		want []string
	}{
		{"running", Call{Phase, "hand-over", 1500 * time.Millisecond, false, "running", 7, "", "TERM", "web", "@drainit/1"}, []string{
			"DRAINIT_SOCKET=@drainit/1", "DRAINIT_HOOK=hand-over", "DRAINIT_HOOK_KIND=phase", "DRAINIT_ALLOWED=1.500", "DRAINIT_ALLOWED_MS=1500", "DRAINIT_WORKLOAD=running",
			"DRAINIT_WORKLOAD_PID=7", "DRAINIT_REASON=TERM", "DRAINIT_SERVICE=web"}},
		{"exited", Call{Step, "a", 10*time.Second - 1, false, "exited", 7, "143", "exited", "web", ""}, []string{
			"DRAINIT_HOOK=a", "DRAINIT_HOOK_KIND=step", "DRAINIT_ALLOWED=9.999", "DRAINIT_ALLOWED_MS=9999", "DRAINIT_WORKLOAD=exited",
			"DRAINIT_WORKLOAD_PID=7", "DRAINIT_WORKLOAD_STATUS=143", "DRAINIT_REASON=exited", "DRAINIT_SERVICE=web"}},
		{"starting", Call{Hook: "a", Allowed: -1, Workload: "starting"}, []string{
			"DRAINIT_HOOK=a", "DRAINIT_HOOK_KIND=phase", "DRAINIT_ALLOWED=0.000", "DRAINIT_ALLOWED_MS=0", "DRAINIT_WORKLOAD=starting",
			"DRAINIT_WORKLOAD_PID=", "DRAINIT_REASON=", "DRAINIT_SERVICE="}},
		{"without a bound", Call{Kind: Step, Hook: "a", Allowed: 1, Unbounded: true, Workload: "starting"}, []string{
			"DRAINIT_HOOK=a", "DRAINIT_HOOK_KIND=step", "DRAINIT_WORKLOAD=starting",
			"DRAINIT_WORKLOAD_PID=", "DRAINIT_REASON=", "DRAINIT_SERVICE="}},
		{"companion", Call{Kind: Companion, Hook: "a", Allowed: 1, Workload: "running", WorkloadPID: 7}, []string{
			"DRAINIT_HOOK=a", "DRAINIT_HOOK_KIND=companion", "DRAINIT_WORKLOAD=running",
			"DRAINIT_WORKLOAD_PID=7", "DRAINIT_REASON=", "DRAINIT_SERVICE="}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Environment(base, twins, c.call)
			if want := append(slices.Clone(kept), c.want...); !slices.Equal(got, want) {
				t.Errorf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		})
	}
	if !slices.Equal(base, before) {
		t.Error("base was changed")
	}
}
