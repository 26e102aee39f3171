package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat is what /proc tells of a process, in the test's own numbers.
type stat struct {
	pid, parent, group, session int
	state                       string
	name                        string
}

// processes lists all processes that the test can see.
func processes() []stat {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	var all []stat
	for _, n := range names {
		b, err := os.ReadFile(n)
		open, shut := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		if err != nil || shut < open || open < 0 {
			continue
		}
		f := strings.Fields(string(b[shut+1:]))
		var s stat
		s.pid, _ = strconv.Atoi(strings.TrimSpace(string(b[:open])))
		s.name, s.state = string(b[open+1:shut]), f[0]
		s.parent, _ = strconv.Atoi(f[1])
		s.group, _ = strconv.Atoi(f[2])
		s.session, _ = strconv.Atoi(f[3])
		all = append(all, s)
	}
	return all
}

// children are the direct ones, zombies too.
func children(pid int) []stat {
	var all []stat
	for _, s := range processes() {
		if s.parent == pid {
			all = append(all, s)
		}
	}
	return all
}

// descendants are the pids below a process.
func descendants(pid int) []int {
	all := processes()
	var found []int
	for grown := []int{pid}; len(grown) > 0; {
		var next []int
		for _, s := range all {
			for _, parent := range grown {
				if s.parent == parent {
					next = append(next, s.pid)
				}
			}
		}
		found, grown = append(found, next...), next
	}
	return found
}

func tree(pid int) string {
	var b strings.Builder
	for _, d := range append([]int{pid}, descendants(pid)...) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d))
		b.Write(line)
	}
	return b.String()
}

// alive tells whether a process exists and is no zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(b, ')')
	return i > 0 && len(b) > i+2 && b[i+2] != 'Z' && b[i+2] != 'X'
}

// state is a process's state letter; "" when it is gone.
func state(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 || len(b) < i+3 {
		return ""
	}
	return string(b[i+2])
}
