package probe

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	alive       = `{"status":"alive"}`
	ready       = `{"status":"ready"}`
	unavailable = `{"status":"unavailable"}`
	draining    = `{"status":"draining"}`
	notFound    = `{"status":"not_found"}`
	notAllowed  = `{"status":"method_not_allowed"}`
)

// bubble runs a test in virtual time.
func bubble(t *testing.T, c Config, counters Counters, test func(*testing.T, *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := serveMemory(t, c, counters)
		test(t, h)
		h.stop()
		time.Sleep(time.Second) // net/http's own sleep, which Serve doesn't join
	})
}

func TestAnswers(t *testing.T) {
	cases := []struct {
		status         Status
		method, target string
		code           int
		body           string
	}{
		{Unavailable, "GET", "/livez", 200, alive},
		{Draining, "GET", "/livez", 200, alive},
		{Unavailable, "GET", "/readyz", 503, unavailable},
		{Ready, "GET", "/readyz", 200, ready},
		{Draining, "GET", "/readyz", 503, draining},
		{Status(7), "GET", "/readyz", 503, unavailable},
		{Ready, "GET", "/health/ready", 200, ready},
		{Draining, "GET", "/health/live", 200, alive},
		{Ready, "GET", "/readyz?probe=kubelet", 200, ready},
		{Ready, "GET", "/readyz?", 200, ready},
		{Ready, "GET", "/readyz?;%zz", 200, ready},
		{Ready, "GET", "http://elsewhere/readyz", 200, ready},
		{Ready, "HEAD", "/readyz", 200, ""},
		{Draining, "HEAD", "/readyz", 503, ""},
		{Ready, "GET", "/admin", 404, notFound},
		{Ready, "HEAD", "/admin", 404, ""},
		{Ready, "GET", "/", 404, notFound},
		{Ready, "GET", "/readyz/", 404, notFound},
		{Ready, "GET", "//readyz", 404, notFound},
		{Ready, "GET", "/x/../readyz", 404, notFound},
		{Ready, "GET", "/ready%7a", 404, notFound},
		{Ready, "GET", "/READYZ", 404, notFound},
		{Ready, "POST", "/livez", 405, notAllowed},
		{Ready, "DELETE", "/admin", 405, notAllowed},
		{Ready, "OPTIONS", "*", 405, notAllowed},
		{Ready, "CONNECT", "x:80", 405, notAllowed},
		{Ready, "get", "/livez", 405, notAllowed},
	}
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		for _, c := range cases {
			h.SetStatus(c.status)
			r, body := h.ask(t, c.method, c.target)
			if r.StatusCode != c.code || body != c.body {
				t.Errorf("%s %s at %d: %d %q, want %d %q", c.method, c.target, c.status, r.StatusCode, body, c.code, c.body)
			}
			if allow := r.Header.Get("Allow"); (allow == "GET, HEAD") != (c.code == 405) {
				t.Errorf("%s %s: Allow %q", c.method, c.target, allow)
			}
		}
	})
}

// TestBytes holds the whole answer, but for the date, to what it was.
func TestBytes(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		date := regexp.MustCompile(`Date: .*\r\n`)
		head := "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 18\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
		for request, want := range map[string]string{
			"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n":  head + alive,
			"HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n": head,
			"GET /livez HTTP/1.0\r\n\r\n":             strings.NewReplacer("/1.1", "/1.0", "Connection: close\r\n", "").Replace(head) + alive,
			"GET /livez HTTP/1.1\nHost: x\n\n":        head + alive,
			"POST /livez HTTP/1.1\r\nHost: x\r\n\r\n": "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nCache-Control: no-store\r\nContent-Length: 31\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + notAllowed,
			"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n": "HTTP/1.1 503 Service Unavailable\r\nCache-Control: no-store\r\nContent-Length: 24\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + unavailable,
		} {
			got := date.ReplaceAllString(h.raw(t, request), "")
			if got != want {
				t.Errorf("%q:\n got %q\nwant %q", request, got, want)
			}
		}
	})
}

func TestUnreadyStatusAndPaths(t *testing.T) {
	c := Config{ReadyPath: "/ready", LivePath: "/health/ready", MetricsPath: "/m", UnreadyStatus: 404}
	bubble(t, c, Counters{}, func(t *testing.T, h *house) {
		for target, want := range map[string]struct {
			code int
			body string
		}{
			"/ready":        {404, unavailable},
			"/health/ready": {200, alive}, // what is configured wins
			"/health/live":  {200, alive},
			"/livez":        {404, notFound},
			"/readyz":       {404, notFound},
			"/metrics":      {404, notFound},
		} {
			if r, body := h.ask(t, "GET", target); r.StatusCode != want.code || body != want.body {
				t.Errorf("%s: %d %q, want %v", target, r.StatusCode, body, want)
			}
		}
		if r, _ := h.ask(t, "GET", "/m"); r.StatusCode != 200 {
			t.Errorf("/m: %d", r.StatusCode)
		}
	})
}

// TestRefused: what is not a request gets one 4xx or 5xx, and harms nobody.
func TestRefused(t *testing.T) {
	bubble(t, paths(), Counters{}, func(t *testing.T, h *house) {
		for _, request := range []string{
			"GET /" + strings.Repeat("a", 70_000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /livez HTTP/1.1\r\nHost: x\r\nCookie: " + strings.Repeat("a", 70_000) + "\r\n\r\n",
			"GET /livez HTTP/1.1\r\n\r\n", // no Host
			"GET /livez HTTP/2.0\r\nHost: x\r\n\r\n",
			"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
			"\x16\x03\x01\x00\xa5\x01\x00\x00\r\n\r\n",
			"GET\r\n\r\n",
		} {
			got := h.raw(t, request)
			if strings.Count(got, "HTTP/1.") != 1 || !strings.Contains("45", got[9:10]) || strings.Contains(got, "goroutine") {
				t.Errorf("%.40q: %q", request, got)
			}
			if r, _ := h.ask(t, "GET", "/livez"); r.StatusCode != http.StatusOK {
				t.Errorf("after %.40q: %d", request, r.StatusCode)
			}
		}
		if h.log.String() != "" {
			t.Errorf("log: %s", h.log)
		}
	})
}

// TestFault: the client of a fault sees the end, one record is left, life goes on.
func TestFault(t *testing.T) {
	boom := Counters{Reaped: func() uint64 { panic(errors.New("boom")) }}
	bubble(t, paths(), boom, func(t *testing.T, h *house) {
		if got := h.raw(t, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); got != "" {
			t.Errorf("got %q", got)
		}
		if r, _ := h.ask(t, "GET", "/livez"); r.StatusCode != http.StatusOK {
			t.Errorf("next: %d", r.StatusCode)
		}
		record := h.log.String()
		if strings.Count(record, "\n") != 1 || !strings.Contains(record, `level=ERROR msg="probe answer fault" fault=boom`) {
			t.Errorf("log: %s", record)
		}
	})
}
