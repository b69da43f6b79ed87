package cuda

import "fmt"

// MemoryError says that the GPU has too little memory left.
type MemoryError struct {
	GPU         string // its name
	Bytes       int64  // asked for
	Free, Total int64  // bytes
}

// Error is one line.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s has %s of %s free, and %s are needed", e.GPU, mib(e.Free),
		mib(e.Total), mib(e.Bytes))
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// PinError says that memory of the host cannot be locked for the GPU's copies.
type PinError struct {
	Bytes int64 // of the memory
	Err   error
}

// Error is one line.
func (e *PinError) Error() string {
	return fmt.Sprintf("%s of the host's memory cannot be pinned: %v", mib(e.Bytes), e.Err)
}

// Unwrap is the driver's error.
func (e *PinError) Unwrap() error { return e.Err }
