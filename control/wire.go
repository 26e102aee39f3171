package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// protocol is the version of what is spoken: one JSON object a line, each with
// this number. The server sends any number of lines and closes after its answer.
const protocol = 1

const (
	maxRequest = 4 << 10 // bytes, with the newline
	maxReply   = 1 << 20
	maxText    = 4 << 10 // of a progress line
)

// request is the one line of a client. Of the durations only a drain has any.
type request struct {
	Version       int    `json:"drainit"`
	Verb          string `json:"verb"`
	Budget        *int64 `json:"budget_ns,omitempty"`
	AnnounceDelay *int64 `json:"announce_delay_ns,omitempty"`
}

// reply is a line of the server, which says one of the four.
type reply struct {
	Version  int     `json:"drainit"`
	Taken    bool    `json:"taken,omitempty"`    // the request has reached the loop
	Progress string  `json:"progress,omitempty"` // for a person
	Refused  string  `json:"refused,omitempty"`  // nobody was asked
	Answer   *answer `json:"answer,omitempty"`
}

type answer struct {
	Code   int    `json:"code"`
	Text   string `json:"text,omitempty"`
	Status *State `json:"status,omitempty"`
}

// line encodes a message, with its newline.
func line(message any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func encodeRequest(r Request) ([]byte, error) {
	return line(request{Version: protocol, Verb: r.Verb, Budget: (*int64)(r.Budget), AnnounceDelay: (*int64)(r.AnnounceDelay)})
}

// decodeRequest is strict: a request of which a part was not understood must not
// be carried out. The error is for the client.
func decodeRequest(text []byte) (Request, error) {
	var head struct {
		Version *int `json:"drainit"`
	}
	switch err := json.Unmarshal(text, &head); {
	case err != nil || head.Version == nil:
		return Request{}, errors.New("malformed request")
	case *head.Version != protocol:
		return Request{}, fmt.Errorf("the client speaks version %d of the control protocol, this init version %d", *head.Version, protocol)
	}
	var r request
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Request{}, fmt.Errorf("malformed request: %w", err)
	}
	return r.validate()
}

func (r request) validate() (Request, error) {
	switch r.Verb {
	case Announce, Undrain, Status:
		if r.Budget != nil || r.AnnounceDelay != nil {
			return Request{}, fmt.Errorf("%s takes no duration", r.Verb)
		}
	case Drain:
		for _, d := range []*int64{r.Budget, r.AnnounceDelay} {
			if d != nil && *d < 0 {
				return Request{}, fmt.Errorf("a duration of %v is negative", time.Duration(*d))
			}
		}
	default:
		return Request{}, fmt.Errorf("unknown verb %q", r.Verb)
	}
	return Request{Verb: r.Verb, Budget: (*time.Duration)(r.Budget), AnnounceDelay: (*time.Duration)(r.AnnounceDelay)}, nil
}

// decodeReply is lenient: what a newer init tells beside is left out.
func decodeReply(text []byte) (reply, error) {
	var r reply
	switch err := json.Unmarshal(text, &r); {
	case err != nil || r.Version == 0:
		return r, errors.New("what listens there is no drainit")
	case r.Refused != "": // understood from every version
	case r.Version != protocol:
		return r, fmt.Errorf("the init speaks version %d of the control protocol, this client version %d", r.Version, protocol)
	case r.Answer != nil && (r.Answer.Code < 0 || r.Answer.Code > 2):
		return r, fmt.Errorf("unknown result %d", r.Answer.Code)
	}
	return r, nil
}
