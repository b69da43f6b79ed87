package hlo

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// How is how elements are put together.
type How uint8

// The ways. Those of bits take integers and truth values, the others numbers.
const (
	Sum How = iota
	Product
	Max // NaN if one is
	Min
	And
	Or
	Xor
	Put // the last, of any type
)

// String is the way in a word.
func (h How) String() string {
	return [...]string{"sum", "product", "max", "min", "and", "or", "xor", "put"}[h]
}

// ofBits reports whether it is of bits, whatever number they are.
func (h How) ofBits() bool { return h >= And }

// number is what arithmetic is of.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// arithmetic makes closures on elements of views of one type, by their indices.
type arithmetic interface {
	// fold puts element j of from to element i of to.
	fold(how How, to, from tensor.View) func(i, j int)
	// multiply adds the product of element j of a and k of b to element i of to.
	multiply(to, a, b tensor.View) func(i, j, k int)
	// ahead says whether element i comes before element j of x: it is larger, or smaller; NaN
	// comes before all numbers.
	ahead(x tensor.View, least bool) func(i, j int) bool
}

// arithmeticOf is that of an element type, nil if it has none.
func arithmeticOf(d graph.DType) arithmetic {
	switch d {
	case graph.F32:
		return numbers[float32]{}
	case graph.F64:
		return numbers[float64]{}
	case graph.I8:
		return numbers[int8]{}
	case graph.I16:
		return numbers[int16]{}
	case graph.I32:
		return numbers[int32]{}
	case graph.I64:
		return numbers[int64]{}
	case graph.U8:
		return numbers[uint8]{}
	case graph.U16:
		return numbers[uint16]{}
	case graph.U32:
		return numbers[uint32]{}
	case graph.U64:
		return numbers[uint64]{}
	}
	return nil
}

// numeric rejects element types without arithmetic, and for a way of bits those that are no bits.
func numeric(d graph.DType, how How) error {
	switch {
	case how.ofBits() && how != Put && d.Floating():
		return fmt.Errorf("%s of %s, which are no bits", how, d)
	case !how.ofBits() && arithmeticOf(d) == nil:
		return fmt.Errorf("%s of %s, which are no numbers here", how, d)
	}
	return nil
}

// folder is how elements of from are put to those of to.
func folder(how How, to, from tensor.View) func(i, j int) {
	if !how.ofBits() {
		return arithmeticOf(to.Type.DType).fold(how, to, from)
	}
	switch to.Type.DType.Size() {
	case 1:
		return foldBits(how, elements[uint8](to), elements[uint8](from))
	case 2:
		return foldBits(how, elements[uint16](to), elements[uint16](from))
	case 4:
		return foldBits(how, elements[uint32](to), elements[uint32](from))
	}
	return foldBits(how, elements[uint64](to), elements[uint64](from))
}

func foldBits[T uint8 | uint16 | uint32 | uint64](how How, to, from []T) func(i, j int) {
	switch how {
	case And:
		return func(i, j int) { to[i] &= from[j] }
	case Or:
		return func(i, j int) { to[i] |= from[j] }
	case Xor:
		return func(i, j int) { to[i] ^= from[j] }
	}
	return func(i, j int) { to[i] = from[j] }
}

// numbers is the arithmetic of a type of Go.
type numbers[T number] struct{}

func (numbers[T]) fold(how How, to, from tensor.View) func(i, j int) {
	x, y := elements[T](to), elements[T](from)
	switch how {
	case Sum:
		return func(i, j int) { x[i] += y[j] }
	case Product:
		return func(i, j int) { x[i] *= y[j] }
	case Max:
		return func(i, j int) { x[i] = max(x[i], y[j]) }
	}
	return func(i, j int) { x[i] = min(x[i], y[j]) }
}

func (numbers[T]) multiply(to, a, b tensor.View) func(i, j, k int) {
	x, y, z := elements[T](to), elements[T](a), elements[T](b)
	return func(i, j, k int) { x[i] += T(y[j] * z[k]) }
}

func (numbers[T]) ahead(v tensor.View, least bool) func(i, j int) bool {
	x := elements[T](v)
	if least {
		return func(i, j int) bool { return x[i] < x[j] || x[i] != x[i] && x[j] == x[j] }
	}
	return func(i, j int) bool { return x[i] > x[j] || x[i] != x[i] && x[j] == x[j] }
}

// elements are those of a view, in a type of Go that is as large.
func elements[T any](v tensor.View) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.Data))),
		len(v.Data)/int(unsafe.Sizeof(zero)))
}

// Neutral is the element that changes nothing.
func Neutral(how How, d graph.DType) tensor.View {
	one := tensor.New(graph.Of(graph.F64))
	switch how {
	case Product:
		one.F64()[0] = 1
	case Max:
		one.F64()[0] = math.Inf(-1)
	case Min:
		one.F64()[0] = math.Inf(1)
	case And:
		if d == graph.Bool {
			one.F64()[0] = 1
			break
		}
		all := tensor.New(graph.Of(d))
		for i := range all.Data {
			all.Data[i] = 0xff
		}
		return all
	}
	return one.To(d)
}

// fill sets all elements to one.
func fill(v, one tensor.View) {
	for n := copy(v.Data, one.Data); n > 0 && n < len(v.Data); {
		n += copy(v.Data[n:], v.Data[:n])
	}
}
