package config

import (
	"strconv"
	"time"
)

// Platform is what the container runs on. It sets two defaults and nothing
// else.
type Platform struct {
	Name     string
	Why      string        // what told so, for the log
	Grace    time.Duration // assumed; 0: no limit
	Announce time.Duration
}

// platforms and their defaults: terminationGracePeriodSeconds; the container
// agent's and Fargate's stopTimeout; Cloud Run's container contract; Fly's and
// Nomad's kill_timeout; systemd's DefaultTimeoutStopSec; docker stop's timeout.
// Where a balancer learns of the stop by a failing readiness or by a removed
// endpoint, readiness fails for a while first.
var platforms = [...]Platform{
	{Name: "kubernetes", Grace: 30 * time.Second, Announce: 5 * time.Second},
	{Name: "ecs", Grace: 30 * time.Second, Announce: 5 * time.Second},
	{Name: "cloudrun", Grace: 10 * time.Second},
	{Name: "fly", Grace: 5 * time.Second},
	{Name: "nomad", Grace: 5 * time.Second},
	{Name: "systemd", Grace: 90 * time.Second},
	{Name: "docker", Grace: 10 * time.Second},
	{Name: "none"},
}

// PlatformNames returns what --platform takes beside auto.
func PlatformNames() []string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.Name
	}
	return names
}

// named returns the platform with why it was chosen.
func named(name, why string) Platform {
	for _, p := range platforms {
		if p.Name == name {
			p.Why = why
			return p
		}
	}
	return Platform{Name: name, Why: why}
}

// signs are the variables by which platforms make themselves known.
var signs = [...]struct{ variable, platform string }{
	{"KUBERNETES_SERVICE_HOST", "kubernetes"},
	{"ECS_CONTAINER_METADATA_URI_V4", "ecs"},
	{"ECS_CONTAINER_METADATA_URI", "ecs"},
	{"K_SERVICE", "cloudrun"},
	{"FLY_APP_NAME", "fly"},
	{"NOMAD_ALLOC_ID", "nomad"},
}

// Detect reads what the platform itself has set.
func Detect(env func(string) (string, bool), pid int) Platform {
	for _, s := range signs {
		if v, ok := env(s.variable); ok && v != "" {
			return named(s.platform, s.variable+" is set")
		}
	}
	// systemd sets it for the process that it starts, and what that starts
	// inherits it: only our own number counts (systemd.exec(5)).
	if v, ok := env("SYSTEMD_EXEC_PID"); ok && v == strconv.Itoa(pid) {
		return named("systemd", "SYSTEMD_EXEC_PID is the init's own")
	}
	if pid == 1 {
		return named("docker", "the init is PID 1")
	}
	return named("none", "the init is not PID 1, and no platform has made itself known")
}
