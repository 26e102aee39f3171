package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// namespace returns the inode number of a process's PID namespace (namespaces(7)).
// That of "self" is right under any /proc.
func namespace(pid string) (string, error) {
	link, err := os.Readlink("/proc/" + pid + "/ns/pid")
	if err != nil {
		return "", err
	}
	number, found := strings.CutPrefix(link, "pid:[")
	number, closed := strings.CutSuffix(number, "]")
	if !found || !closed || !digits(number) {
		return "", fmt.Errorf("read %q: %q is no PID namespace", "/proc/"+pid+"/ns/pid", link)
	}
	return number, nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// properProc tells whether /proc shows the processes of our own PID namespace: one
// that was mounted for another shows others under our numbers.
func properProc() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// nested counts the numbers that a process has, one for each PID namespace from
// that of /proc down to its own (NSpid in proc_pid_status(5), Linux 4.1).
func nested(file string) (int, error) {
	all, err := field(file, "NSpid:")
	if err != nil {
		return 0, err
	}
	numbers := strings.Fields(all)
	for _, n := range numbers {
		if !digits(n) || n == "0" { // -1 once it has been reaped
			return 0, errGone
		}
	}
	if len(numbers) == 0 {
		return 0, fmt.Errorf("read %q: no number behind NSpid", file)
	}
	return len(numbers), nil
}

// parentOf returns a process's parent; 0: it has none in our namespace, or that is
// not known.
func parentOf(pid int) int {
	text, err := field("/proc/"+strconv.Itoa(pid)+"/status", "PPid:")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(text))
	return n
}

// field returns what stands behind a word at the beginning of a line.
func field(file, word string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := readField(f, word)
	if err != nil {
		err = fmt.Errorf("read %q: %w", file, err)
	}
	return text, err
}

func readField(r io.Reader, word string) (text string, err error) {
	found := false
	err = eachLine(r, func(line []byte) bool {
		text, found = strings.CutPrefix(string(line), word)
		return !found
	})
	if err == nil && !found {
		err = fmt.Errorf("no %q", word)
	}
	return text, err
}

// eachLine calls f for each line until it returns false. Of a line that is longer
// than the buffer it gets the first part.
func eachLine(r io.Reader, f func(line []byte) bool) error {
	b := bufio.NewReader(r)
	for begun := false; ; {
		line, err := b.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !long && !errors.Is(err, io.EOF) {
			return err
		}
		if more := begun || len(line) == 0 || f(trimNewline(line)); !more || err != nil && !long {
			return nil
		}
		begun = long
	}
}

func trimNewline(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		return line[:n-1]
	}
	return line
}
