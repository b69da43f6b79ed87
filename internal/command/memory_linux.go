package command

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory is the machine's memory in bytes, or 0 if it is unknown.
func machineMemory() int64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}

// resident is the memory in bytes that this process has and the most that it has had, or 0 and 0 if
// they are unknown.
func resident() (now, peak int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	of := func(name string) (kib int64) {
		if _, rest, ok := strings.Cut(string(text), name+":"); ok {
			fmt.Sscan(rest, &kib)
		}
		return kib << 10
	}
	return of("VmRSS"), of("VmHWM")
}
