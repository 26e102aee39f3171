package control

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzDecodeRequest: what is accepted is a request that the loop can carry out, and
// means the same when it is sent again.
func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"drainit":1,"verb":"drain","budget_ns":5000000000,"announce_delay_ns":0}`))
	f.Add([]byte(`{"drainit":1,"verb":"status"}`))
	f.Add([]byte(`{"Drainit":1,"VERB":"undrain","verb":"announce","budget_ns":null}`))
	f.Add([]byte(`[[[{"drainit":2}]]]`))
	f.Add([]byte(`{"drainit":1,"verb":"drain","budget_ns":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeRequest(text)
		if err != nil {
			if !reflect.DeepEqual(r, Request{}) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v, %v", r, err)
			}
			return
		}
		drain := r.Verb == Drain
		if !drain && r.Verb != Announce && r.Verb != Undrain && r.Verb != Status {
			t.Errorf("verb %q", r.Verb)
		}
		for _, d := range []*time.Duration{r.Budget, r.AnnounceDelay} {
			if d != nil && (!drain || *d < 0) {
				t.Errorf("%s %v", r.Verb, *d)
			}
		}
		again, err := encodeRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeRequest(again); err != nil || !reflect.DeepEqual(r, back) {
			t.Errorf("%+v came back as %+v, %v", r, back, err)
		}
	})
}

// FuzzDecodeReply: whoever listens there, the client gets an error or a result that
// is an exit status.
func FuzzDecodeReply(f *testing.F) {
	f.Add([]byte(`{"drainit":1,"answer":{"code":0,"status":{"state":"running","phases":[{}]}}}`))
	f.Add([]byte(`{"drainit":2,"refused":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeReply(text)
		if err == nil && r.Refused == "" && r.Answer != nil && (r.Answer.Code < 0 || r.Answer.Code > 2) {
			t.Errorf("%+v", r)
		}
	})
}

func TestCut(t *testing.T) {
	for _, text := range []string{
		"", "x", strings.Repeat("x", maxText), strings.Repeat("x", maxText+1), strings.Repeat("é", maxText),
		"x" + strings.Repeat("é", maxText), "xx" + strings.Repeat("😀", maxText), "x" + strings.Repeat("😀", maxText),
		strings.Repeat("\x80", maxText+9),
	} {
		got := cut(text)
		if !strings.HasPrefix(text, got) || len(got) > maxText || len(got) < min(len(text), maxText-utf8.UTFMax) ||
			utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%.10q: %d bytes of %d", text, len(got), len(text))
		}
	}
}
