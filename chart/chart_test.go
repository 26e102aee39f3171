package chart

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const (
	s    = time.Second
	year = 366 * 24 * time.Hour
)

func TestRender(t *testing.T) {
	for _, c := range []struct {
		name  string
		table Table
		want  string
	}{
		{"nothing", Table{}, ""},
		{"a plan", Table{
			Figures: []Row{
				{"prestop", 0, false, "default"}, {"announce", 5 * s, false, "by platform"}, {"phases", 10 * s, false, "shrunk to fit"},
				{"drain_timeout", 13500 * time.Millisecond, false, "set"},
			},
			Totals: []Row{{"sum", 28500 * time.Millisecond, false, ""}, {"grace", 30 * s, false, "assumed"}},
			Lines:  []string{"fits, 1.5s to spare"},
		}, `
prestop           0s                                            default
announce          5s  #######                                   by platform
phases           10s  #############                             shrunk to fit
drain_timeout  13.5s  ##################                        set
--------------------
sum            28.5s  ######################################
grace            30s  ########################################  assumed

fits, 1.5s to spare
`},
		{"all 0", Table{Figures: []Row{{"a", 0, false, "set"}, {"b", 0, false, ""}}, Totals: []Row{{"sum", 0, false, ""}}}, `
a    0s                                            set
b    0s
-------
sum  0s
`},
		{"one dominates", Table{Figures: []Row{{"a", s, false, "x"}, {"b", time.Hour, false, "y"}, {"c", 80 * s, false, "z"}}}, `
a      1s  #                                         x
b  1h0m0s  ########################################  y
c   1m20s  #                                         z
`},
		{"very small beside very large", Table{Figures: []Row{{"a", 1, false, ""}, {"b", year, false, ""}, {"c", year / 2, false, ""}}}, `
a        1ns  #
b  8784h0m0s  ########################################
c  4392h0m0s  ####################
`},
		{"the sum is longer than the grace period", Table{
			Figures: []Row{{"a", 40 * s, false, "set"}},
			Totals:  []Row{{"sum", 40 * s, false, ""}, {"grace", 10 * s, false, "set"}},
		}, `
a      40s  ########################################  set
----------
sum    40s  ########################################
grace  10s  ##########                                set
`},
		{"no limit", Table{
			Figures: []Row{{"a", 10 * s, false, "default"}, {"gate", 99 * s, true, "default"}},
			Totals:  []Row{{"sum", 0, true, ""}},
		}, `
a          10s  ########################################  default
gate  no limit  --------------------------------------->  default
--------------
sum   no limit  --------------------------------------->
`},
		{"nothing but what has no end", Table{Figures: []Row{{"gate", 0, true, ""}}}, `
gate  no limit  --------------------------------------->
`},
		{"long words", Table{Figures: []Row{{"drain_timeout", 4567*time.Hour + 34*time.Minute + 34567499999, false, "shrunk to fit, in 1000 waves"}, {"ä", s, false, "b"}}}, `
drain_timeout  4567h34m34.567s  ##################  shrunk to fit, in 1000 waves
ä                           1s  #                   b
`},
		{"very long ones", Table{Figures: []Row{{"a", s, false, strings.Repeat("x", 90)}}}, `
a  1s  ##########  ` + strings.Repeat("x", 90) + `
`},
	} {
		if got, want := Render(c.table), strings.TrimPrefix(c.want, "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

// Whatever the figures are, nothing panics, no line is too long, and a bar is
// there where a figure is.
func FuzzRender(f *testing.F) {
	f.Add(int64(0), int64(5), int64(math.MaxInt64), true)
	f.Add(int64(year), int64(1), int64(0), false)
	f.Fuzz(func(t *testing.T, a, b, c int64, endless bool) {
		if a < 0 || b < 0 || c < 0 {
			t.Skip()
		}
		text := Render(Table{
			Figures: []Row{{"drain_timeout", time.Duration(a), false, "shrunk to fit"}, {"waves", time.Duration(b), endless, "default"}},
			Totals:  []Row{{"sum", time.Duration(c), endless, ""}},
		})
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(lines) != 4 {
			t.Fatalf("%s", text)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > columns || strings.TrimRight(line, " ") != line {
				t.Errorf("%q", line)
			}
		}
		for i, d := range map[int]int64{0: a, 1: b, 3: c} {
			if bar := strings.Contains(lines[i], "#"); i == 0 && bar != (d > 0) || i > 0 && bar != (d > 0 && !endless) {
				t.Errorf("%d: %q", d, lines[i])
			}
		}
	})
}
