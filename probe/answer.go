package probe

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
)

// answer is one of the fixed ones, made once so that a probe costs no memory.
type answer struct {
	status int
	length []string // of body, as a header field's value
	body   string
}

// answers is the http.Handler. All of it is read only after newAnswers, but for
// the pool; header values are shared by all requests, net/http only reads them.
type answers struct {
	server *Server

	alive, notFound, notAllowed  answer
	ready, unavailable, draining answer

	allow, json, text, noStore []string
	pages                      sync.Pool // of *page
}

func newAnswers(s *Server) *answers {
	unready := s.config.UnreadyStatus
	if unready == 0 {
		unready = http.StatusServiceUnavailable
	}
	return &answers{
		server:      s,
		alive:       fixed(http.StatusOK, "alive"),
		ready:       fixed(http.StatusOK, "ready"),
		unavailable: fixed(unready, "unavailable"),
		draining:    fixed(unready, "draining"),
		notFound:    fixed(http.StatusNotFound, "not_found"),
		notAllowed:  fixed(http.StatusMethodNotAllowed, "method_not_allowed"),
		allow:       []string{"GET, HEAD"},
		json:        []string{"application/json"},
		text:        []string{"text/plain; version=0.0.4; charset=utf-8"},
		noStore:     []string{"no-store"},
		pages:       sync.Pool{New: func() any { return new(page) }},
	}
}

// fixed makes an answer. There is no newline after the JSON: the bodies are
// compared as a whole by scripts and by balancers' expect rules.
func fixed(status int, word string) answer {
	body := `{"status":"` + word + `"}`
	return answer{status: status, length: []string{strconv.Itoa(len(body))}, body: body}
}

// ServeHTTP answers one request and never reads its body. Where it faults, the
// client sees the connection end without an answer.
func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if fault := recover(); fault != nil {
			a.server.tell(slog.LevelError, "probe answer fault", "fault", fault)
			panic(http.ErrAbortHandler) // the one that net/http keeps quiet about
		}
	}()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header()["Allow"] = a.allow
		a.give(w, r, &a.notAllowed)
		return
	}
	c := &a.server.config
	// The path as it was sent, not as it is decoded: that is what "exactly" means.
	switch path := r.URL.EscapedPath(); path {
	case c.ReadyPath:
		a.give(w, r, a.readiness())
	case c.LivePath:
		a.give(w, r, &a.alive)
	case c.MetricsPath:
		a.metrics(w, r)
	case "/health/ready":
		a.give(w, r, a.readiness())
	case "/health/live":
		a.give(w, r, &a.alive)
	default:
		a.give(w, r, &a.notFound)
	}
}

func (a *answers) readiness() *answer {
	switch Status(a.server.status.Load()) {
	case Ready:
		return &a.ready
	case Draining:
		return &a.draining
	}
	return &a.unavailable
}

func (a *answers) give(w http.ResponseWriter, r *http.Request, what *answer) {
	head := w.Header()
	head["Content-Type"], head["Cache-Control"], head["Content-Length"] = a.json, a.noStore, what.length
	w.WriteHeader(what.status)
	if r.Method != http.MethodHead {
		// A client that has gone is no fault of ours, and nobody else's concern.
		_, _ = io.WriteString(w, what.body)
	}
}

func (a *answers) metrics(w http.ResponseWriter, r *http.Request) {
	p := a.pages.Get().(*page)
	defer a.pages.Put(p)
	done := p.fill(a.server)
	head := w.Header()
	head["Content-Type"], head["Cache-Control"] = a.text, a.noStore
	head["Content-Length"] = []string{strconv.Itoa(len(p.text))}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(p.text)
	if scraped := a.server.config.Scraped; scraped != nil && done && flushed(w) {
		scraped()
	}
}

// flushed: what was written may stand in a buffer until the handler returns,
// which would be too late to know whether it ever left. The buffer keeps the
// error of an earlier write for its flush (bufio.Writer).
func flushed(w http.ResponseWriter) bool {
	return http.NewResponseController(w).Flush() == nil
}
