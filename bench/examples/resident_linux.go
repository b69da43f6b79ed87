package main

import (
	"os"
	"syscall"
)

// resident is the most memory that a process has had, in MiB.
func resident(s *os.ProcessState) float64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return float64(usage.Maxrss) / 1024
}
