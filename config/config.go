package config

import (
	"io"
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
	Command  []string
	Platform Platform
	Budget   budget.Input // but for the number of phases
	Strict   bool

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

	ConfigDir string // empty: no hooks
	Service   string

	LogFormat   string
	LogLevel    slog.Level
	LogLevelSet bool
}

// World is what the settings are read from.
type World struct {
	Args []string // without the program's own name
	Env  func(string) (string, bool)
	PID  int
	Help io.Writer // where --help is printed
}

// Result is what the command line asks for.
type Result struct {
	Version bool // print the version
	Run     *Config
}

// Parse reads flags and variables. The argument list is cut at its first "--"
// before anything is looked at. Errors are *Error, or ErrHelp.
func Parse(w World) (Result, error) {
	args, command, cut := split(w.Args)
	if !cut && len(args) > 0 && args[0] == "version" {
		return parseVersion(args[1:])
	}
	f, err := parseFlags(args, cut, w.Help)
	if err != nil {
		return Result{}, err
	}
	if f.Version {
		return Result{Version: true}, nil
	}
	if len(command) == 0 {
		return Result{}, &Error{
			Text: "no command to run",
			Hint: "it stands behind --: drainit [flags] -- COMMAND [ARG...]",
		}
	}
	c, err := convert(f, command, w)
	return Result{Run: c}, err
}

func parseVersion(rest []string) (Result, error) {
	if len(rest) > 0 {
		return Result{}, &Error{Text: "unexpected argument " + strconv.Quote(rest[0]) + " behind version"}
	}
	return Result{Version: true}, nil
}

// split cuts at the first "--".
func split(args []string) (before, command []string, cut bool) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:], true
		}
	}
	return args, nil, false
}

// convert reads every setting and holds them against each other.
func convert(f *flags, command []string, w World) (*Config, error) {
	r := &reader{env: w.Env}
	c := &Config{Command: command}
	r.plan(c, f, w)
	r.signals(c, f)
	r.probe(c, f)
	r.rest(c, f)
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

// plan reads the figures.
func (r *reader) plan(c *Config, f *flags, w World) {
	p := r.oneOf(r.text("platform", f.Platform), "auto", append([]string{"auto"}, PlatformNames()...)...)
	if p == "auto" {
		c.Platform = Detect(w.Env, w.PID)
	} else {
		c.Platform = named(p, "it was set")
	}
	figure := func(flag string, value *string, fallback time.Duration) budget.Value {
		s := r.text(flag, value)
		return budget.Value{D: r.duration(s, fallback), Set: s.given}
	}
	grace := figure("grace-period", f.GracePeriod, c.Platform.Grace)
	c.Budget = budget.Input{
		Grace:        grace,
		Unlimited:    !grace.Set && c.Platform.Grace == 0,
		Prestop:      figure("prestop", f.Prestop, 0),
		Headroom:     figure("headroom", f.Headroom, budget.DefaultHeadroom),
		Announce:     figure("announce-delay", f.AnnounceDelay, c.Platform.Announce),
		DrainBudget:  figure("drain-budget", f.DrainBudget, budget.DefaultDrainBudget),
		DrainTimeout: figure("drain-timeout", f.DrainTimeout, 0),
	}
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
	s := r.text("remap-exit", f.RemapExit)
	if !s.given {
		return
	}
	c.RemapExit = make(map[int]int)
	if s.value == "none" {
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
	c.ConfigDir = "/etc/drainit"
	if s := r.text("config-dir", f.ConfigDir); s.given {
		c.ConfigDir = s.value
		c.ConfigDir = r.dir(s)
	}
	c.Service = filepath.Base(c.Command[0])
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

// dir reads a directory, or none. A relative one counts from where the init
// was started, since its own directory is another one later.
func (r *reader) dir(s setting) string {
	switch s.value {
	case "none":
		return ""
	case "":
		r.refuse(s, "empty", "a directory, or none")
		return ""
	}
	path, err := filepath.Abs(s.value)
	if err != nil {
		r.refuse(s, err.Error(), "an absolute path")
	}
	return path
}
