package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDetect(t *testing.T) {
	type vars map[string]string
	for _, c := range []struct {
		env  vars
		pid  int
		want string
		why  string
	}{
		{vars{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, 1, "kubernetes", "KUBERNETES_SERVICE_HOST is set"},
		{vars{"ECS_CONTAINER_METADATA_URI_V4": "http://169.254.170.2/v4"}, 1, "ecs", "ECS_CONTAINER_METADATA_URI_V4 is set"},
		{vars{"ECS_CONTAINER_METADATA_URI": "http://169.254.170.2/v3"}, 7, "ecs", "ECS_CONTAINER_METADATA_URI is set"},
		{vars{"K_SERVICE": "shop"}, 1, "cloudrun", "K_SERVICE is set"},
		{vars{"FLY_APP_NAME": "shop"}, 500, "fly", "FLY_APP_NAME is set"},
		{vars{"NOMAD_ALLOC_ID": "1"}, 1, "nomad", "NOMAD_ALLOC_ID is set"},
		{vars{"SYSTEMD_EXEC_PID": "500"}, 500, "systemd", "SYSTEMD_EXEC_PID"},
		{vars{"SYSTEMD_EXEC_PID": "1"}, 1, "systemd", "SYSTEMD_EXEC_PID"}, // a nspawn container's init
		{vars{"SYSTEMD_EXEC_PID": "500"}, 501, "none", "not PID 1"},       // inherited
		{vars{"SYSTEMD_EXEC_PID": "500"}, 1, "docker", "PID 1"},           // inherited into a PID namespace
		{vars{"SYSTEMD_EXEC_PID": "0500"}, 500, "none", "not PID 1"},
		{nil, 1, "docker", "PID 1"},
		{nil, 2, "none", "not PID 1"},
		// Empty is not set.
		{vars{"KUBERNETES_SERVICE_HOST": ""}, 1, "docker", "PID 1"},
		{vars{"K_SERVICE": "", "FLY_APP_NAME": "shop"}, 1, "fly", "FLY_APP_NAME"},
		// Knative on Kubernetes is Kubernetes.
		{vars{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "K_SERVICE": "shop"}, 1, "kubernetes", "KUBERNETES"},
		{vars{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "SYSTEMD_EXEC_PID": "2"}, 2, "kubernetes", "KUBERNETES"},
	} {
		p := Detect(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }, c.pid)
		if p.Name != c.want || !strings.Contains(p.Why, c.why) {
			t.Errorf("%q as %d: %s since %q; want %s since %q", c.env, c.pid, p.Name, p.Why, c.want, c.why)
		}
	}
}

func TestPlatformDefaults(t *testing.T) {
	const s = time.Second
	table := []struct {
		name            string
		grace, announce time.Duration
	}{
		{"kubernetes", 30 * s, 5 * s}, {"ecs", 30 * s, 5 * s}, {"cloudrun", 10 * s, 0}, {"fly", 5 * s, 0},
		{"nomad", 5 * s, 0}, {"systemd", 90 * s, 0}, {"docker", 10 * s, 0}, {"none", 0, 0},
	}
	var names []string
	for _, c := range table {
		names = append(names, c.name)
		got := accepted(t, nil, "--platform", c.name)
		if got.Platform.Name != c.name || got.Platform.Why != "it was set" {
			t.Errorf("%s: %+v", c.name, got.Platform)
		}
		b := got.Budget
		if b.Grace.D != c.grace || b.Grace.Set || b.Announce.D != c.announce || b.Announce.Set {
			t.Errorf("%s: grace %+v, announce %+v; want %v, %v, assumed", c.name, b.Grace, b.Announce, c.grace, c.announce)
		}
		if b.Unlimited != (c.name == "none") {
			t.Errorf("%s: unlimited %v", c.name, b.Unlimited)
		}
		// Two defaults and nothing else.
		plain := accepted(t, nil, "--platform", "none")
		got.Platform, got.Budget.Grace, got.Budget.Announce, got.Budget.Unlimited = plain.Platform, plain.Budget.Grace, plain.Budget.Announce, true
		if got.Budget != plain.Budget || got.ProbeAddr != plain.ProbeAddr || got.DrainOn != plain.DrainOn {
			t.Errorf("%s changes more than two defaults: %+v", c.name, got)
		}
	}
	if got := PlatformNames(); !slices.Equal(got, names) {
		t.Errorf("%q, want %q", got, names)
	}
}

// What somebody set wins over what a platform stands for, and over what was
// detected.
func TestSetWinsOverPlatform(t *testing.T) {
	kube := map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
	if c := accepted(t, kube); c.Platform.Name != "kubernetes" || c.Budget.Grace.D != 30*time.Second {
		t.Errorf("detected: %+v", c.Platform)
	}
	if c := accepted(t, kube, "--platform", "auto"); c.Platform.Name != "kubernetes" {
		t.Errorf("auto: %+v", c.Platform)
	}
	if c := accepted(t, kube, "--platform", "fly"); c.Platform.Name != "fly" || c.Budget.Announce.D != 0 {
		t.Errorf("named: %+v, %+v", c.Platform, c.Budget.Announce)
	}
	c := accepted(t, kube, "--grace-period", "60", "--announce-delay", "0")
	if b := c.Budget; b.Grace.D != time.Minute || !b.Grace.Set || b.Announce.D != 0 || !b.Announce.Set {
		t.Errorf("figures: %+v", b)
	}
	if c := accepted(t, nil, "--grace-period", "20"); c.Budget.Unlimited || !c.Budget.Grace.Set {
		t.Errorf("a grace period on no platform: %+v", c.Budget)
	}
}
