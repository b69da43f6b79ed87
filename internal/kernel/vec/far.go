package vec

import "unsafe"

// Elementwise is a set of functions that compute each element of a destination
// from those of the sources in its place. They do what the functions of the
// package with their names do, with the same bits.
type Elementwise struct {
	Add, Sub, Mul, Div, Max, AtLeast          func(dst, a, b []float32)
	AddScalar, MulScalar                      func(dst, a []float32, s float32)
	Relu, Sqrt, Rsqrt, Square, Neg            func(dst, x []float32)
	Exp, Log, Tanh, Sigmoid, Gelu             func(dst, x []float32)
	ReluGrad, TanhGrad, SigmoidGrad, GeluGrad func(dx, y, dy []float32)
}

// Far returns functions whose stores bypass the caches, and which prefetch their
// sources. They are for destinations that are too large to be found in a cache
// by whoever reads them: a store through a cache reads the line before it is
// written, which makes three transfers of a copy's two. A destination that is
// also a source is in a cache anyway, and stored there.
func Far() Elementwise {
	near, far := active.elementwise, active.far
	if far == nil {
		far = &near
	}
	return Elementwise{
		Add: far2(near.add, far.add), Sub: far2(near.sub, far.sub), Mul: far2(near.mul, far.mul),
		Div: far2(near.div, far.div), Max: far2(near.max, far.max), AtLeast: far2(near.atLeast,
			far.atLeast),
		AddScalar: farScalar(near.addScalar, far.addScalar), MulScalar: farScalar(near.mulScalar,
			far.mulScalar),
		Relu: far1(near.relu, far.relu), Sqrt: far1(near.sqrt, far.sqrt), Rsqrt: far1(near.rsqrt,
			far.rsqrt),
		Square: far1(near.square, far.square), Neg: far1(near.neg, far.neg),
		Exp: far1(near.exp, far.exp), Log: far1(near.log, far.log), Tanh: far1(near.tanh, far.tanh),
		Sigmoid: far1(near.sigmoid, far.sigmoid), Gelu: far1(near.gelu, far.gelu),
		ReluGrad: far2(near.reluGrad, far.reluGrad), TanhGrad: far2(near.tanhGrad, far.tanhGrad),
		SigmoidGrad: far2(near.sigmoidGrad, far.sigmoidGrad), GeluGrad: far2(near.geluGrad,
			far.geluGrad),
	}
}

// farBlock is the number of elements of which a far kernel takes multiples.
const farBlock = 64

// far1, far2 and farScalar make one function of a kernel and its far version.
func far1(near, far func(dst, x []float32)) func(dst, x []float32) {
	return func(dst, x []float32) {
		cover(dst, x)
		inParts(dst, farBlock, among(dst, x),
			func(lo, hi int) { near(dst[lo:hi], x[lo:hi]) },
			func(lo, hi int) { far(dst[lo:hi], x[lo:hi]) })
	}
}

func far2(near, far func(dst, a, b []float32)) func(dst, a, b []float32) {
	return func(dst, a, b []float32) {
		cover(dst, a, b)
		inParts(dst, farBlock, among(dst, a, b),
			func(lo, hi int) { near(dst[lo:hi], a[lo:hi], b[lo:hi]) },
			func(lo, hi int) { far(dst[lo:hi], a[lo:hi], b[lo:hi]) })
	}
}

func farScalar(near, far func(dst, a []float32, s float32)) func(dst, a []float32, s float32) {
	return func(dst, a []float32, s float32) {
		cover(dst, a)
		inParts(dst, farBlock, among(dst, a),
			func(lo, hi int) { near(dst[lo:hi], a[lo:hi], s) },
			func(lo, hi int) { far(dst[lo:hi], a[lo:hi], s) })
	}
}

// inParts gives spans of dst that begin at a cache line and are blocks of so many
// elements to the far function, and what is before and after to the near one; all
// to that one if the destination is a source.
func inParts(dst []float32, block int, inPlace bool, near, far func(lo, hi int)) {
	head, body := 0, 0
	if active.far != nil && !inPlace {
		head = min(len(dst), toLine(dst))
		body = (len(dst) - head) / block * block
	}
	near(0, head)
	for lo, hi := range spans(body) {
		far(head+lo, head+hi)
	}
	storeFence()
	for lo, hi := range spans(len(dst) - head - body) {
		near(head+body+lo, head+body+hi)
	}
}

// among reports whether x begins where one of the slices does.
func among(x []float32, slices ...[]float32) bool {
	for _, s := range slices {
		if unsafe.SliceData(s) == unsafe.SliceData(x) {
			return true
		}
	}
	return false
}

// toLine is the number of elements before the first that begins a cache line.
func toLine(x []float32) int {
	const line, size = 64, 4
	return int(-uintptr(unsafe.Pointer(unsafe.SliceData(x)))%line) / size
}
