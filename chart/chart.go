// Package chart draws a shutdown plan as a table with bars, in ASCII and within
// the 80 columns that every terminal and log viewer has. It is pure, and does
// not know what the figures mean.
package chart

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	columns  = 80 // of a line
	gap      = 2  // between two columns of the table
	leastBar = 10 // where notes are long, lines are rather longer than bars shorter
	mostBar  = 40
)

// Row is one line: a figure, or one of the totals.
type Row struct {
	Name string
	D    time.Duration // not negative
	// Endless: it has no end, and D is not told.
	Endless bool
	Note    string // who set it
}

// Table is what Render draws.
type Table struct {
	Figures []Row
	Totals  []Row    // below a rule
	Lines   []string // what is to be said below, as it is
}

// Render draws the table, each line with its newline. All bars have one scale,
// the longest duration being the whole width; 0 has no bar and what is longer
// than 0 at least one cell. A row without an end has an arrow of the whole width.
func Render(t Table) string {
	w := t.widths()
	var b strings.Builder
	w.rows(&b, t.Figures)
	if len(t.Totals) > 0 {
		b.WriteString(strings.Repeat("-", w.name+gap+w.time) + "\n")
		w.rows(&b, t.Totals)
	}
	if len(t.Lines) > 0 {
		b.WriteString("\n" + strings.Join(t.Lines, "\n") + "\n")
	}
	return b.String()
}

// widths are those of the columns, and what the bar's stands for.
type widths struct {
	name, time, bar int
	longest         time.Duration
}

func (t Table) widths() widths {
	var w widths
	note := 0
	for _, rows := range [...][]Row{t.Figures, t.Totals} {
		for _, r := range rows {
			w.name = max(w.name, utf8.RuneCountInString(r.Name))
			w.time = max(w.time, utf8.RuneCountInString(r.time()))
			note = max(note, utf8.RuneCountInString(r.Note))
			if !r.Endless {
				w.longest = max(w.longest, r.D)
			}
		}
	}
	w.bar = min(max(columns-w.name-w.time-note-3*gap, leastBar), mostBar)
	return w
}

// time is how a row's duration is written.
func (r Row) time() string {
	if r.Endless {
		return "no limit"
	}
	return Duration(r.D)
}

// Duration writes d as a person reads it, to the millisecond; what is shorter than
// one is written in full, so that it does not read like nothing.
func Duration(d time.Duration) string {
	if d < time.Millisecond {
		return d.String()
	}
	return d.Round(time.Millisecond).String()
}

func (w widths) rows(b *strings.Builder, rows []Row) {
	space := strings.Repeat(" ", gap)
	for _, r := range rows {
		line := pad(r.Name, w.name) + space + padLeft(r.time(), w.time) + space + pad(w.drawn(r), w.bar) + space + r.Note
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// drawn is a row's bar.
func (w widths) drawn(r Row) string {
	switch {
	case r.Endless:
		return strings.Repeat("-", w.bar-1) + ">"
	case r.D <= 0:
		return ""
	}
	cells := math.Round(float64(r.D) / float64(w.longest) * float64(w.bar))
	return strings.Repeat("#", max(int(cells), 1))
}

func pad(s string, width int) string { return s + blanks(s, width) }

func padLeft(s string, width int) string { return blanks(s, width) + s }

func blanks(s string, width int) string {
	return strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}
