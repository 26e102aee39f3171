package config

import (
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"drainit/budget"
	"drainit/signals"
)

// Config is the main job, validated.
type Config struct {
	Command  []string // empty for the plan alone, where none needs to be told
	Platform Platform
	Budget   budget.Input // but for the numbers of phases, companions and waves
	Strict   bool
	// StartTimeout bounds each lifecycle step's start; 0: nothing does.
	StartTimeout time.Duration

	StopSignal  syscall.Signal // 0: the signal that began the drain
	DrainOn     signals.Set
	Rewrites    signals.Rewrites
	SignalGroup bool
	Interactive string      // auto, always, never
	RemapExit   map[int]int // the workload's own final status, to the init's

	ProbeAddr                        string // empty: no listener
	ProbeAddrSet                     bool   // somebody asked for this address
	ReadyPath, LivePath, MetricsPath string
	UnreadyStatus                    int

	ConfigDir    string // empty: no hooks
	ConfigDirSet bool   // somebody asked for this directory
	Service      string // empty where there is no command

	// Report is where the shutdown report goes, an absolute path; empty: nowhere.
	// Not ReportSet, it is the default, which counts only where it is there.
	Report    string
	ReportSet bool

	// Control is the address of the control socket, @name or an absolute path;
	// empty: the default one, or none where ControlOff says so.
	Control    string
	ControlSet bool // somebody asked for this address, or for none
	ControlOff bool

	// Nested tells that another init runs above this one: what that one looks
	// after, hooks, probes, report and exit status, is left to it.
	Nested bool

	LogFormat   string
	LogLevel    slog.Level
	LogLevelSet bool
}

// split cuts at the first "--".
func split(args []string) line {
	for i, a := range args {
		if a == "--" {
			return line{args[:i], args[i+1:], true}
		}
	}
	return line{args: args}
}

// convert reads every setting and holds them against each other. The command
// may be empty, for a plan.
func (r *reader) convert(f *flags, command []string, w World) *Config {
	c := &Config{Command: command, Nested: r.nested}
	r.plan(c, f, w)
	r.signals(c, f)
	r.probe(c, f)
	r.rest(c, f)
	c.Report, c.ReportSet = r.report(f.Report)
	s := r.own("control", f.Control)
	c.Control, c.ControlSet = r.control(s), s.given
	c.ControlOff = s.value == none
	return c
}

// plan reads the figures.
func (r *reader) plan(c *Config, f *flags, w World) {
	p := r.oneOf(r.text("platform", f.Platform), "auto", append([]string{"auto"}, PlatformNames()...)...)
	if p == "auto" {
		c.Platform = Detect(w.Env, w.PID)
	} else {
		c.Platform = named(p, "it was set")
	}
	read := func(s setting, fallback time.Duration) budget.Value {
		return budget.Value{D: r.duration(s, fallback), Set: s.given}
	}
	figure := func(flag string, value *string, fallback time.Duration) budget.Value {
		return read(r.text(flag, value), fallback)
	}
	announce := c.Platform.Announce
	if r.nested {
		announce = 0 // the one above has announced already, and nobody asks this one
	}
	grace := figure("grace-period", f.GracePeriod, c.Platform.Grace)
	c.Budget = budget.Input{
		Grace:        grace,
		Unlimited:    !grace.Set && c.Platform.Grace == 0,
		Prestop:      figure("prestop", f.Prestop, 0),
		Headroom:     figure("headroom", f.Headroom, budget.DefaultHeadroom),
		Announce:     read(r.own("announce-delay", f.AnnounceDelay), announce),
		DrainBudget:  figure("drain-budget", f.DrainBudget, budget.DefaultDrainBudget),
		DrainTimeout: figure("drain-timeout", f.DrainTimeout, 0),
		StepTimeout:  figure("step-timeout", f.StepTimeout, budget.DefaultStepTimeout),
		Linger:       figure("linger", f.Linger, 0),
	}
	c.StartTimeout = r.limit("start-timeout", f.StartTimeout)
	c.Strict = r.on("strict-budget", f.StrictBudget)
}

// signals reads what starts the drain, what is forwarded and what stops.
func (r *reader) signals(c *Config, f *flags) {
	if s := r.text("stop-signal", f.StopSignal); s.given && !strings.EqualFold(s.value, "same") {
		sig, err := signals.Parse(s.value)
		if err == nil {
			err = signals.Stops(sig)
		}
		if err != nil {
			r.refuse(s, err.Error(), "a signal like TERM, QUIT or INT, or same")
		}
		c.StopSignal = sig
	}
	r.drainOn(c, f)
	c.Rewrites = signals.Rewrites{}
	for _, s := range r.list("rewrite", f.Rewrite) {
		if err := c.Rewrites.ParseRewrite(s.value); err != nil {
			r.refuse(s, err.Error(), "S:S, or S: to drop it")
		}
		from, _, _ := strings.Cut(s.value, ":")
		if sig, err := signals.Parse(from); err == nil && c.DrainOn.Has(sig) {
			r.refuse(s, signals.Name(sig)+" starts the drain, it is not forwarded",
				"--stop-signal says what the workload gets when it is to stop")
		}
	}
	c.SignalGroup = r.on("signal-group", f.SignalGroup)
	c.Interactive = r.oneOf(r.text("interactive", f.Interactive), "auto", "auto", "always", "never")
	r.remap(c, f)
}

// drainOn: TERM, INT and the named stop signal, unless it says otherwise.
func (r *reader) drainOn(c *Config, f *flags) {
	s := r.text("drain-on", f.DrainOn)
	if !s.given {
		c.DrainOn = signals.Of(syscall.SIGTERM, syscall.SIGINT)
		if signals.Receivable(c.StopSignal) == nil {
			c.DrainOn = c.DrainOn.With(c.StopSignal)
		}
		return
	}
	set, err := signals.ParseSet(s.value)
	if err != nil {
		r.refuse(s, err.Error(), "signals separated by commas, or none")
	}
	c.DrainOn = set
}

// remap reads N:M,...
func (r *reader) remap(c *Config, f *flags) {
	s := r.own("remap-exit", f.RemapExit)
	if !s.given {
		return
	}
	c.RemapExit = make(map[int]int)
	if s.value == none {
		return
	}
	const hint = "pairs of exit statuses from 0 to 255: 143:0,130:0"
	for pair := range strings.SplitSeq(s.value, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(pair), ":")
		n, errN := strconv.ParseUint(from, 10, 8)
		m, errM := strconv.ParseUint(to, 10, 8)
		if !ok || errN != nil || errM != nil {
			r.refuse(s, "not a list of N:M", hint)
			return
		}
		if _, twice := c.RemapExit[int(n)]; twice {
			r.refuse(s, "two rules for "+from, hint)
			return
		}
		c.RemapExit[int(n)] = int(m)
	}
}

// rest reads what remains.
func (r *reader) rest(c *Config, f *flags) {
	c.ConfigDir, c.ConfigDirSet = r.configDir(f.ConfigDir)
	if len(c.Command) > 0 {
		c.Service = filepath.Base(c.Command[0])
	}
	if s := r.text("service", f.Service); s.given {
		c.Service = s.value
		if s.value == "" {
			r.refuse(s, "empty", "")
		}
	}
	c.LogFormat = r.oneOf(r.text("log-format", f.LogFormat), "auto", "auto", "text", "json")
	s := r.text("log-level", f.LogLevel)
	level := r.oneOf(s, "info", "debug", "info", "warn", "error")
	_ = c.LogLevel.UnmarshalText([]byte(level)) // one of four known words
	c.LogLevelSet = s.given
}
