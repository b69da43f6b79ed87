//go:build linux && amd64 && !nocuda

package driver

import (
	"fmt"
	"runtime"
	"unsafe"
)

// cuBLAS's functions.
const (
	cublasCreate = iota
	cublasDestroy
	cublasGetVersion
	cublasGetProperty
	cublasSetStream
	cublasSetWorkspace
	cublasSetMathMode
	cublasGemmEx
	cublasGemmStridedBatchedEx
	cublasGetStatusName
	cublasGetStatusString
)

func cublasSymbols() []string {
	return []string{
		cublasCreate:               "cublasCreate_v2",
		cublasDestroy:              "cublasDestroy_v2",
		cublasGetVersion:           "cublasGetVersion_v2",
		cublasGetProperty:          "cublasGetProperty",
		cublasSetStream:            "cublasSetStream_v2",
		cublasSetWorkspace:         "cublasSetWorkspace_v2",
		cublasSetMathMode:          "cublasSetMathMode",
		cublasGemmEx:               "cublasGemmEx",
		cublasGemmStridedBatchedEx: "cublasGemmStridedBatchedEx",
		cublasGetStatusName:        "cublasGetStatusName",
		cublasGetStatusString:      "cublasGetStatusString",
	}
}

// Blas is the library of matrix products.
type Blas struct {
	Version string // "13.0.0"
	Path    string
	lib     *library
}

// Blas loads the library. The error is a *[MissingError] or an *[OldError].
func (g *GPU) Blas() (*Blas, error) {
	lib, err := source{what: "cuBLAS", names: versions("libcublas", g.Version),
		beside: "libcublasLt", symbols: cublasSymbols()}.load(g.options)
	if err != nil {
		return nil, err
	}
	b := &Blas{Path: lib.path, lib: lib}
	var v [3]int32
	for i := range v {
		if err := b.do(cublasGetProperty, word(majorVersion+i),
			uintptr(unsafe.Pointer(&v[i]))); err != nil {
			return nil, err
		}
	}
	b.Version = fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
	return b, nil
}

//go:uintptrescapes
func (b *Blas) do(fn int, args ...uintptr) error {
	if code := int32(call(b.lib.fn[fn], args...)); code != 0 {
		return b.fail(fn, code)
	}
	return nil
}

func (b *Blas) fail(fn int, code int32) error {
	return &Error{Func: cublasSymbols()[fn], Code: code,
		Name: goString(call(b.lib.fn[cublasGetStatusName], word(code))),
		Text: goString(call(b.lib.fn[cublasGetStatusString], word(code)))}
}

// Products computes matrix products in one stream.
type Products struct {
	Version int // of cuBLAS
	blas    *Blas
	handle  uintptr
}

// Products makes a handle of a stream, with a workspace of its own: so the library takes
// no memory by itself, and streams do not share what sums are made in.
func (b *Blas) Products(s *Stream, workspace uint64, bytes int64) (*Products, error) {
	p := &Products{blas: b}
	if err := b.do(cublasCreate, uintptr(unsafe.Pointer(&p.handle))); err != nil {
		return nil, err
	}
	var v int32
	if err := b.do(cublasGetVersion, p.handle, uintptr(unsafe.Pointer(&v))); err != nil {
		return nil, err
	}
	p.Version = int(v)
	if err := b.do(cublasSetStream, p.handle, s.handle); err != nil {
		return nil, err
	}
	// sums of bfloat16 products stay f32, also where parts of them are added up at last
	if err := b.do(cublasSetMathMode, p.handle, wholeReductions); err != nil {
		return nil, err
	}
	// after the stream, which puts the workspace back to the library's own
	return p, b.do(cublasSetWorkspace, p.handle, uintptr(workspace), word(bytes))
}

// Close ends the handle.
func (p *Products) Close() error { return p.blas.do(cublasDestroy, p.handle) }

// Gemm is a product of matrices of f32, or bfloat16, by columns, prepared once for many times:
// C is M×N, op(A) M×K, op(B) K×N; C = Alpha·op(A)·op(B) + Beta·C.
type Gemm struct {
	TransA, TransB            bool
	M, N, K                   int
	Alpha, Beta               float32
	A, B, C                   uint64
	LdA, LdB, LdC             int
	Batch                     int
	StrideA, StrideB, StrideC int64
	TF32                      bool // operands are rounded to TF32 first
	HalfIn, HalfOut           bool // A and B, and C, are of bfloat16

	words  []uintptr
	fn     int
	scales *[2]float32 // Alpha and Beta, where the library reads them
}

// Prepare makes the arguments of the library, of what the product is now. The numbers that it has
// by their addresses are of their own: g may be on a stack, which moves as it grows.
func (g *Gemm) Prepare() {
	compute := uintptr(compute32)
	in, out := elementType(g.HalfIn), elementType(g.HalfOut)
	if g.TF32 {
		compute = fastTF32
	}
	g.scales = &[2]float32{g.Alpha, g.Beta}
	alpha := uintptr(unsafe.Pointer(&g.scales[0]))
	beta := uintptr(unsafe.Pointer(&g.scales[1]))
	g.words = []uintptr{0, operation(g.TransA), operation(g.TransB), word(g.M), word(g.N),
		word(g.K), alpha}
	if g.fn = cublasGemmEx; g.Batch <= 1 {
		g.words = append(g.words, uintptr(g.A), in, word(g.LdA), uintptr(g.B), in,
			word(g.LdB), beta, uintptr(g.C), out, word(g.LdC), compute, word(standard))
		return
	}
	g.fn = cublasGemmStridedBatchedEx
	g.words = append(g.words, uintptr(g.A), in, word(g.LdA), word(g.StrideA), uintptr(g.B), in,
		word(g.LdB), word(g.StrideB), beta, uintptr(g.C), out, word(g.LdC), word(g.StrideC),
		word(g.Batch), compute, word(standard))
}

// elementType is the library's number of f32 or bfloat16.
func elementType(half bool) uintptr {
	if half {
		return bfloat16
	}
	return real32
}

// operation is what the library does with a matrix first.
func operation(transpose bool) uintptr {
	if transpose {
		return transposed
	}
	return plain
}

// Run gives a prepared product to the stream. One product is given by one goroutine at a
// time.
func (p *Products) Run(g *Gemm) error {
	g.words[0] = p.handle
	code := int32(call(p.blas.lib.fn[g.fn], g.words...))
	runtime.KeepAlive(g)
	if code != 0 {
		return fmt.Errorf("product %d×%d×%d: %w", g.M, g.N, g.K, p.blas.fail(g.fn, code))
	}
	return nil
}
