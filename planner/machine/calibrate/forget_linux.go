package calibrate

import (
	"os"

	"golang.org/x/sys/unix"
)

// forget has the operating system keep nothing of a file in memory.
func forget(f *os.File) error {
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
