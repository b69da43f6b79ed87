package gauge

import "syscall"

// Peak is the most memory that this process has had, in bytes.
func Peak() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss * 1024
}
