//go:build !linux

package command

// machineMemory is the machine's memory in bytes, or 0 if it is unknown.
func machineMemory() int64 { return 0 }
