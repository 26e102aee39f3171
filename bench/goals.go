//go:build linux

package main

import (
	"fmt"
	"math"
)

// The two ways to fill the process table.
const (
	deathsAtRest = "Deaths, table full at rest"
	deathsAtOnce = "Deaths, table full from the start"
)

// A goal is a figure that drainit means to stay below. The text names the key
// that a measurement scores.
type goal struct {
	key    string
	limit  float64
	unit   string
	digits int
}

func goals() []goal {
	return []goal{
		{"Start-up overhead", 4.5, "x " + reference, 2},
		{"Exit overhead", 3, "x " + reference, 2},
		{"Signal latency", 2, "x " + reference, 2},
		{"CPU per orphan, one at a time", 5, "x " + reference, 2},
		{"CPU per orphan, in bursts of 100", 5, "x " + reference, 2},
		{"Zombies, one at a time", 0, "", 0},
		{"Zombies, in bursts of 100", 0, "", 0},
		{"Idle switches", 10, "in 130s", 0},
		{"Idle RSS", 9.5, "MB", 2},
		{"Idle anonymous", 1.8, "MB", 2},
		{"RSS after probes", 12, "MB", 2},
		{deathsAtRest, 0, "", 0},
		{deathsAtOnce, 0, "", 0},
		{"File", 10.5, "MB", 2},
	}
}

// goalTable holds the scores of the judged subject against the goals and tells
// whether all that were measured are met.
func goalTable(judged string, scores map[string]float64) (table, bool) {
	t := table{
		title: "Goals: " + judged,
		note:  "MB are 1,000,000 bytes. Ratios are ratios of medians. Deaths are over all runs and include inits that no longer answer.",
		head:  []string{"", "measured", "at most", "", ""},
	}
	all := true
	for _, g := range goals() {
		score, found := scores[g.key]
		verdict := "met"
		switch {
		case !found:
			score, verdict = math.NaN(), "not measured"
		case !(score <= g.limit):
			verdict, all = "not met", false
		}
		t.add(g.key, number(score, g.digits), fmt.Sprint(g.limit), g.unit, verdict)
	}
	return t, all
}
