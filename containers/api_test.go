//go:build linux && !race

package containers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// call makes a request of the engine itself, which is cheaper than the client
// where one asks often. The body is to be closed.
func call(method, path string, within time.Duration) (io.ReadCloser, error) {
	client := http.Client{Timeout: within, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(site.dir, engineSocket))
		},
	}}
	req, err := http.NewRequest(method, "http://docker"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	return resp.Body, nil
}

// ask decodes the answer; nil: it is of no interest.
func ask(path string, answer any) error {
	body, err := call("GET", path, patience)
	if err != nil {
		return err
	}
	defer body.Close()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(body).Decode(answer)
}

// state is what the engine tells of a container.
type state struct {
	ID           string
	RestartCount int
	State        struct {
		Status                string
		Running               bool
		ExitCode              int
		Error                 string
		StartedAt, FinishedAt time.Time
		Health                *struct {
			Status string
			Log    []struct {
				ExitCode int
				Output   string
			}
		}
	}
}

// event is something that the engine has done.
type event struct {
	Action   string
	TimeNano int64
	Actor    struct {
		ID         string
		Attributes map[string]string
	}
}

// events are all that the engine tells of signals it has sent, and of marks. It
// keeps too few itself to be asked later.
type events struct {
	mu    sync.Mutex
	seen  []event
	marks int
	ended error // why there are no more
}

// markEvent is what the engine tells when an image gets a tag.
const markEvent = "tag"

// follow begins to listen. It ends with the engine.
func (e *events) follow() error {
	body, err := call("GET", `/events?filters={"event":["kill","`+markEvent+`"]}`, 0)
	if err != nil {
		return err
	}
	go func() {
		defer body.Close()
		d := json.NewDecoder(body)
		for {
			var one event
			err := d.Decode(&one)
			e.mu.Lock()
			if e.ended = err; err == nil {
				e.seen = append(e.seen, one)
			}
			e.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return nil
}

// until waits for all that has happened so far, and returns it. What that is an
// event of its own tells: the engine tells them in order.
func (e *events) until(t *testing.T) []event {
	t.Helper()
	e.mu.Lock()
	e.marks++
	mark := "mark:" + strconv.Itoa(e.marks)
	e.mu.Unlock()
	body, err := call("POST", "/images/"+image("base")+"/tag?repo=mark&tag="+mark[len("mark:"):], patience)
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	var seen []event
	eventually(t, "the engine's events", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.ended != nil {
			t.Fatal(e.ended)
		}
		seen = slices.Clone(e.seen)
		return slices.ContainsFunc(seen, func(one event) bool {
			return one.Action == markEvent && one.Actor.Attributes["name"] == mark
		})
	})
	return seen
}

// killed are the signals that the engine has sent to a container, in order.
func killed(t *testing.T, id string) []string {
	t.Helper()
	var all []string
	for _, one := range site.events.until(t) {
		if one.Action == "kill" && one.Actor.ID == id {
			all = append(all, one.Actor.Attributes["signal"])
		}
	}
	return all
}
