package self

import (
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestClean tells pages of a file from private copies of them, as a position
// independent program has where the loader has written relocations.
func TestClean(t *testing.T) {
	if _, err := os.Stat("/proc/self/pagemap"); err != nil {
		t.Skip(err)
	}
	page := os.Getpagesize()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 4*page), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	from, size := uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem))
	_ = mem[page] // one page is there, and the file's
	if !clean(from, size) {
		t.Error("pages of the file are called changed")
	}
	mem[2*page] = 1
	if clean(from, size) {
		t.Error("a private copy is called clean")
	}
}
