//go:build linux

package rolling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scene is one replacement: three old replicas, three new ones, the balancer
// before them, the load, and what came of it.
type scene struct {
	workload workload
	init     initSystem
	dir      string
	upstream string // socket of the slow server that nginx stands before
	old, new []*replica
	ports    map[int]bool // given to replicas
	balancer *balancer
	server   *http.Server

	counts    map[string]count
	stopTimes []time.Duration
	problems  []string
}

// newScene prepares all that can be had without starting a program. What it
// returns must be closed, also with an error; the test's end does it at last.
func newScene(t *testing.T, w workload, in initSystem) (*scene, error) {
	s := &scene{workload: w, init: in, ports: map[int]bool{}}
	// Not t.TempDir: its path may be too long for a socket's.
	dir, err := os.MkdirTemp("", "rolling")
	if err != nil {
		return s, err
	}
	t.Cleanup(func() {
		s.close()
		os.RemoveAll(dir)
	})
	s.dir = dir
	for i := range replicas {
		old, err := s.newReplica("old" + strconv.Itoa(i+1))
		if err != nil {
			return s, err
		}
		fresh, err := s.newReplica("new" + strconv.Itoa(i+1))
		if err != nil {
			return s, err
		}
		s.old, s.new = append(s.old, old), append(s.new, fresh)
	}
	return s, s.serveUpstream()
}

// serveUpstream starts the slow server: half of the body, a pause, the rest.
func (s *scene) serveUpstream() error {
	s.upstream = filepath.Join(s.dir, "upstream.sock")
	l, err := net.Listen("unix", s.upstream)
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: http.HandlerFunc(answerSlowly)}
	go s.server.Serve(l) // ends at close
	return nil
}

func answerSlowly(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(filepath.Base(r.URL.Path))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	const least, most = 20 * time.Millisecond, 120 * time.Millisecond // of longestRequest
	delay := least + rand.N(most-least)
	body := bodyOf(n)
	half := len(body) / 2
	time.Sleep(delay / 2) // the work that a real one would do
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = io.WriteString(w, body[:half]) // nginx may have gone: the client counts that
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	time.Sleep(delay / 2)
	_, _ = io.WriteString(w, body[half:])
}

// run does the replacement, and at last stops the new replicas too.
func (s *scene) run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	// A client that got all of the requests would still come to an end.
	l := startLoad(ctx, s.balancer.addr, 20*s.init.requests)
	err := s.replaceAll(ctx, l)
	s.counts = l.finish()
	if err != nil {
		return fmt.Errorf("%w (clients: %v)", err, s.counts)
	}
	if err := s.inspect(); err != nil {
		return err
	}
	return s.stop(s.new...)
}

// begin starts the old replicas and the balancer. The load must not begin before
// each server has been checked: until then the balancer takes those that are
// still to come for servers too.
func (s *scene) begin(ctx context.Context) error {
	for _, r := range s.old {
		if err := r.start(s); err != nil {
			return err
		}
	}
	var err error
	if s.balancer, err = startBalancer(s.dir, s.init.probed, append(s.old[:replicas:replicas], s.new...)); err != nil {
		return err
	}
	return s.await(ctx, "old replicas up, new ones not", s.old, func(now map[string]server) bool {
		for i := range replicas {
			if !now[s.old[i].Name].up() || !now[s.new[i].Name].down() {
				return false
			}
		}
		return true
	})
}

// replaceAll replaces one replica after the other, the requests spread evenly
// before, between and after.
func (s *scene) replaceAll(ctx context.Context, l *load) error {
	for i := range replicas {
		if err := l.await(ctx, s.init.requests*(i+1)/(replicas+1)); err != nil {
			return err
		}
		if err := s.replaceOne(ctx, s.old[i], s.new[i]); err != nil {
			return err
		}
	}
	// On a slow machine all requests may have been made by now, none of them by
	// the last new one.
	return l.await(ctx, max(s.init.requests, l.done()+10*clients))
}

// await waits until both kinds have made n requests each; the pace is the
// machine's.
func (l *load) await(ctx context.Context, n int) error {
	return eventually(ctx, strconv.Itoa(n)+" requests", func() (bool, error) { return l.done() >= n, nil })
}

// replaceOne is what an orchestrator does: the new one first.
func (s *scene) replaceOne(ctx context.Context, old, fresh *replica) error {
	if err := fresh.start(s); err != nil {
		return err
	}
	err := s.await(ctx, fresh.Name+" up", []*replica{fresh}, func(now map[string]server) bool {
		return now[fresh.Name].up()
	})
	if err != nil {
		return err
	}
	return s.stop(old)
}

// stop sends the stop signal to all of them, waits until they have ended by
// themselves, and judges how they did. The test never ends one that should have.
func (s *scene) stop(all ...*replica) error {
	from := time.Now()
	for _, r := range all {
		if r.ended() {
			return r.early()
		}
		if err := r.cmd.Process.Signal(s.init.stop(s.workload)); err != nil {
			return fmt.Errorf("signal %s: %w", r.Name, err)
		}
	}
	for _, r := range all {
		ended, err := r.await()
		if err != nil {
			return err
		}
		s.judge(r, ended.Sub(from))
	}
	return nil
}

// judge: with the workload's status, after the announce delay, in time.
func (s *scene) judge(r *replica, took time.Duration) {
	s.stopTimes = append(s.stopTimes, took.Round(time.Millisecond))
	if got := r.status(); got != s.workload.status {
		s.complain("%s: exit status %d, want %d", r.Name, got, s.workload.status)
	}
	if s.init.probed && took < announceDelay {
		s.complain("%s: stopped after %v, within its announce delay of %v", r.Name, took, announceDelay)
	}
	if took > gracePeriod {
		s.complain("%s: stopped after %v, grace period %v", r.Name, took, gracePeriod)
	}
}

// await waits until the balancer sees what is wanted. It gives up at once when a
// replica that is waited for has ended, or the balancer.
func (s *scene) await(ctx context.Context, what string, alive []*replica, ask func(map[string]server) bool) error {
	return eventually(ctx, what, func() (bool, error) {
		for _, r := range alive {
			if r.ended() {
				return false, r.early()
			}
		}
		if s.balancer.ended() {
			return false, fmt.Errorf("haproxy ended early with status %d", s.balancer.status())
		}
		now, err := s.balancer.servers()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return false, nil // it is about to start
		}
		return err == nil && ask(now), err
	})
}

// inspect reads the balancer's own figures: every replica did serve, and nothing
// was repeated behind the clients' backs.
func (s *scene) inspect() error {
	now, err := s.balancer.servers()
	if err != nil {
		return err
	}
	for i := range replicas {
		for _, r := range []*replica{s.old[i], s.new[i]} {
			served, err := strconv.Atoi(now[r.Name]["hrsp_2xx"])
			if err != nil {
				return fmt.Errorf("show stat: %s: hrsp_2xx: %w", r.Name, err)
			}
			if served == 0 {
				s.complain("%s has answered no request", r.Name)
			}
			for _, field := range []string{"wretr", "wredis"} {
				if now[r.Name][field] != "0" {
					s.complain("%s: %s is %q, want 0", r.Name, field, now[r.Name][field])
				}
			}
		}
	}
	return nil
}

func (s *scene) complain(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// close ends whatever is still there. It may be called more than once.
func (s *scene) close() {
	for _, p := range s.processes() {
		p.kill()
	}
	if s.server != nil {
		s.server.Close()
	}
}

func (s *scene) processes() []*process {
	var list []*process
	if s.balancer != nil && s.balancer.process != nil {
		list = append(list, s.balancer.process)
	}
	for _, r := range append(s.old[:len(s.old):len(s.old)], s.new...) {
		if r.process != nil {
			list = append(list, r.process)
		}
	}
	return list
}

// logs is the end of what each program printed.
func (s *scene) logs() string {
	var b strings.Builder
	for _, p := range s.processes() {
		fmt.Fprintf(&b, "--- %s\n%s\n", filepath.Base(p.log), p.tail())
	}
	return b.String()
}
