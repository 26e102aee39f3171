//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A plan is how much is measured.
type plan struct {
	rounds    int           // of start-up and exit
	live      time.Duration // of the workload in between
	signals   int
	idle      time.Duration
	idleLong  time.Duration
	probes    int
	scrapes   int
	orphans   int
	fullRuns  int
	fullDelay time.Duration
	tasks     int // the limit of the full process table
	cgroup    string
}

type options struct {
	plan     plan
	subjects []subject
	judged   string
	child    string
	out      string
	only     []string
	strict   bool
	realTime bool
}

// shortly are the values of a run of a minute or two, for what was not set.
var shortly = map[string]string{
	"rounds": "20", "signals": "200", "idle-long": "0", "orphans": "2000", "full-runs": "6",
}

func parseOptions(args []string) (options, error) {
	var o options
	var drainit, only string
	var extra []subject
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	short := f.Bool("short", false, "a run of about two minutes")
	f.IntVar(&o.plan.rounds, "rounds", 100, "rounds of start-up and exit")
	f.DurationVar(&o.plan.live, "live", 150*time.Millisecond, "life of the workload in such a round")
	f.IntVar(&o.plan.signals, "signals", 1000, "signals to each subject")
	f.DurationVar(&o.plan.idle, "idle", 10*time.Second, "the short idle time")
	f.DurationVar(&o.plan.idleLong, "idle-long", 130*time.Second, "the long idle time, 0 for none")
	f.IntVar(&o.plan.probes, "probes", 500, "GET /readyz before memory is looked at")
	f.IntVar(&o.plan.scrapes, "scrapes", 50, "GET /metrics before memory is looked at")
	f.IntVar(&o.plan.orphans, "orphans", 20000, "orphans, one at a time and again in bursts of 100")
	f.IntVar(&o.plan.fullRuns, "full-runs", 32, "runs with a full process table")
	f.DurationVar(&o.plan.fullDelay, "full-delay", 300*time.Millisecond, "from the workload's start to filling it")
	f.IntVar(&o.plan.tasks, "tasks", 32, "processes and threads that fit in that table")
	f.StringVar(&o.plan.cgroup, "cgroup", "drainit-bench", "name of the cgroup for it")
	f.StringVar(&o.child, "child", "", "the workload's binary")
	f.StringVar(&drainit, "drainit", "", "the drainit binary")
	f.StringVar(&o.judged, "judge", "drainit", "the subject that the goals are held against")
	f.StringVar(&o.out, "o", "", "Markdown file for the result")
	f.StringVar(&only, "only", "", "measurements, with commas: "+strings.Join(measurementNames(), ","))
	f.BoolVar(&o.strict, "strict", false, "exit with 3 when a goal is not met")
	f.BoolVar(&o.realTime, "rt", false, "run everything with SCHED_RR, against the load of a busy machine")
	f.Func("p", "NAME=PREFIX: one more subject, or another command for one; "+addrMark+" becomes a free address for probes",
		func(text string) error {
			s, err := parseSubject(text)
			extra = append(extra, s)
			return err
		})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *short {
		set := map[string]bool{}
		f.Visit(func(x *flag.Flag) { set[x.Name] = true })
		for name, value := range shortly {
			if !set[name] {
				_ = f.Set(name, value)
			}
		}
	}
	return o, o.complete(drainit, only, extra, f.Args())
}

func (o *options) complete(drainit, only string, extra []subject, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if o.child == "" {
		return errors.New("no -child: start it with bench/run")
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(measurementNames(), name) {
			return fmt.Errorf("-only %s: not one of %s", name, strings.Join(measurementNames(), ", "))
		}
	}
	var err error
	if o.subjects, err = defaultSubjects(drainit); err != nil {
		return err
	}
	for _, s := range extra {
		o.subjects = withSubject(o.subjects, s)
	}
	return nil
}

func (o *options) wants(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}
