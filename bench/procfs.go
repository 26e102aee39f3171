//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A footprint is what an idle process costs. Memory is in kB as proc(5) has it.
type footprint struct {
	rss, pss, anonymous float64
	threads             int
	switches            float64 // voluntary context switches of the living threads
}

func readFootprint(pid int) (footprint, error) {
	var f footprint
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return f, err
	}
	f.rss = field(rollup, "Rss:")
	f.pss = field(rollup, "Pss:")
	f.anonymous = field(rollup, "Anonymous:")
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		return f, err
	}
	f.threads = len(tasks)
	for _, path := range tasks {
		status, err := os.ReadFile(path)
		if err != nil {
			return f, err
		}
		f.switches += field(status, "voluntary_ctxt_switches:")
	}
	return f, nil
}

// field returns the number behind a name at the start of a line, 0 without.
func field(text []byte, name string) float64 {
	for line := range bytes.Lines(text) {
		if words := bytes.Fields(line); len(words) > 1 && string(words[0]) == name {
			n, _ := strconv.ParseFloat(string(words[1]), 64)
			return n
		}
	}
	return 0
}

// cpuTime is the time that a process has run, in nanoseconds: the sum over its
// threads of schedstat's first number. The ticks in /proc/PID/stat, which count
// threads that have ended too, are the way out on a kernel without schedstat.
func cpuTime(pid int) (float64, error) {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if len(paths) == 0 {
		return cpuTicks(pid)
	}
	var sum float64
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseFloat(ran, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += n
	}
	return sum, nil
}

func cpuTicks(pid int) (float64, error) {
	words, err := statFields(pid)
	if err != nil {
		return 0, err
	}
	const tick = 1e9 / 100 // USER_HZ is 100 everywhere that Go runs
	user, _ := strconv.ParseFloat(words[11], 64)
	system, _ := strconv.ParseFloat(words[12], 64)
	return (user + system) * tick, nil
}

// statFields returns /proc/PID/stat from field 3, the state, on: the name
// before it may hold spaces and brackets.
func statFields(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(words) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(words))
	}
	return words, nil
}

func procState(pid int) (state byte, parent int, err error) {
	words, err := statFields(pid)
	if err != nil {
		return 0, 0, err
	}
	parent, err = strconv.Atoi(words[1])
	return words[0][0], parent, err
}

// zombies counts the dead children of a process that it has not reaped.
func zombies(parent int) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	count := 0
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if state, ppid, err := procState(pid); err == nil && state == 'Z' && ppid == parent {
			count++
		}
	}
	return count
}
