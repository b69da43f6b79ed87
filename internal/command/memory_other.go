//go:build !linux

package command

// machineMemory is the machine's memory in bytes, or 0 if it is unknown.
func machineMemory() int64 { return 0 }

// groupMemory is the memory in bytes that this process's group may have; there are no such limits.
func groupMemory() int64 { return 0 }

// resident is the memory in bytes that this process has and the most that it has had, or 0 and 0 if
// they are unknown.
func resident() (now, peak int64) { return 0, 0 }
