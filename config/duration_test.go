package config

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	const year = 366 * 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "-0": 0, "+0": 0, "0.0": 0, "1e-400": 0,
		"5": 5 * time.Second, "+5": 5 * time.Second, "05": 5 * time.Second, "5.": 5 * time.Second, "1e1": 10 * time.Second,
		"0.5": time.Second / 2, ".25": time.Second / 4, "2.000000001": 2*time.Second + 1,
		"500ms": time.Second / 2, "1m30s": 90 * time.Second, "1.5h": 90 * time.Minute, "1us": time.Microsecond, "1µs": time.Microsecond,
		"8784h": year, "31622400": year,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "not a duration", " ": "not a duration", "5 ": "not a duration", "5\n": "not a duration", "s": "not a duration",
		"5x": "not a duration", "5d": "not a duration", "1,5": "not a duration", "five": "not a duration", "1s 2s": "not a duration",
		"NaN": "not a duration", "nan": "not a duration", "Inf": "not a duration", "-inf": "not a duration", "infinity": "not a duration",
		"1e400": "not a duration", "0x10": "not a duration", "0x1p4": "not a duration", "1_000": "not a duration",
		"-1": "negative", "-0.0000000001": "negative", "-1ns": "negative", "-1e300": "negative",
		"8784h1ns": "longer than a year", "31622401": "longer than a year", "1e300": "longer than a year", "9223372036": "longer than a year",
	} {
		got, err := ParseDuration(text)
		if err == nil || !strings.Contains(err.Error(), want) || got != 0 {
			t.Errorf("%q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"", "0", "5", "-1", "1.5", "500ms", "1m30s", "NaN", "1e400", "0x1p4", "1_0", "9223372036854775807ns", "2562048h", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if d != 0 || !plainLine(err.Error()) {
				t.Errorf("%q: %v with %q", text, d, err)
			}
			return
		}
		if d < 0 || d > maxDuration {
			t.Errorf("%q: %v", text, d)
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q is %v, and that is %v, %v", text, d, again, err)
		}
		if math.MaxInt64/int64(maxDuration) < 100 {
			t.Fatal("a sum of a hundred figures could overflow")
		}
	})
}
