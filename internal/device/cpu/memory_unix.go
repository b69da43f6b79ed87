//go:build unix

package cpu

import "golang.org/x/sys/unix"

// Allocate maps anonymous memory: the kernel gives pages as they are touched,
// the garbage collector does not see them, and a request that cannot be met is
// an error rather than the end of the program. It is zeroed and aligned to a page, and there
// until free is called.
func Allocate(bytes int64) (data []byte, free func() error, err error) {
	if bytes == 0 {
		return nil, func() error { return nil }, nil
	}
	data, err = unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}
