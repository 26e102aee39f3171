// Package config turns flags and environment variables into one validated
// value, and every mistake into one line with a hint. It starts nothing.
package config

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// flags is the grammar of the main job. Every value is read as text: what was
// not given stays nil, so that the environment twin can be asked, and the
// conversion can name the setting that was wrong.
type flags struct {
	GracePeriod   *string `placeholder:"D" help:"Time from the stop signal to the orchestrator's KILL. Default: assumed by platform."`
	Prestop       *string `placeholder:"D" help:"Part of the grace period that a preStop hook has used up before the signal comes. Default: 0."`
	Headroom      *string `placeholder:"D" help:"Kept free before the grace period ends. Default: 1s."`
	Platform      *string `placeholder:"P" help:"auto, kubernetes, ecs, cloudrun, fly, nomad, systemd, docker or none. Default: auto."`
	AnnounceDelay *string `placeholder:"D" help:"How long readiness fails before the first phase, the workload still serving. Default: by platform, 0 below another drainit."`
	DrainBudget   *string `placeholder:"D" help:"Shared by all phases. Default: 10s."`
	DrainTimeout  *string `placeholder:"D" help:"How long the workload gets from its stop signal to its KILL. Default: what the grace period leaves."`
	StepTimeout   *string `placeholder:"D" help:"Bound of stopping the companions, together, and of each wave of lifecycle stops. Default: 10s."`
	StartTimeout  *string `placeholder:"D" help:"Bound of each lifecycle step's start, or none. Default: none."`
	Linger        *string `placeholder:"D" help:"How long the probe listener stays open after the end, for a last scrape. Default: 0."`
	StrictBudget  *bool   `help:"Refuse to start when what was set does not fit the grace period."`

	StopSignal  *string  `placeholder:"S" help:"What tells the workload to stop; same: the signal that began the drain. Default: same."`
	DrainOn     *string  `placeholder:"S,S" help:"Signals that start the drain, or none. Default: TERM,INT and the named stop signal."`
	Rewrite     []string `placeholder:"S:S" sep:"none" help:"Forward the second signal in place of the first; S: drops it. May be repeated."`
	SignalGroup *bool    `short:"g" help:"Send signals to the workload's process group instead of the process."`
	Interactive *string  `placeholder:"M" help:"Hand the terminal to the workload: auto, always or never. Default: auto."`
	RemapExit   *string  `placeholder:"N:M,..." help:"Exit with M where the workload's own final status is N."`

	ProbeAddr     *string `placeholder:"A" help:"Where /readyz, /livez and /metrics are served, or none. Default: :8079."`
	ReadyPath     *string `placeholder:"PATH" help:"Default: /readyz."`
	LivePath      *string `placeholder:"PATH" help:"Default: /livez."`
	MetricsPath   *string `placeholder:"PATH" help:"Default: /metrics."`
	UnreadyStatus *string `placeholder:"N" help:"The status of a readiness that fails. Default: 503."`

	ConfigDir *string `placeholder:"DIR" help:"Holds phases.d, lifecycle.d and background.d, or none. Default: /etc/drainit."`
	Service   *string `placeholder:"NAME" help:"Label of the shutdown metric, field of the logs. Default: the workload's base name."`
	Report    *string `placeholder:"FILE" help:"Where the shutdown report is written, or none. Default: /dev/termination-log where it is there."`
	Control   *string `placeholder:"ADDR" help:"The control socket: @NAME, an absolute path, or none. Default: @drainit/ and the PID namespace's number."`
	LogFormat *string `placeholder:"F" help:"auto, text or json. Default: auto."`
	LogLevel  *string `placeholder:"L" help:"debug, info, warn or error. Default: info, warn while interactive."`

	Version bool `help:"Print the version and exit."`
}

// Error is a mistake in the settings: one line, and what to do about it.
type Error struct {
	Text string
	Hint string // empty: no obvious remedy
}

func (e *Error) Error() string { return e.Text }

// ErrHelp is returned when help was asked for and has been printed.
var ErrHelp = errors.New("help was printed")

// read reads the arguments in front of the first "--" into a pointer to a grammar.
func (v *verb) read(grammar any, l line, help io.Writer) error {
	if len(l.args) == 0 {
		return nil // nothing to read, and the parser takes a third of the start
	}
	printed := false
	parser, err := kong.New(grammar,
		kong.Name("drainit"),
		kong.Description(v.about),
		kong.Writers(help, help),
		kong.Exit(func(int) { printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppSummary: true}),
		kong.Help(func(o kong.HelpOptions, ctx *kong.Context) error {
			_, _ = io.WriteString(help, "Usage: "+v.usage+"\n")
			return kong.DefaultHelpPrinter(o, ctx)
		}))
	if err != nil {
		return err
	}
	_, err = parser.Parse(l.args)
	if printed {
		return ErrHelp
	}
	if err != nil {
		return v.wrong(reflect.TypeOf(grammar).Elem(), l, err)
	}
	return nil
}

// Twins returns the names of all environment variables that stand for a flag, of
// any verb.
func Twins() []string {
	var names []string
	for _, grammar := range [...]reflect.Type{
		reflect.TypeFor[budgetFlags](), reflect.TypeFor[drainFlags](), reflect.TypeFor[statusFlags](), reflect.TypeFor[spreadFlags](),
	} {
		for _, f := range fields(grammar) {
			if name := twin(flagName(f.Name)); f.Name != "Version" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// fields lists a grammar's flags, those of an embedded one too.
func fields(grammar reflect.Type) []reflect.StructField {
	var all []reflect.StructField
	for i := range grammar.NumField() {
		if f := grammar.Field(i); f.Anonymous {
			all = append(all, fields(f.Type)...)
		} else {
			all = append(all, f)
		}
	}
	return all
}

// flagName is kong's own rule: GracePeriod becomes grace-period.
func flagName(field string) string {
	var b strings.Builder
	for i, r := range field {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// twin is the variable of a flag.
func twin(flag string) string {
	return "DRAINIT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
