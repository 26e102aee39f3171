// Package config turns flags and environment variables into one validated
// value, and every mistake into one line with a hint. It starts nothing.
package config

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
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
	AnnounceDelay *string `placeholder:"D" help:"How long readiness fails before the first phase, the workload still serving. Default: by platform."`
	DrainBudget   *string `placeholder:"D" help:"Shared by all phases. Default: 10s."`
	DrainTimeout  *string `placeholder:"D" help:"How long the workload gets from its stop signal to its KILL. Default: what the grace period leaves."`
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

	ConfigDir *string `placeholder:"DIR" help:"Holds phases.d, or none. Default: /etc/drainit."`
	Service   *string `placeholder:"NAME" help:"Label of the shutdown metric, field of the logs. Default: the workload's base name."`
	LogFormat *string `placeholder:"F" help:"auto, text or json. Default: auto."`
	LogLevel  *string `placeholder:"L" help:"debug, info, warn or error. Default: info, warn while interactive."`

	Version bool `help:"Print the version and exit."`
}

const description = `The init that a container starts with: it runs COMMAND, forwards signals, reaps orphans, and on a stop signal drains before it stops.

Also: drainit version. Every flag has an environment twin, DRAINIT_ and its name in capitals with underscores; a flag wins. Durations are like 500ms or 1m30s, a bare number is seconds.`

// Error is a mistake in the settings: one line, and what to do about it.
type Error struct {
	Text string
	Hint string // empty: no obvious remedy
}

func (e *Error) Error() string { return e.Text }

// ErrHelp is returned when help was asked for and has been printed.
var ErrHelp = errors.New("help was printed")

// parseFlags reads the arguments in front of the first "--"; cut tells that
// there is one.
func parseFlags(args []string, cut bool, help io.Writer) (*flags, error) {
	var f flags
	if len(args) == 0 {
		return &f, nil // nothing to read, and the parser takes a third of the start
	}
	printed := false
	parser, err := kong.New(&f,
		kong.Name("drainit"),
		kong.Description(description),
		kong.Writers(help, help),
		kong.Exit(func(int) { printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppSummary: true}),
		kong.Help(func(o kong.HelpOptions, ctx *kong.Context) error {
			_, _ = io.WriteString(help, "Usage: drainit [flags] -- COMMAND [ARG...]\n")
			return kong.DefaultHelpPrinter(o, ctx)
		}))
	if err != nil {
		return nil, err
	}
	_, err = parser.Parse(args)
	if printed {
		return nil, ErrHelp
	}
	if err != nil {
		return nil, flagError(args, cut, err)
	}
	return &f, nil
}

// flagError makes one line of what kong says, and adds the remedy for the
// commonest mistakes: a command that no "--" stands in front of, and a flag
// whose value was forgotten.
func flagError(args []string, cut bool, err error) error {
	e := &Error{Text: oneLine(err.Error()), Hint: "drainit --help lists the flags"}
	last := args[len(args)-1]
	if field, ok := fieldOf(last); ok && field.Type.Elem().Kind() == reflect.String {
		e.Text = last + ": no value behind it"
		e.Hint = last + "=" + field.Tag.Get("placeholder")
		return e
	}
	if !cut && slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") }) {
		e.Hint = "the command stands behind --: drainit [flags] -- COMMAND [ARG...]"
	}
	return e
}

// fieldOf finds the field of a flag that may be given and not be given.
func fieldOf(flag string) (reflect.StructField, bool) {
	t := reflect.TypeFor[flags]()
	for i := range t.NumField() {
		f := t.Field(i)
		if "--"+flagName(f.Name) == flag && f.Type.Kind() != reflect.Bool {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// oneLine keeps an error on its line, whatever an argument holds: what can't be
// printed is written as in a Go string.
func oneLine(text string) string {
	quoted := strconv.Quote(text)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// Twins returns the names of all environment variables that stand for a flag.
func Twins() []string {
	t := reflect.TypeFor[flags]()
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		if name := t.Field(i).Name; name != "Version" {
			names = append(names, twin(flagName(name)))
		}
	}
	return names
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
