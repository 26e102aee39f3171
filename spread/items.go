package spread

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// maxItem is the most that an item may have, in bytes. The kernel takes less for
// one argument (execve(2): 128 KiB with pages of 4 KiB); more is not kept.
const maxItem = 1 << 20

var (
	errLong  = errors.New("longer than 1 MiB")
	errNUL   = errors.New("a NUL byte can't be part of an argument")
	errFault = errors.New("internal fault")
)

// item is one line of the input.
type item struct {
	text string
	bad  error // it can't be an argument of a process; nil: it can
}

// read reads items to the end of the input, one a line; the last one may lack
// its newline. A carriage return in front of the newline is no part of an item,
// and an empty line is none.
func read(r io.Reader) (all []item, err error) {
	defer func() {
		if recover() != nil {
			all, err = nil, errFault
		}
	}()
	in := bufio.NewReaderSize(r, 64<<10)
	for err == nil {
		var line []byte
		line, err = readLine(in)
		if it := itemOf(line); it.text != "" {
			all = append(all, it)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return all, err
}

// readLine returns a line without its end, or the beginning of one that is too
// long for an item.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if n := len(part); n > 0 && part[n-1] == '\n' {
			part = part[:n-1]
		}
		if len(line) <= maxItem {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func itemOf(line []byte) item {
	text := strings.TrimSuffix(string(line), "\r")
	switch {
	case len(text) > maxItem:
		return item{text[:shown], errLong}
	case strings.IndexByte(text, 0) >= 0:
		return item{text, errNUL}
	}
	return item{text: text}
}

// argv is the command for an item: every {} in its arguments is replaced, and
// where there is none, the item is the last argument. The program itself is
// never replaced, so that no item can choose it.
func argv(command []string, text string) []string {
	args := make([]string, 0, len(command)+1)
	place := false
	for i, a := range command {
		if i > 0 && strings.Contains(a, "{}") {
			a, place = strings.ReplaceAll(a, "{}", text), true
		}
		args = append(args, a)
	}
	if !place {
		args = append(args, text)
	}
	return args
}
