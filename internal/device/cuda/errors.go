package cuda

import "fmt"

// MemoryError says that the GPU has too little memory left.
type MemoryError struct {
	GPU   string // its name
	Bytes int64  // asked for; 0: a library asked for its own, and does not say how much
	Free  int64  // bytes; -1: that is not known, for there is too little for a context
	Total int64  // bytes
	Err   error  // the library's; nil where the device asked
}

// Error is one line.
func (e *MemoryError) Error() string {
	if e.Free < 0 {
		return fmt.Sprintf("%s of %s has too little free for a context: %v", e.GPU, mib(e.Total),
			e.Err)
	}
	if e.Err != nil {
		return fmt.Sprintf("%s has %s of %s free, too little for what a library takes itself: %v",
			e.GPU, mib(e.Free), mib(e.Total), e.Err)
	}
	return fmt.Sprintf("%s has %s of %s free, and %s are needed", e.GPU, mib(e.Free),
		mib(e.Total), mib(e.Bytes))
}

// Unwrap is the library's error.
func (e *MemoryError) Unwrap() error { return e.Err }

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// BrokenError says that a GPU has failed in this process, and does nothing else for it.
type BrokenError struct {
	GPU string // its name
	Err error  // what it answers with
}

// Error is one line.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("%s has failed earlier in this process, and computes nothing more for it: "+
		"start a new process (%v)", e.GPU, e.Err)
}

// Unwrap is the driver's error.
func (e *BrokenError) Unwrap() error { return e.Err }

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

// WrongError says that a library computes something else than it should.
type WrongError struct {
	Element   int     // of the result
	Got, Want float64 // what it is, and what a plain loop comes to
}

// Error is one line.
func (e *WrongError) Error() string {
	return fmt.Sprintf("a trial came to something else: element %d is %v and should be %v",
		e.Element, e.Got, e.Want)
}

// ProductError says which product a library computes wrong.
type ProductError struct {
	Product string // "5×3 of 21 terms, f32 to f32"
	Library string // with its version
	File    string // that it is
	Err     *WrongError
}

// Error is one line.
func (e *ProductError) Error() string {
	return fmt.Sprintf("%s (%s) fails at a product, use another version of it: %s: %v", e.Library,
		e.File, e.Product, e.Err)
}

// Unwrap is what is wrong.
func (e *ProductError) Unwrap() error { return e.Err }
