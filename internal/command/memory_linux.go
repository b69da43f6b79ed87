package command

import "golang.org/x/sys/unix"

// machineMemory is the machine's memory in bytes, or 0 if it is unknown.
func machineMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}
