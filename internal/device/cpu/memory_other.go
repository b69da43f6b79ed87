//go:build !unix

package cpu

import "unsafe"

// page is the alignment of an allocation.
const page = 4096

// Allocate takes zeroed memory from the heap, aligned to a page.
func Allocate(bytes int64) (data []byte, free func() error, err error) {
	raw := make([]byte, bytes+page)
	skip := -int64(uintptr(unsafe.Pointer(&raw[0]))) & (page - 1)
	return raw[skip : skip+bytes : skip+bytes], func() error { return nil }, nil
}
