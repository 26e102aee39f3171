//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// report prints everything and stores it where -o says. It returns false when
// -strict was given and a goal is not met.
func (h *harness) report(o options) (bool, error) {
	goals, met := goalTable(h.judged, h.scores)
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Measurements\n\n%s\n", machine())
	if o.realTime {
		fmt.Fprintf(&text, "\nAll with SCHED_RR.\n")
	}
	what := table{title: "Subjects", head: []string{"", "prefix"}}
	for _, s := range h.subjects {
		what.add(s.name, s.command())
	}
	for _, t := range append(append([]table{what}, h.tables...), goals) {
		t.write(&text)
	}
	if len(h.faults) > 0 {
		fmt.Fprintf(&text, "\n## Faults\n\n")
		for _, fault := range h.faultOrder {
			fmt.Fprintf(&text, "- %d x %s\n", h.faults[fault], fault)
		}
	}
	if _, err := os.Stdout.Write(text.Bytes()); err != nil {
		return false, err
	}
	if o.out != "" {
		if err := os.WriteFile(o.out, text.Bytes(), 0o644); err != nil {
			return false, err
		}
	}
	return met || !o.strict, nil
}

// machine tells what ratios may depend on and nothing that names the machine.
func machine() string {
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	release := strings.SplitN(unix.ByteSliceToString(uts.Release[:]), ".", 3)
	load, _ := os.ReadFile("/proc/loadavg")
	load1, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%s, linux %s, %s, %d CPUs, load %s at the end. Ratios of one run can be compared; absolute times cannot.",
		time.Now().UTC().Format(time.DateOnly), strings.Join(release[:min(2, len(release))], "."),
		runtime.GOARCH, runtime.NumCPU(), load1)
}

// A table is one figure for all subjects. It is printed as Markdown with its
// columns lined up, which reads well on a terminal too.
type table struct {
	title string
	note  string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "\n## %s\n\n", t.title)
	if t.note != "" {
		fmt.Fprintf(w, "%s\n\n", t.note)
	}
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	writeRow(w, widths, t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = strings.Repeat("-", widths[i])
		if i > 0 {
			rule[i] = rule[i][1:] + ":"
		}
	}
	writeRow(w, widths, rule)
	for _, row := range t.rows {
		writeRow(w, widths, row)
	}
}

func writeRow(w io.Writer, widths []int, row []string) {
	for i, cell := range row {
		pad := strings.Repeat(" ", widths[i]-len([]rune(cell)))
		if i == 0 {
			fmt.Fprintf(w, "| %s%s ", cell, pad)
		} else {
			fmt.Fprintf(w, "| %s%s ", pad, cell)
		}
	}
	fmt.Fprintln(w, "|")
}

// spread is the table of a figure that was sampled many times, in nanoseconds,
// printed in microseconds. Both ratios are to the reference: of the medians, and
// the median of the ratios within each round.
func spread(title, note string, subjects []subject, xs map[string][]float64) table {
	t := table{title: title, note: note, head: []string{
		"us", "n", "min", "median", "p90", "p99", "max", "ratio of medians", "median of ratios",
	}}
	zero := xs[reference]
	for _, s := range subjects {
		x := xs[s.name]
		row := []string{s.name, fmt.Sprint(len(sorted(x)))}
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
			row = append(row, number(quantile(x, q)/1e3, 0))
		}
		row = append(row, number(median(x)/median(zero), 2), number(median(ratios(x, zero)), 2))
		t.add(row...)
	}
	return t
}

func number(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, x)
}
