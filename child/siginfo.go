package child

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// childStatus reads si_status of a SIGCHLD siginfo_t, which x/sys does not
// name. Behind three ints comes a union, aligned as a pointer is; in it stand
// si_pid, si_uid and si_status, 4 bytes each (sigaction(2),
// asm-generic/siginfo.h).
func childStatus(info *unix.Siginfo) int {
	const ints = 3 * 4
	align := unsafe.Sizeof(uintptr(0))
	union := (ints + align - 1) &^ (align - 1)
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), union+8)))
}
