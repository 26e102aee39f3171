package control

import (
	"errors"
	"unicode/utf8"
)

// errEnding is what those are told who were never answered.
var errEnding = errors.New("the init is ending")

// attend serves one client to the end. It is its goroutine.
func (s *Server) attend(c *caller) {
	defer s.crowd.leave(c)
	defer c.close()
	defer s.recovered()
	r, err := c.read(s.patience)
	if err != nil {
		c.refuse(err)
		return
	}
	id, full := s.crowd.ask(c, r.Verb == Drain)
	if full {
		c.refuse(errors.New("too many clients wait for the drain already"))
	}
	if id == 0 {
		return
	}
	c.watched = true
	go func() {
		defer close(c.gone)
		defer s.recovered()
		c.watch()
	}()
	s.wait(c, Call{ID: id, Request: r})
}

// wait hands a request to the loop, and sees the client off. It has no end of its
// own: a drain takes as long as it takes.
func (s *Server) wait(c *caller, call Call) {
	if !s.queue(c, call) {
		return
	}
	c.taken()
	s.wake()
	select {
	case <-c.ending:
		c.flush(s.patience)
	case <-s.quit:
		c.refuse(errEnding) // nothing, after an answer
	case <-c.gone:
		s.left(c, call.ID)
	}
}

// queue is false when the loop will never hear of the request.
func (s *Server) queue(c *caller, call Call) bool {
	select {
	case s.calls <- call: // also of a client that asks and does not wait
		return true
	default:
	}
	select {
	case s.calls <- call:
		return true
	case <-c.gone:
	case <-s.quit:
		c.refuse(errEnding)
	}
	return false
}

// left tells the loop of a client that hung up, unless it was answered, or it is
// us who have hung up.
func (s *Server) left(c *caller, id uint64) {
	select {
	case <-s.quit:
		return
	default:
	}
	if s.crowd.find(id) != c {
		return
	}
	select {
	case s.calls <- Call{ID: id, Left: true}:
		s.wake()
	case <-s.quit:
	}
}

// wake calls the loop's. A fault of it must not lose the client.
func (s *Server) wake() {
	defer s.recovered()
	s.options.Wake()
}

// taken tells the client that from now on it is the loop's answer that it waits for.
func (c *caller) taken() {
	if text, err := line(reply{Version: protocol, Taken: true}); err == nil {
		c.push(text, false)
	}
}

// Say sends a progress line to the client of a call, without a newline and of 4 KiB
// at most, what is longer is cut. It never blocks: a client that has not read the
// lines before, by some hundred KiB, does not get this one. An id that waits for
// no answer is ignored.
func (s *Server) Say(id uint64, text string) {
	defer s.recovered()
	c := s.crowd.find(id)
	if c == nil || text == "" {
		return
	}
	if b, err := line(reply{Version: protocol, Progress: cut(text)}); err == nil {
		c.push(b, false)
	}
}

// cut shortens a text to maxText bytes, between two characters.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Answer ends a call. It never blocks; when it returns the answer is in the
// client's buffer, and only a status of hundreds of KiB goes on being sent
// afterwards. An id that waits for no answer is ignored: it had one, or has left.
func (s *Server) Answer(id uint64, a Answer) {
	defer s.recovered()
	c := s.crowd.claim(id)
	if c == nil {
		return
	}
	defer close(c.ending)
	text, err := line(reply{Version: protocol, Answer: &answer{Code: a.Code, Text: a.Text, Status: a.Status}})
	if err != nil { // a figure that is not a number
		text, _ = line(reply{Version: protocol, Refused: err.Error()})
	}
	c.push(text, true)
	s.crowd.answered(c) // now, and not before, it may be sent away
}
