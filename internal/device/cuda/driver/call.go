//go:build linux && amd64 && !nocuda

package driver

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// call calls a C function of which all arguments are integers or pointers, and returns
// what it returns. Pointers that are converted in the call stay alive during it.
//
//go:uintptrescapes
func call(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// pointer turns an address of C's into a pointer. The garbage collector neither frees nor
// moves what is there.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// goString copies a string that C owns.
func goString(p uintptr) string {
	if p == 0 {
		return ""
	}
	n := uintptr(0)
	for *(*byte)(pointer(p + n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(pointer(p)), n))
}

// trimmed is b up to its first zero byte.
func trimmed(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

// cString is a string as C has it.
func cString(s string) *byte { return unsafe.StringData(s + "\x00") }

// word is a signed number as an argument.
func word[T ~int | ~int32 | ~int64](x T) uintptr { return uintptr(x) }

// Error is a call of a library that failed.
type Error struct {
	Func string // the C function
	Code int32
	Name string // such as CUDA_ERROR_OUT_OF_MEMORY
	Text string // what the library says of it; may be empty
}

// Error is one line, but for what a compiler complains of.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Func, e.Name, e.Code)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// NoDevice reports whether there is a driver, and no GPU, or none that it may show.
func (e *Error) NoDevice() bool { return e.Name == "CUDA_ERROR_NO_DEVICE" }

// OutOfMemory reports whether a memory had too little room: as the driver says it, or a library
// that takes memory itself. cuBLAS and cuDNN say of a handle that they make in too little that it
// is not initialized.
func (e *Error) OutOfMemory() bool {
	return e.Name == "CUDA_ERROR_OUT_OF_MEMORY" || strings.HasSuffix(e.Name, "_ALLOC_FAILED") ||
		strings.HasSuffix(e.Name, "_ALLOCATION_FAILED") ||
		e.Func == cublasSymbols()[cublasCreate] && e.Name == "CUBLAS_STATUS_NOT_INITIALIZED" ||
		e.Func == cudnnSymbols()[cudnnCreate] && e.Name == "CUDNN_STATUS_NOT_INITIALIZED"
}
