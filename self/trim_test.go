package self

import (
	"fmt"
	"os"
	"testing"
	"unsafe"
)

func TestProgramPagesAreOursAndClean(t *testing.T) {
	at := uintptr(unsafe.Pointer(unsafe.StringData(marker)))
	maps := fmt.Sprintf(`%x-%x r-xp 00000000 fe:00 42                         /drainit
%x-%x r--p 00001000 fe:00 42                         /drainit (deleted)
%x-%x rw-p 00002000 fe:00 42                         /drainit
c000000000-c000400000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r-xp 00000000 fe:00 43                       /lib/other.so
7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                          [vdso]
nonsense
`, at-0x3000, at-0x1000, at-0x1000, at+0x1000, at+0x1000, at+0x2000)
	got := programPages([]byte(maps))
	if len(got) != 2 || got[at-0x3000] != 0x2000 || got[at-0x1000] != 0x2000 {
		t.Errorf("got %#x", got)
	}
	if got := programPages(nil); len(got) != 0 {
		t.Errorf("of nothing: %#x", got)
	}
}

// The process goes on as if nothing had happened, with less of the file mapped.
func TestTrim(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	if len(programPages(maps)) == 0 {
		t.Fatal("our own program was not found")
	}
	trim()
	if marker != "drainit was here" {
		t.Error("the constants are gone")
	}
}
