package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// explain turns the error of execve(2) into what a person needs to know: which
// file is missing, the command's or its interpreter's, or which permission.
func explain(name, file string, err error) error {
	if err == nil {
		return nil
	}
	e := &StartError{Name: name, Reason: reason(err), Status: 126, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Status = 127
		e.missing(file)
	case errors.Is(err, fs.ErrPermission):
		e.denied(file)
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = "not an executable of this machine, and there is no /bin/sh to run it as a script"
		e.Hint = "build it for this architecture, or begin the script with a line like #!/bin/sh"
	case errors.Is(err, syscall.E2BIG):
		e.Reason = "arguments and environment are too large"
		e.Hint = "one variable or argument may have 128 KiB at most, all together a quarter of the stack limit"
	}
	return e
}

// reason is the system's own word for the error.
func reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// missing tells a missing file from a missing interpreter: execve(2) answers
// ENOENT for both.
func (e *StartError) missing(file string) {
	e.Reason = "no such file"
	if _, err := os.Stat(file); err != nil {
		return
	}
	interp := missingInterpreter(file)
	switch {
	case interp == "": // a file that may be executed but not read
		e.Reason = "its interpreter was not found"
	case strings.HasSuffix(interp, "\r"):
		e.Reason = fmt.Sprintf("its interpreter %q was not found", interp)
		e.Hint = "the file has Windows line ends: convert it (dos2unix)"
	default:
		e.Reason = fmt.Sprintf("its interpreter %q was not found", interp)
		e.Hint = "add it to the image, or build the program statically"
	}
}

// maxChain is how many interpreters of interpreters the kernel follows.
const maxChain = 5

// missingInterpreter follows the interpreters of a file to the one that is not
// there; empty where it can't be told.
func missingInterpreter(file string) string {
	for range maxChain {
		file = interpreter(file)
		if file == "" {
			return ""
		}
		if _, err := os.Stat(file); err != nil {
			return file
		}
	}
	return ""
}

// denied says which permission is missing.
func (e *StartError) denied(file string) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		e.Reason = "permission denied on the way to it"
	case info.IsDir():
		e.Reason = "is a directory"
	case !info.Mode().IsRegular():
		e.Reason = "is no regular file"
	case info.Mode()&0o111 == 0:
		e.Reason = "not executable: no execute permission"
		e.Hint = "chmod +x " + file
	default:
		e.Reason = "permission denied: by its mode, its interpreter's, or a file system mounted noexec"
	}
}

// maxInterpreter is how much of a script's first line the kernel reads
// (BINPRM_BUF_SIZE).
const maxInterpreter = 256

// interpreter returns the program that the kernel runs for file: that of the
// #! line, or the dynamic loader that an ELF file names. Empty: neither.
func interpreter(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := bufio.NewReader(io.LimitReader(f, maxInterpreter)).ReadString('\n')
	if line, ok := strings.CutPrefix(head, "#!"); ok {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\n"), " \t")
		if end := strings.IndexAny(line, " \t"); end >= 0 {
			line = line[:end]
		}
		return line
	}
	return loader(f)
}

// Offsets and sizes of the ELF headers, by class (elf(5)): where the program
// headers begin, their size and number; and in each of them, type, offset and
// size of the segment. debug/elf knows all this too, but drags the debugger's
// formats into the binary (0.5 MB).
type elfLayout struct{ phoff, phentsize, phnum, offset, filesz, word int }

var (
	elf32 = elfLayout{phoff: 28, phentsize: 42, phnum: 44, offset: 4, filesz: 16, word: 4}
	elf64 = elfLayout{phoff: 32, phentsize: 54, phnum: 56, offset: 8, filesz: 32, word: 8}
)

const (
	elfHeader  = 64   // of the larger class
	ptInterp   = 3    // p_type of the dynamic loader's name
	maxSegment = 4096 // PATH_MAX: the kernel refuses a longer name
	maxHeaders = 1024
)

// loader reads the name of the dynamic loader. Anything odd has none.
func loader(r io.ReaderAt) string {
	head := make([]byte, elfHeader)
	if n, _ := r.ReadAt(head, 0); n < 52 || string(head[:4]) != "\x7fELF" {
		return ""
	}
	l := elf64
	if head[4] == 1 {
		l = elf32
	}
	number := func(b []byte, at, size int) int64 {
		var n uint64
		for i := range size {
			shift := i
			if head[5] == 2 { // most significant byte first
				shift = size - 1 - i
			}
			n |= uint64(b[at+i]) << (8 * shift)
		}
		return int64(n)
	}
	at, size := number(head, l.phoff, l.word), number(head, l.phentsize, 2)
	entry := make([]byte, 56)
	for range min(number(head, l.phnum, 2), maxHeaders) {
		if n, _ := r.ReadAt(entry, at); n < 32 {
			return ""
		}
		if number(entry, 0, 4) == ptInterp {
			name := make([]byte, max(min(number(entry, l.filesz, l.word), maxSegment), 0))
			n, _ := r.ReadAt(name, number(entry, l.offset, l.word))
			return strings.TrimRight(string(name[:n]), "\x00")
		}
		at += size
	}
	return ""
}
