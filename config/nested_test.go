package config

import (
	"testing"
	"time"

	"drainit/budget"
)

// An init below another leaves to that one what is its own, whatever variables it
// inherited from it; its own flags count.
func TestNested(t *testing.T) {
	env := map[string]string{
		"DRAINIT_SOCKET":     "@drainit/4026531836",
		"DRAINIT_CONFIG_DIR": "/srv", "DRAINIT_PROBE_ADDR": ":80", "DRAINIT_REPORT": "/srv/report", "DRAINIT_REMAP_EXIT": "143:0", "DRAINIT_CONTROL": "@outer",
		"DRAINIT_DRAIN_TIMEOUT": "3",
	}
	leftAlone := func(c *Config) {
		t.Helper()
		if !c.Nested || c.ConfigDir != "" || c.ProbeAddr != "" || c.ProbeAddrSet || c.Report != "" || c.ReportSet || len(c.RemapExit) != 0 {
			t.Errorf("%+v", c)
		}
		if c.Control != "" || c.ControlSet || c.ControlOff {
			t.Errorf("control %q, set %v, off %v", c.Control, c.ControlSet, c.ControlOff)
		}
	}
	c := accepted(t, env)
	leftAlone(c)
	if c.Budget.DrainTimeout.D == 0 {
		t.Error("other variables do not count any more")
	}
	leftAlone(accepted(t, map[string]string{"DRAINIT_SOCKET": "x"}))
	// What is not looked at can't be wrong, and none turns no control off.
	for _, name := range []string{"DRAINIT_CONFIG_DIR", "DRAINIT_PROBE_ADDR", "DRAINIT_REPORT", "DRAINIT_REMAP_EXIT", "DRAINIT_CONTROL"} {
		for _, value := range []string{"bad\n", "none"} {
			leftAlone(accepted(t, map[string]string{"DRAINIT_SOCKET": "x", name: value}))
		}
	}
	c = accepted(t, env, "--config-dir=/a", "--probe-addr=:81", "--report=/b", "--remap-exit=1:2", "--control=@inner")
	if !c.Nested || c.ConfigDir != "/a" || c.ProbeAddr != ":81" || !c.ProbeAddrSet || c.Report != "/b" || !c.ReportSet || c.RemapExit[1] != 2 || c.RemapExit[143] != 0 || c.Control != "@inner" || !c.ControlSet {
		t.Errorf("flags: %+v", c)
	}
	for _, env := range []map[string]string{nil, {"DRAINIT_SOCKET": ""}} {
		if c := accepted(t, env); c.Nested || c.ConfigDir == "" || c.ProbeAddr == "" || c.Report == "" {
			t.Errorf("%q: %+v", env, c)
		}
	}
}

// PID 1 has nobody above it in its namespace: an image that sets the variable
// loses neither its hooks nor its probes.
func TestNothingIsAbovePID1(t *testing.T) {
	env := map[string]string{"DRAINIT_SOCKET": "@drainit/1", "DRAINIT_CONFIG_DIR": "/srv", "DRAINIT_ANNOUNCE_DELAY": "3"}
	for pid, nested := range map[int]bool{1: false, 2: true} {
		r, err := Parse(World{
			Args: []string{"--", "app"}, PID: pid, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Run
		if c.Nested != nested || (c.ConfigDir == "/srv") == nested || (c.ProbeAddr != "") == nested || (c.Budget.Announce.D == 0) != nested {
			t.Errorf("PID %d: %+v", pid, c)
		}
	}
}

// The one above has announced already, and tells balancers: below it nothing is
// announced that no flag asks for.
func TestNestedAnnouncesNothing(t *testing.T) {
	above := map[string]string{"DRAINIT_SOCKET": "x", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
	for _, delay := range []string{"", "7", "bad"} {
		above["DRAINIT_ANNOUNCE_DELAY"] = delay
		if c := accepted(t, above); c.Budget.Announce != (budget.Value{}) || c.Budget.Grace.D != 30*time.Second {
			t.Errorf("%q: announce %+v, grace %+v", delay, c.Budget.Announce, c.Budget.Grace)
		}
		if c := accepted(t, above, "--announce-delay=2"); c.Budget.Announce != (budget.Value{D: 2 * time.Second, Set: true}) {
			t.Errorf("%q: announce %+v", delay, c.Budget.Announce)
		}
	}
	delete(above, "DRAINIT_SOCKET")
	above["DRAINIT_ANNOUNCE_DELAY"] = ""
	if c := accepted(t, above); c.Budget.Announce.D != 5*time.Second {
		t.Errorf("not below another: %+v", c.Budget.Announce)
	}
	// drainit drain in a program below asks the init above for what the variable says.
	above["DRAINIT_SOCKET"], above["DRAINIT_ANNOUNCE_DELAY"] = "x", "7"
	if r, _, err := ask(above, "drain"); err != nil || r.Client.AnnounceDelay == nil {
		t.Errorf("%+v, %v", r.Client, err)
	}
}
