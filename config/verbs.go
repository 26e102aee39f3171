package config

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// World is what the settings are read from.
type World struct {
	Args []string // without the program's own name
	Env  func(string) (string, bool)
	PID  int
	Help io.Writer // where --help is printed

	// SameInit tells, for the plan, that PID 1 is this program too, so that the
	// platform is detected as that one did. nil: it is not.
	SameInit func() bool
}

// Result is what the command line asks for. One of Version, Run, Client, Spread
// and Budget is there.
type Result struct {
	Version bool    // print the version
	Run     *Config // the main job
	Client  *Client // talk to the running init
	Spread  *Spread // pace items from standard input

	Budget     *Config // print the plan of this main job, which may have no command
	BudgetJSON bool    // as JSON
}

// Client is what to ask the running init for.
type Client struct {
	Verb    string // announce, drain, undrain or status
	Control string // @name or an absolute path; empty: to be found

	Budget, AnnounceDelay *time.Duration // of drain; nil: the init's own

	JSON  bool // of status
	Ready bool // of status: the exit status tells readiness
}

// Spread is how to pace items.
type Spread struct {
	Over    time.Duration
	OverSet bool // not: DRAINIT_ALLOWED tells
	Jitter  bool
	Command []string // never empty
}

// The grammars of the verbs; the main job's is [flags]. (Json, not JSON: the twin's
// name is made of it, letter by letter.)
type (
	controlFlags struct {
		Control *string `placeholder:"ADDR" help:"The init's control socket, @NAME or an absolute path. Default: the only one there is."`
	}
	drainFlags struct {
		controlFlags
		Budget        *string `placeholder:"D" help:"Shared by all phases. Default: the init's --drain-budget."`
		AnnounceDelay *string `placeholder:"D" help:"How long readiness fails before the first phase. Default: the init's --announce-delay."`
	}
	statusFlags struct {
		controlFlags
		Json  *bool `help:"Print one JSON object."`
		Ready *bool `help:"Exit 1 while the container is not ready."`
	}
	spreadFlags struct {
		Over   *string `placeholder:"D" help:"The time that the items are spread over. Default: DRAINIT_ALLOWED less 10 %."`
		Jitter *bool   `help:"Vary the pauses, so that many replicas keep out of step."`
	}
	budgetFlags struct {
		Json *bool `help:"Print one JSON object."`
		flags
	}
)

// verb is how a command line is told about; the main job has no name.
type verb struct {
	name, usage, about string
	command            bool // one may stand behind "--"
}

// mainJob is what runs where no verb is given.
func mainJob() *verb {
	return &verb{"", "drainit [flags] -- COMMAND [ARG...]", `The init that a container starts with: it runs COMMAND, forwards signals, reaps orphans, and on a stop signal drains before it stops.

Also: drainit announce, drain, undrain, status, spread, budget and version, each with --help. Every flag has an environment twin, DRAINIT_ and its name in capitals with underscores; a flag wins. Durations are like 500ms or 1m30s, a bare number is seconds.`, true}
}

// verbs are all others, in the order in which messages list them.
func verbs() []*verb {
	return []*verb{
		{"announce", "drainit announce [flags]", "Withdraw readiness, and return at once. The workload serves on.", false},
		{"drain", "drainit drain [flags]", "Withdraw readiness, wait for the announce delay, run the phases, and return. The workload runs on until the stop signal.", false},
		{"undrain", "drainit undrain [flags]", "Take announce back, as long as no phase has begun and no stop signal has come.", false},
		{"status", "drainit status [flags]", "Print what the running init is doing.", false},
		{"spread", "drainit spread [flags] -- COMMAND [ARG...]", "Read items from standard input, one a line, and run COMMAND with each behind it, or in place of {}, evenly over a time.", true},
		{"budget", "drainit budget [flags] [-- COMMAND [ARG...]]", "Print the shutdown plan that the main job would have with these flags and variables, and whether it fits the grace period. Nothing is started.", true},
		{"version", "drainit version", "Print the version.", false},
	}
}

// help is how to ask for a verb's help.
func (v *verb) help() string {
	if v.name == "" {
		return "drainit --help"
	}
	return "drainit " + v.name + " --help"
}

func isVerb(name string) bool {
	for _, v := range verbs() {
		if v.name == name {
			return true
		}
	}
	return false
}

// line is the argument list, cut.
type line struct {
	args, command []string
	cut           bool // there is a "--"
}

// Parse reads flags and variables. The argument list is cut at its first "--"
// before anything is looked at. Errors are *Error, or ErrHelp.
func Parse(w World) (Result, error) {
	l := split(w.Args)
	if len(l.args) > 0 && !strings.HasPrefix(l.args[0], "-") {
		return parseVerb(l, w)
	}
	if len(w.Args) == 1 && w.Args[0] == "-v" { // with more it may be meant for verbose, and must not keep a program from its start
		return Result{Version: true}, nil
	}
	var f flags
	if err := mainJob().read(&f, l, w.Help); err != nil {
		return Result{}, err
	}
	if f.Version {
		return Result{Version: true}, nil
	}
	if len(l.command) == 0 {
		return Result{}, noCommand(mainJob())
	}
	r := &reader{env: w.Env, nested: below(w)}
	return r.result(Result{Run: r.convert(&f, l.command, w)})
}

// parseVerb takes the first argument for a verb's name.
func parseVerb(l line, w World) (Result, error) {
	if l.args[0] == "help" {
		return parseHelp(l, w)
	}
	for _, v := range verbs() {
		if v.name == l.args[0] {
			l.args = l.args[1:]
			return v.parse(l, w)
		}
	}
	return Result{}, unknownVerb(l)
}

// parseHelp is how people ask for --help, of a verb or of all.
func parseHelp(l line, w World) (Result, error) {
	const help = "--help"
	if len(l.args) > 1 && !strings.HasPrefix(l.args[1], "-") {
		return parseVerb(line{args: []string{l.args[1], help}, cut: l.cut}, w)
	}
	return Result{}, mainJob().read(&flags{}, line{args: []string{help}}, w.Help)
}

// parse reads a verb's own flags and their twins. The other verbs' variables are
// not looked at: a mistake in them is none of this one's.
func (v *verb) parse(l line, w World) (Result, error) {
	if len(l.command) > 0 && !v.command {
		return Result{}, &Error{
			Text: v.name + " takes no command, and " + strconv.Quote(l.command[0]) + " stands behind --",
			Hint: v.usage,
		}
	}
	r := &reader{env: w.Env, nested: below(w)}
	switch v.name {
	case "version":
		err := v.read(&struct{}{}, l, w.Help)
		return Result{Version: err == nil}, err
	case "spread":
		return v.spread(r, l, w)
	case "budget":
		return v.budget(r, l, w)
	}
	return v.client(r, l, w)
}

func (v *verb) client(r *reader, l line, w World) (Result, error) {
	c := &Client{Verb: v.name}
	var control controlFlags
	var drain drainFlags
	var status statusFlags
	var err error
	switch v.name {
	case "drain":
		err = v.read(&drain, l, w.Help)
		control = drain.controlFlags
		c.Budget = r.maybe("budget", drain.Budget)
		c.AnnounceDelay = r.maybe("announce-delay", drain.AnnounceDelay)
	case "status":
		err = v.read(&status, l, w.Help)
		control = status.controlFlags
		c.JSON, c.Ready = r.on("json", status.Json), r.on("ready", status.Ready)
	default:
		err = v.read(&control, l, w.Help)
	}
	if err != nil {
		return Result{}, err
	}
	s := r.own("control", control.Control)
	if s.value == none {
		r.refuse(s, "an init without a control socket can't be talked to", "@NAME or an absolute path, as the init has it")
	}
	c.Control = r.control(s)
	return r.result(Result{Client: c})
}

func (v *verb) spread(r *reader, l line, w World) (Result, error) {
	var f spreadFlags
	if err := v.read(&f, l, w.Help); err != nil {
		return Result{}, err
	}
	if len(l.command) == 0 {
		return Result{}, noCommand(v)
	}
	over := r.text("over", f.Over)
	return r.result(Result{Spread: &Spread{
		Over: r.duration(over, 0), OverSet: over.given,
		Jitter: r.on("jitter", f.Jitter), Command: l.command,
	}})
}

// budget reads the main job whose plan is asked for. It is the container's own
// init's that somebody wants to see, whatever this runs below.
func (v *verb) budget(r *reader, l line, w World) (Result, error) {
	var f budgetFlags
	if err := v.read(&f, l, w.Help); err != nil {
		return Result{}, err
	}
	if f.Version {
		return Result{Version: true}, nil
	}
	r.nested = false
	if w.SameInit != nil && w.SameInit() {
		w.PID = 1
	}
	return r.result(Result{BudgetJSON: r.on("json", f.Json), Budget: r.convert(&f.flags, l.command, w)})
}

func noCommand(v *verb) error {
	return &Error{Text: "no command to run", Hint: "it stands behind --: " + v.usage}
}

// result is what was read, or the first mistake in it.
func (r *reader) result(all Result) (Result, error) {
	if r.err != nil {
		return Result{}, r.err
	}
	return all, nil
}
