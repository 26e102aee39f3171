//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// addrMark stands in a prefix where a free address for the probe listener goes.
const addrMark = "{addr}"

// A subject is what is put in front of the workload's command.
type subject struct {
	name   string
	env    []string // variables in front of the command
	prefix []string
}

// The subjects that the measurements treat apart.
const (
	direct    = "direct" // no init at all: the zero
	reference = "tini"   // what ratios are relative to
)

func defaultSubjects(drainit string) ([]subject, error) {
	texts := []string{
		direct + "=",
		reference + "=tini -s --",
		"dumb-init=dumb-init --",
		"catatonit=catatonit --",
	}
	if drainit != "" {
		texts = append(texts,
			// As in the one line of a Dockerfile; the variable only keeps the
			// listeners of several runs apart.
			"drainit=DRAINIT_PROBE_ADDR="+addrMark+" "+drainit+" --",
			"drainit-flag="+drainit+" --probe-addr "+addrMark+" --",
			"drainit-noprobe=DRAINIT_PROBE_ADDR=none "+drainit+" --")
	}
	var all []subject
	for _, text := range texts {
		s, err := parseSubject(text)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// parseSubject reads NAME=PREFIX. The program is looked up once, here, so that
// the search is not part of what is measured.
func parseSubject(text string) (subject, error) {
	name, prefix, found := strings.Cut(text, "=")
	if !found || name == "" {
		return subject{}, fmt.Errorf("subject %q: want NAME=PREFIX", text)
	}
	s := subject{name: name, prefix: strings.Fields(prefix)}
	for len(s.prefix) > 0 && isVariable(s.prefix[0]) {
		s.env, s.prefix = append(s.env, s.prefix[0]), s.prefix[1:]
	}
	if len(s.prefix) == 0 {
		return s, nil
	}
	path, err := lookPath(s.prefix[0])
	if err != nil {
		return subject{}, fmt.Errorf("subject %s: %w", name, err)
	}
	s.prefix[0] = path
	return s, nil
}

// isVariable tells NAME=VALUE from a command.
func isVariable(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && !strings.Contains(name, "/")
}

func lookPath(name string) (string, error) {
	if strings.Contains(name, "/") {
		return filepath.Abs(name)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q: not found in $PATH", name)
}

// withSubject replaces the subject of the same name or adds a new one.
func withSubject(all []subject, s subject) []subject {
	for i := range all {
		if all[i].name == s.name {
			all[i] = s
			return all
		}
	}
	return append(all, s)
}

func (s subject) probed() bool {
	return strings.Contains(strings.Join(append(s.env, s.prefix...), " "), addrMark)
}

// argv and environ are the subject's words with the address in its place.
func (s subject) argv(addr string) []string    { return withAddr(s.prefix, addr) }
func (s subject) environ(addr string) []string { return withAddr(s.env, addr) }

func withAddr(words []string, addr string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = strings.ReplaceAll(word, addrMark, addr)
	}
	return out
}

// command is the prefix as a reader knows it, without folders.
func (s subject) command() string {
	if len(s.prefix) == 0 {
		return "(none)"
	}
	words := append([]string{}, s.env...)
	words = append(words, filepath.Base(s.prefix[0]))
	return strings.Join(append(words, s.prefix[1:]...), " ")
}

// inits are the subjects that are an init: all but direct.
func inits(all []subject) []subject {
	var out []subject
	for _, s := range all {
		if s.name != direct {
			out = append(out, s)
		}
	}
	return out
}

// shuffled gives round i another order, the same in each run of the benchmark.
// Who runs behind whom matters: a program finds what the one before it has left
// in the caches and among the free pages.
func shuffled(all []subject, i int) []subject {
	out := append([]subject(nil), all...)
	rand.New(rand.NewPCG(uint64(i), 0)).Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
	return out
}

// freeAddr asks the kernel for a port that is free now. The listener that
// reserved it is closed, so it is not a promise; nobody else is here to take it.
func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := listener.Addr().String()
	return addr, listener.Close()
}
