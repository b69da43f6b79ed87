package control

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// freeMemory is what the kernel thinks may be had without swapping, or -1.
func freeMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return -1
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if !ok {
			continue
		}
		var kib int64
		if _, err := fmt.Sscan(rest, &kib); err == nil {
			return kib << 10
		}
	}
	return -1
}

// freeDisk is what is free for us where dir is, or -1.
func freeDisk(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return -1
	}
	return int64(s.Bavail) * s.Bsize
}
