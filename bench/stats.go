//go:build linux

package main

import (
	"math"
	"slices"
)

// A sample that could not be taken is NaN; its place is kept, since samples of
// the same round are compared with each other.
var missing = math.NaN()

// sorted returns the samples that were taken, in order.
func sorted(xs []float64) []float64 {
	var out []float64
	for _, x := range xs {
		if !math.IsNaN(x) {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}

// quantile interpolates between the two nearest ranks; NaN when there are none.
func quantile(xs []float64, q float64) float64 {
	xs = sorted(xs)
	if len(xs) == 0 {
		return missing
	}
	at := q * float64(len(xs)-1)
	low := int(at)
	high := min(low+1, len(xs)-1)
	return xs[low] + (xs[high]-xs[low])*(at-float64(low))
}

func median(xs []float64) float64 { return quantile(xs, 0.5) }

// minus is the paired difference, round by round.
func minus(a, b []float64) []float64 {
	return pairwise(a, b, func(x, y float64) float64 { return x - y })
}

// ratios are the paired ratios, round by round. A round in which noise made the
// divisor nothing or less says nothing.
func ratios(a, b []float64) []float64 {
	return pairwise(a, b, func(x, y float64) float64 {
		if y <= 0 {
			return missing
		}
		return x / y
	})
}

func pairwise(a, b []float64, f func(x, y float64) float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = f(a[i], b[i])
	}
	return out
}
