package self

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// trim gives back the pages of the init's own program file that starting up has
// mapped and that an idle init never looks at: most of what RSS shows of it,
// and a third of the time that its exit takes. The kernel maps them again when
// they are touched; they are clean, so nothing can be lost (madvise(2),
// MADV_DONTNEED). Where /proc can't be read they stay.
func trim() {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for from, size := range programPages(maps) {
		if !clean(from, size) {
			continue
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, from, size, syscall.MADV_DONTNEED)
	}
}

// programPages returns address and size of the mappings of the program file
// that can't be written to (proc_pid_maps(5)). Those that can, its data, differ
// from the file by now.
func programPages(maps []byte) map[uintptr]uintptr {
	own := uintptr(unsafe.Pointer(unsafe.StringData(marker)))
	file := ""
	found := make(map[uintptr]uintptr)
	lines := bytes.Split(maps, []byte{'\n'})
	for _, line := range lines { // the file is the one that holds our constants
		if m, ok := parseMapping(line); ok && m.from <= own && own < m.to {
			file = m.file
		}
	}
	for _, line := range lines {
		m, ok := parseMapping(line)
		if ok && file != "" && m.file == file && !m.writable {
			found[m.from] = m.to - m.from
		}
	}
	return found
}

// clean tells that no page of a mapping differs from the file. In a position
// independent program (-buildmode=pie) the loader has written the relocations
// into what is read-only afterwards (RELRO), and a debugger its breakpoints
// into the text: those pages are private copies, and their contents would be
// lost. /proc/self/pagemap: bit 63 present, bit 62 swapped, bit 61 a page of a file.
func clean(from, size uintptr) bool {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return false
	}
	defer f.Close()
	page := uintptr(os.Getpagesize())
	entries := make([]byte, size/page*8)
	if n, err := f.ReadAt(entries, int64(from/page*8)); err != nil || n != len(entries) {
		return false
	}
	for ; len(entries) > 0; entries = entries[8:] {
		switch binary.NativeEndian.Uint64(entries) >> 61 {
		case 0, 5: // not there, or a page of the file
		default:
			return false
		}
	}
	return true
}

// marker lies in the read-only data of the program file.
const marker = "drainit was here"

type mapping struct {
	from, to uintptr
	writable bool
	file     string // device, inode and name; empty: no file
}

// parseMapping reads one line: from-to perms offset dev inode name.
func parseMapping(line []byte) (mapping, bool) {
	fields := bytes.Fields(line)
	if len(fields) < 6 || len(fields[1]) < 2 || fields[5][0] != '/' {
		return mapping{}, false
	}
	from, to, ok := bytes.Cut(fields[0], []byte{'-'})
	a, errA := strconv.ParseUint(string(from), 16, 64)
	b, errB := strconv.ParseUint(string(to), 16, 64)
	if !ok || errA != nil || errB != nil || b <= a {
		return mapping{}, false
	}
	return mapping{
		from: uintptr(a), to: uintptr(b), writable: fields[1][1] == 'w',
		file: string(fields[3]) + " " + string(fields[4]),
	}, true
}
