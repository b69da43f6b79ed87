//go:build linux && amd64 && !nocuda

package driver

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// cuDNN's functions: of its older interface, which versions 8 and 9 have.
const (
	cudnnGetVersion = iota
	cudnnGetCudartVersion
	cudnnGetErrorString
	cudnnCreate
	cudnnDestroy
	cudnnSetStream
	cudnnCreateTensor
	cudnnSetTensor4d
	cudnnDestroyTensor
	cudnnCreateFilter
	cudnnSetFilter4d
	cudnnDestroyFilter
	cudnnCreateConvolution
	cudnnSetConvolution2d
	cudnnSetGroupCount
	cudnnSetMathType
	cudnnDestroyConvolution
	cudnnForwardSize
	cudnnDataSize
	cudnnFilterSize
	cudnnForward
	cudnnBackwardData
	cudnnBackwardFilter
)

func cudnnSymbols() []string {
	return []string{
		cudnnGetVersion:         "cudnnGetVersion",
		cudnnGetCudartVersion:   "cudnnGetCudartVersion",
		cudnnGetErrorString:     "cudnnGetErrorString",
		cudnnCreate:             "cudnnCreate",
		cudnnDestroy:            "cudnnDestroy",
		cudnnSetStream:          "cudnnSetStream",
		cudnnCreateTensor:       "cudnnCreateTensorDescriptor",
		cudnnSetTensor4d:        "cudnnSetTensor4dDescriptor",
		cudnnDestroyTensor:      "cudnnDestroyTensorDescriptor",
		cudnnCreateFilter:       "cudnnCreateFilterDescriptor",
		cudnnSetFilter4d:        "cudnnSetFilter4dDescriptor",
		cudnnDestroyFilter:      "cudnnDestroyFilterDescriptor",
		cudnnCreateConvolution:  "cudnnCreateConvolutionDescriptor",
		cudnnSetConvolution2d:   "cudnnSetConvolution2dDescriptor",
		cudnnSetGroupCount:      "cudnnSetConvolutionGroupCount",
		cudnnSetMathType:        "cudnnSetConvolutionMathType",
		cudnnDestroyConvolution: "cudnnDestroyConvolutionDescriptor",
		cudnnForwardSize:        "cudnnGetConvolutionForwardWorkspaceSize",
		cudnnDataSize:           "cudnnGetConvolutionBackwardDataWorkspaceSize",
		cudnnFilterSize:         "cudnnGetConvolutionBackwardFilterWorkspaceSize",
		cudnnForward:            "cudnnConvolutionForward",
		cudnnBackwardData:       "cudnnConvolutionBackwardData",
		cudnnBackwardFilter:     "cudnnConvolutionBackwardFilter",
	}
}

// DNN is the library of convolutions.
type DNN struct {
	Version string // "9.1.0"
	Path    string
	lib     *library
}

// dnnParts are the files of cuDNN that convolutions take, by versions. The library loads them by
// their names alone, and ends the process where it does not find one.
func dnnParts() map[string][]string {
	return map[string][]string{
		"libcudnn.so.9": {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9",
			"libcudnn_engines_precompiled.so.9"},
		"libcudnn.so.8": {"libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8",
			"libcudnn_ops_train.so.8", "libcudnn_cnn_train.so.8"},
	}
}

// DNN loads the library. The error is a *[MissingError] or an *[OldError].
func (g *GPU) DNN() (*DNN, error) {
	lib, err := source{what: "cuDNN", names: []string{"libcudnn.so.9", "libcudnn.so.8"},
		beside: "libcudnn_*", parts: dnnParts(), symbols: cudnnSymbols()}.load(g.options)
	if err != nil {
		return nil, err
	}
	// it takes cuBLAS of its own CUDA, which may be another than the driver's
	toolkit := int(call(lib.fn[cudnnGetCudartVersion])) / 1000
	if err := g.options.elsewhere("cuBLAS for "+lib.path, fmt.Sprintf("libcublasLt.so.%d",
		toolkit)); err != nil {
		return nil, err
	}
	v := int(call(lib.fn[cudnnGetVersion]))
	major := 10000 // from version 9
	if v < 90000 {
		major = 1000
	}
	return &DNN{Path: lib.path, lib: lib,
		Version: fmt.Sprintf("%d.%d.%d", v/major, v%major/100, v%100)}, nil
}

//go:uintptrescapes
func (d *DNN) do(fn int, args ...uintptr) error {
	if code := int32(call(d.lib.fn[fn], args...)); code != 0 {
		return d.fail(fn, code)
	}
	return nil
}

func (d *DNN) fail(fn int, code int32) error {
	return &Error{Func: cudnnSymbols()[fn], Code: code,
		Name: goString(call(d.lib.fn[cudnnGetErrorString], word(code)))}
}

// Convolver computes convolutions in one stream.
type Convolver struct {
	dnn    *DNN
	handle uintptr
}

// Convolver makes a handle of a stream. With no stream it can only prepare.
func (d *DNN) Convolver(s *Stream) (*Convolver, error) {
	c := &Convolver{dnn: d}
	if err := d.do(cudnnCreate, uintptr(unsafe.Pointer(&c.handle))); err != nil {
		return nil, err
	}
	if s == nil {
		return c, nil
	}
	return c, d.do(cudnnSetStream, c.handle, s.handle)
}

// Close ends the handle.
func (c *Convolver) Close() error { return c.dnn.do(cudnnDestroy, c.handle) }

// Pass is which of a convolution's three products of images x, filters w and results y.
type Pass int

// The passes: y of x and w; the gradient of x, of w and that of y; of w, of x and that of y.
const (
	Forward Pass = iota
	BackwardData
	BackwardFilter
)

// Convolution is what a convolution is, of f32 or bfloat16, with sums of f32: images by channels,
// rows and columns, filters by output and input channels of a group, rows and columns.
type Convolution struct {
	Pass                         Pass
	Batch, InC, InH, InW         int
	OutC, OutH, OutW, KH, KW     int
	PadH, PadW, StrideH, StrideW int
	DilH, DilW, Groups           int
	TF32                         bool // operands may be rounded to TF32
	Half                         bool // images, filters and results are of bfloat16
}

// String is one line: "forward 8×64×56×56 by 64×64×3×3 in bf16".
func (v Convolution) String() string {
	of := [...]string{Forward: "forward", BackwardData: "to images", BackwardFilter: "to filters"}
	in := "f32"
	if v.Half {
		in = "bf16"
	}
	return fmt.Sprintf("%s %d×%d×%d×%d by %d×%d×%d×%d in %s", of[v.Pass], v.Batch, v.InC, v.InH,
		v.InW, v.OutC, v.InC/v.Groups, v.KH, v.KW, in)
}

// Convolve is a convolution in the library's terms.
type Convolve struct {
	Room uint64 // that it works in, bytes

	dnn                  *DNN
	pass                 Pass
	x, w, y, convolution uintptr // descriptors
	one, zero            float32
}

// algorithms are those of the passes: of each the one that adds up in a fixed order and is not
// for certain shapes only. One algorithm whatever the shape and the free memory, so that a
// convolution has the same bits in every plan: IMPLICIT_PRECOMP_GEMM, and ALGO_1 backward.
func (p Pass) algorithm() uintptr {
	return [...]uintptr{Forward: precompGEMM, BackwardData: dataAlgo1,
		BackwardFilter: filterAlgo1}[p]
}

// ErrUnsupported says that the library does not compute such a convolution: nothing is wrong.
var ErrUnsupported = errors.New("the library does not compute it")

// unsupported wraps ErrUnsupported in an error by which the library says so: version 8 by two
// numbers, of what it has not and of what the GPU has not, version 9 by a range of them.
func unsupported(err error) error {
	e, ok := errors.AsType[*Error](err)
	if ok && (e.Code == archMismatch8 || e.Code == notSupported8 ||
		e.Code/1000 == notSupported/1000) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}

// Convolve prepares a convolution. The error wraps [ErrUnsupported] where the library does not
// compute it.
func (c *Convolver) Convolve(v Convolution) (*Convolve, error) {
	p := &Convolve{dnn: c.dnn, pass: v.Pass, one: 1}
	err := p.describe(v)
	if err == nil {
		a, b, out, fn := p.x, p.w, p.y, cudnnForwardSize
		switch v.Pass {
		case BackwardData:
			a, b, out, fn = p.w, p.y, p.x, cudnnDataSize
		case BackwardFilter:
			a, b, out, fn = p.x, p.y, p.w, cudnnFilterSize
		}
		err = c.dnn.do(fn, c.handle, a, b, p.convolution, out, v.Pass.algorithm(),
			uintptr(unsafe.Pointer(&p.Room)))
	}
	if err != nil {
		return nil, errors.Join(unsupported(err), p.Close())
	}
	return p, nil
}

// describe makes the descriptors.
func (p *Convolve) describe(v Convolution) error {
	math, data := uintptr(fmaMath), uintptr(dataFloat) // no TF32
	if v.TF32 {
		math = defaultMath
	}
	if v.Half {
		math, data = tensorMath, dataBFloat16
	}
	at := func(to *uintptr) uintptr { return uintptr(unsafe.Pointer(to)) }
	if err := p.dnn.inTurn([]request{
		{cudnnCreateTensor, []uintptr{at(&p.x)}},
		{cudnnCreateTensor, []uintptr{at(&p.y)}},
		{cudnnCreateFilter, []uintptr{at(&p.w)}},
		{cudnnCreateConvolution, []uintptr{at(&p.convolution)}},
	}); err != nil {
		return err
	}
	return p.dnn.inTurn([]request{
		{cudnnSetTensor4d, []uintptr{p.x, nchw, data, word(v.Batch), word(v.InC), word(v.InH),
			word(v.InW)}},
		{cudnnSetTensor4d, []uintptr{p.y, nchw, data, word(v.Batch), word(v.OutC), word(v.OutH),
			word(v.OutW)}},
		{cudnnSetFilter4d, []uintptr{p.w, data, nchw, word(v.OutC), word(v.InC / v.Groups),
			word(v.KH), word(v.KW)}},
		{cudnnSetConvolution2d, []uintptr{p.convolution, word(v.PadH), word(v.PadW),
			word(v.StrideH), word(v.StrideW), word(v.DilH), word(v.DilW), crossCorrelation,
			dataFloat}},
		{cudnnSetGroupCount, []uintptr{p.convolution, word(v.Groups)}},
		{cudnnSetMathType, []uintptr{p.convolution, math}},
	})
}

// request is a call of the library.
type request struct {
	fn   int
	args []uintptr
}

// inTurn calls the library until a call fails.
func (d *DNN) inTurn(list []request) error {
	for _, r := range list {
		if err := d.do(r.fn, r.args...); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the descriptors.
func (p *Convolve) Close() error {
	var errs []error
	for _, d := range []struct {
		fn     int
		handle uintptr
	}{{cudnnDestroyTensor, p.x}, {cudnnDestroyTensor, p.y}, {cudnnDestroyFilter, p.w},
		{cudnnDestroyConvolution, p.convolution}} {
		if d.handle != 0 {
			errs = append(errs, p.dnn.do(d.fn, d.handle))
		}
	}
	return errors.Join(errs...)
}

// Run gives a convolution of images, filters and results at addresses to the stream, which works in
// as many bytes as it wants at another.
func (c *Convolver) Run(p *Convolve, x, w, y, room uint64) error {
	type operand struct {
		descriptor uintptr
		addr       uint64
	}
	a, b, out, fn := operand{p.x, x}, operand{p.w, w}, operand{p.y, y}, cudnnForward
	switch p.pass {
	case BackwardData:
		a, b, out, fn = b, out, a, cudnnBackwardData
	case BackwardFilter:
		b, out, fn = out, b, cudnnBackwardFilter
	}
	err := c.dnn.do(fn, c.handle, uintptr(unsafe.Pointer(&p.one)), a.descriptor, uintptr(a.addr),
		b.descriptor, uintptr(b.addr), p.convolution, p.pass.algorithm(), uintptr(room),
		uintptr(p.Room), uintptr(unsafe.Pointer(&p.zero)), out.descriptor, uintptr(out.addr))
	runtime.KeepAlive(p)
	return err
}
