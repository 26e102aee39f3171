package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"drainit/config"
	"drainit/control"
)

const (
	// refused is the exit status of a verb that was not done, or not all of it.
	refused = 1
	// unreachable is the exit status where no init could be asked.
	unreachable = 69
)

// promptly is how long an init may take to answer. A drain takes as long as it
// takes.
const promptly = 5 * time.Second

// client runs the verbs that talk to the running init, and returns the exit status.
// A signal ends it as it ends any program: to the init, that is to hang up.
func client(c *config.Client) (status int) {
	defer recovered(&status)
	a, err := askInit(c)
	if err == nil && c.Verb == control.Status && a.Status == nil {
		err = errors.New("the init's answer has no status")
	}
	if err != nil {
		refuse(err)
		return unreachable
	}
	text := plain(a.Text) + "\n"
	if a.Status != nil {
		if c.Ready && a.Status.Readiness != "ready" {
			a.Code = max(a.Code, refused)
		}
		text = statusText(a.Status, c.JSON)
	}
	if err := say(text); err != nil && c.Verb == control.Status {
		refuse(err)
		return max(a.Code, refused)
	}
	return a.Code
}

// askInit finds the init, and asks it.
func askInit(c *config.Client) (control.Answer, error) {
	ctx := context.Background()
	if c.Verb != control.Drain {
		bounded, cancel := context.WithTimeout(ctx, promptly)
		defer cancel()
		ctx = bounded
	}
	addr := c.Control
	if addr == "" {
		var err error
		if addr, err = control.Find(os.LookupEnv); err != nil {
			return control.Answer{}, err
		}
	}
	r := control.Request{Verb: c.Verb, Budget: c.Budget, AnnounceDelay: c.AnnounceDelay}
	return control.Ask(ctx, addr, r, func(text string) { _ = say(plain(text) + "\n") })
}

// say writes to standard output, past os.File: a reader that has gone must not
// end a client that waits for a drain, since with its last client that is called
// off. Who no longer reads misses nothing, so that is no error.
func say(text string) error {
	for b := []byte(text); len(b) > 0; {
		n, err := syscall.Write(1, b)
		switch {
		case errors.Is(err, syscall.EPIPE):
			return nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("write standard output: %w", err)
		}
		b = b[max(n, 0):]
	}
	return nil
}

// plain quotes what would do something to a terminal.
func plain(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		return strconv.Quote(text)
	}
	return text
}

// statusText is what status prints: one JSON object in a line, or a text.
func statusText(s *control.State, asJSON bool) string {
	if !asJSON {
		return (&statusPage{state: s}).text()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // it came as JSON
	return b.String()
}

// statusPage is the text in the making.
type statusPage struct {
	state *control.State
	b     strings.Builder
}

func (p *statusPage) text() string {
	s := p.state
	p.line("state", p.stage())
	p.line("readiness", s.Readiness)
	p.line("reason", s.Reason)
	if s.DeadlineSeconds != nil {
		p.line("deadline", "in "+seconds(*s.DeadlineSeconds))
	}
	p.line("workload", p.workload())
	p.line("service", s.Service)
	p.line("uptime", seconds(s.UptimeSeconds))
	p.line("version", s.Version)
	p.hooks("phases", s.Phases)
	p.hooks("steps", s.Steps)
	p.companions()
	return p.b.String()
}

// line writes a figure that is known.
func (p *statusPage) line(name, value string) {
	if value != "" {
		fmt.Fprintf(&p.b, "%-10s  %s\n", name, plain(value))
	}
}

// stage is the state, how long it has been that, and how long it may be yet.
func (p *statusPage) stage() string {
	text := p.state.State + ", for " + seconds(p.state.StageSeconds)
	if left := p.state.LeftSeconds; left != nil {
		text += ", " + seconds(*left) + " left"
	}
	return text
}

func (p *statusPage) workload() string {
	text := "not started"
	if pid := p.state.WorkloadPID; pid != 0 {
		text = "pid " + strconv.Itoa(pid)
	}
	if status := p.state.WorkloadStatus; status != nil {
		text += ", exited with " + strconv.Itoa(*status)
	}
	return text
}

// hooks writes a list in columns, its title in front of the first line.
func (p *statusPage) hooks(title string, all []control.HookState) {
	var rows [][]string
	for _, h := range all {
		took := ""
		if h.Seconds > 0 {
			took = seconds(h.Seconds)
		}
		rows = append(rows, []string{h.Name, h.State, took})
	}
	p.table(title, rows)
}

func (p *statusPage) companions() {
	var rows [][]string
	for _, c := range p.state.Companions {
		row := []string{c.Name, c.State, "", ""}
		if c.PID != 0 {
			row[2] = "pid " + strconv.Itoa(c.PID)
		}
		if c.Restarts > 0 {
			row[3] = "restarts " + strconv.Itoa(c.Restarts)
		}
		rows = append(rows, row)
	}
	p.table("companions", rows)
}

func (p *statusPage) table(title string, rows [][]string) {
	var widths [4]int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = plain(cell)
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for _, row := range rows {
		text := fmt.Sprintf("%-10s", title)
		for i, cell := range row {
			text += fmt.Sprintf("  %-*s", widths[i], cell)
		}
		p.b.WriteString(strings.TrimRight(text, " ") + "\n")
		title = ""
	}
}

// seconds is a time as one reads it: tenths count below a minute.
func seconds(s float64) string {
	const most = float64(1<<63-1) / float64(time.Second)
	d := time.Duration(min(max(s, 0), most/2) * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
