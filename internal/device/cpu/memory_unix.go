//go:build unix

package cpu

import "golang.org/x/sys/unix"

// allocate maps anonymous memory: the kernel gives pages as they are touched,
// the garbage collector does not see them, and a request that cannot be met is
// an error rather than the end of the program.
func allocate(bytes int64) ([]byte, func() error, error) {
	if bytes == 0 {
		return nil, func() error { return nil }, nil
	}
	data, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}
