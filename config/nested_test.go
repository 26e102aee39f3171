package config

import "testing"

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
