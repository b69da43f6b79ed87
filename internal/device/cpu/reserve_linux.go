package cpu

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes a file so many bytes long and has the file system keep room for
// them; where it cannot, a disk that is full shows when the file is written.
func reserve(f *os.File, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, bytes)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
			return f.Truncate(bytes)
		}
		return err
	}
}
