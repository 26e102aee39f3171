package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"drainit/budget"
	"drainit/child"
	"drainit/config"
	"drainit/control"
	"drainit/hooks"
	"drainit/report"
	"drainit/self"
)

// refuseRun is refuse where a container ends by it: an orchestrator that shows the
// report shows why.
func refuseRun(file *report.File, err error) int {
	if file != nil && os.Getpid() == 1 {
		r := report.Report{Reason: "failed", Error: err.Error(), ExitStatus: failed}
		_ = file.Write(r.Line(), reportLimit) // what can't be written has been said on standard error
	}
	return refuse(err)
}

// reportLimit bounds the writing of a refusal.
const reportLimit = 100 * time.Millisecond

// defaultReport is the place that an orchestrator may have made; nil: it has not.
func defaultReport(path string) *report.File {
	if f := report.Open(path); f.Existed() {
		return f
	}
	return nil
}

// misfit is the refusal of --strict-budget.
func misfit(in budget.Input, p budget.Plan) error {
	text := "--strict-budget: the plan is longer than the grace period:"
	for _, f := range p.Figures() {
		text += fmt.Sprintf(" %s %v +", f.Name, f.D)
	}
	a, _ := budget.Advise(in)
	return &config.Error{
		Text: fmt.Sprintf("%s = %v, grace %v, shortfall %v", text[:len(text)-2], p.Sum(), p.Grace, p.Shortfall()),
		Hint: fmt.Sprintf("--%s %v in place of %v would fit", a.Flag, a.To, a.From),
	}
}

// refuse prints the one line and the hint.
func refuse(err error) int {
	var hint string
	var e *config.Error
	var p hooks.Problems
	var s *child.StartError
	var k *control.Error
	switch {
	case errors.As(err, &e):
		hint = e.Hint
	case errors.As(err, &p):
		hint = p.Hint()
	case errors.As(err, &s):
		hint = s.Hint
	case errors.As(err, &k):
		hint = k.Hint
	}
	text := "drainit: " + err.Error() + "\n"
	if hint != "" {
		text += "drainit: hint: " + hint + "\n"
	}
	self.Say(text)
	return failed
}
