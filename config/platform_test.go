package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"drainit/budget"
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

// signsOf are the ways in which each platform makes itself known, in the order in
// which they count.
func signsOf() []struct {
	platform, variable, value, why string
	pid                            int
} {
	type sign = struct {
		platform, variable, value, why string
		pid                            int
	}
	return []sign{
		{"kubernetes", "KUBERNETES_SERVICE_HOST", "10.0.0.1", "KUBERNETES_SERVICE_HOST is set", 7},
		{"ecs", "ECS_CONTAINER_METADATA_URI_V4", "http://169.254.170.2/v4/1", "ECS_CONTAINER_METADATA_URI_V4 is set", 7},
		{"ecs", "ECS_CONTAINER_METADATA_URI", "http://169.254.170.2/v3/1", "ECS_CONTAINER_METADATA_URI is set", 7},
		{"cloudrun", "K_SERVICE", "shop", "K_SERVICE is set", 7},
		{"fly", "FLY_APP_NAME", "shop", "FLY_APP_NAME is set", 7},
		{"nomad", "NOMAD_ALLOC_ID", "1", "NOMAD_ALLOC_ID is set", 7},
		{"systemd", "SYSTEMD_EXEC_PID", "7", "SYSTEMD_EXEC_PID is the init's own", 7},
		{"docker", "X", "x", "the init is PID 1", 1},
		{"none", "X", "x", "the init is not PID 1, and no platform has made itself known", 7},
	}
}

// Each sign counts whatever the later ones say, as PID 1 and not, and the earlier
// ones when they are empty.
func TestDetectionOrder(t *testing.T) {
	all := signsOf()
	for i, s := range all {
		env := map[string]string{}
		for j, other := range all {
			switch {
			case j < i:
				env[other.variable] = ""
			case other.variable != "SYSTEMD_EXEC_PID" || s.pid == 7:
				env[other.variable] = other.value
			}
		}
		p := Detect(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, s.pid)
		if p.Name != s.platform || p.Why != s.why {
			t.Errorf("%q as %d: %s since %q; want %s since %q", env, s.pid, p.Name, p.Why, s.platform, s.why)
		}
	}
	var names []string
	for _, s := range all {
		if !slices.Contains(names, s.platform) {
			names = append(names, s.platform)
		}
	}
	if !slices.Equal(names, PlatformNames()) {
		t.Errorf("signs of %q, platforms %q", names, PlatformNames())
	}
}

// What somebody set wins over what a platform stands for, on each of them, be it
// detected or named; a named one wins over the detected one.
func TestSetWinsOverPlatform(t *testing.T) {
	for _, found := range signsOf() {
		env := map[string]string{found.variable: found.value}
		parse := func(variables map[string]string, flags ...string) *Config {
			maps.Copy(variables, env)
			r, err := Parse(World{
				Args: append(flags, "--", "app"), PID: found.pid,
				Env: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
			})
			if err != nil {
				t.Fatalf("%s, %q: %v", found.platform, flags, err)
			}
			return r.Run
		}
		for _, c := range []*Config{parse(map[string]string{}), parse(map[string]string{}, "--platform=auto"), parse(map[string]string{"DRAINIT_PLATFORM": "auto"})} {
			if c.Platform.Name != found.platform || c.Platform.Why != found.why || c.Budget.Grace.D != c.Platform.Grace || c.Budget.Grace.Set {
				t.Errorf("%s: %+v, grace %+v", found.platform, c.Platform, c.Budget.Grace)
			}
		}
		for _, name := range PlatformNames() {
			for _, c := range []*Config{parse(map[string]string{}, "--platform", name), parse(map[string]string{"DRAINIT_PLATFORM": name})} {
				if c.Platform != named(name, "it was set") || c.Budget.Announce.D != c.Platform.Announce || c.Budget.Unlimited != (name == "none") {
					t.Errorf("%s on %s: %+v, %+v", name, found.platform, c.Platform, c.Budget)
				}
			}
			for _, c := range []*Config{
				parse(map[string]string{}, "--platform", name, "--grace-period=61", "--announce-delay=0.5"),
				parse(map[string]string{"DRAINIT_GRACE_PERIOD": "61", "DRAINIT_ANNOUNCE_DELAY": "0.5"}, "--platform", name),
			} {
				b := c.Budget
				if b.Grace != (budget.Value{D: 61 * time.Second, Set: true}) || b.Announce != (budget.Value{D: time.Second / 2, Set: true}) || b.Unlimited {
					t.Errorf("%s on %s: grace %+v, announce %+v, unlimited %v", name, found.platform, b.Grace, b.Announce, b.Unlimited)
				}
			}
		}
		// 0 is a figure too.
		if b := parse(map[string]string{}, "--grace-period=0", "--announce-delay=0").Budget; !b.Grace.Set || b.Grace.D != 0 || !b.Announce.Set || b.Announce.D != 0 || b.Unlimited {
			t.Errorf("%s: grace %+v, announce %+v", found.platform, b.Grace, b.Announce)
		}
	}
}
