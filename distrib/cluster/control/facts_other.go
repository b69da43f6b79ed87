//go:build !linux

package control

func freeMemory() int64 { return -1 }

func freeDisk(string) int64 { return -1 }
