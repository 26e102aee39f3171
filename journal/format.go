package journal

import (
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/sys/unix"
)

// timeFormat is RFC 3339 with milliseconds, always three digits.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// newFormat picks the handler. Only its Handle is called, which does not look at
// the level: that was asked before the record was queued.
func newFormat(o Options, w io.Writer) slog.Handler {
	switch {
	case o.Format == "json":
		return slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: plainTime})
	case o.Format != "text" && isTerminal(o.FD):
		return tint.NewTextHandler(w, &tint.Options{TimeFormat: timeFormat, ReplaceAttr: forTerminal})
	default:
		return slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: plainTime})
	}
}

// isTerminal asks as isatty(3) does.
func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// plainTime writes times alike in text and JSON; slog's JSON has nanoseconds.
func plainTime(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		a.Value = slog.StringValue(a.Value.Time().UTC().Format(timeFormat))
	}
	return a
}

// forTerminal keeps control sequences out of the terminal. tint turns an ESC in
// a value, and even the four characters \x1b, into a live ESC, and values hold
// what hooks print and what files are called. Colours of a hook are lost by it.
func forTerminal(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindTime:
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	case slog.KindString, slog.KindAny:
		if s := a.Value.String(); strings.Contains(s, "\x1b") || strings.Contains(s, `\x1b`) {
			a.Value = slog.StringValue(strings.NewReplacer("\x1b", "^[", `\x1b`, "^[").Replace(s))
		}
	}
	return a
}

// resolveRecord is a copy of r that shares nothing with it and holds no
// LogValuer: those speak of the moment of the call, not of the moment of writing.
func resolveRecord(r slog.Record) slog.Record {
	at := r.Time
	if !at.IsZero() {
		at = at.UTC()
	}
	out := slog.NewRecord(at, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(resolve(a))
		return true
	})
	return out
}

func resolveAll(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = resolve(a)
	}
	return out
}

// resolve survives a LogValue that panics: slog makes an error of it.
func resolve(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	if a.Value.Kind() == slog.KindGroup {
		a.Value = slog.GroupValue(resolveAll(a.Value.Group())...)
	}
	return a
}

// lostRecord tells of records that were dropped.
func lostRecord(count uint64) slog.Record {
	r := slog.NewRecord(time.Now().UTC(), slog.LevelWarn, "log lines dropped", 0)
	r.AddAttrs(slog.Uint64("count", count))
	return r
}
