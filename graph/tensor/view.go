package tensor

import (
	"fmt"
	"unsafe"
)

// View is a typed window on raw bytes. The bytes must be aligned to the
// element size; memory from a device space is aligned to 64.
type View struct {
	Type Type
	Data []byte
}

// New makes a view of fresh zeroed memory.
func New(t Type) View {
	words := make([]uint64, (t.Bytes()+7)/8) // 8-byte alignment for any element type
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	return View{Type: t, Data: b[:t.Bytes()]}
}

// Make makes a view of its own copy of x, as elements of a type that are as large, with
// the given sizes, of which x has exactly the elements; no sizes make a scalar.
func Make[T any](d DType, x []T, sizes ...int) (View, error) {
	t := Of(d, sizes...)
	if err := t.Check(); err != nil {
		return View{}, err
	}
	if t.Elems() != len(x) {
		return View{}, fmt.Errorf("%s has %d elements, not %d", t, t.Elems(), len(x))
	}
	v := New(t)
	copy(as[T](v, d), x)
	return v, nil
}

// MakeF32 is [Make] for 32-bit floats.
func MakeF32(x []float32, sizes ...int) (View, error) { return Make(F32, x, sizes...) }

// MakeI32 is [Make] for 32-bit integers.
func MakeI32(x []int32, sizes ...int) (View, error) { return Make(I32, x, sizes...) }

// FromF32 is MakeF32 for sizes that are known to be right. It panics on others.
func FromF32(x []float32, sizes ...int) View { return must(MakeF32(x, sizes...)) }

// FromI32 is MakeI32 for sizes that are known to be right. It panics on others.
func FromI32(x []int32, sizes ...int) View { return must(MakeI32(x, sizes...)) }

func must(v View, err error) View {
	if err != nil {
		panic("tensor: " + err.Error())
	}
	return v
}

// F32 is the view's elements. It panics on another element type.
func (v View) F32() []float32 { return as[float32](v, F32) }

// I32 is the view's elements. It panics on another element type.
func (v View) I32() []int32 { return as[int32](v, I32) }

// I64 is the view's elements. It panics on another element type.
func (v View) I64() []int64 { return as[int64](v, I64) }

// F64 is the view's elements. It panics on another element type.
func (v View) F64() []float64 { return as[float64](v, F64) }

// I8 is the view's elements. It panics on another element type.
func (v View) I8() []int8 { return as[int8](v, I8) }

// I16 is the view's elements. It panics on another element type.
func (v View) I16() []int16 { return as[int16](v, I16) }

// U32 is the view's elements. It panics on another element type.
func (v View) U32() []uint32 { return as[uint32](v, U32) }

// U64 is the view's elements. It panics on another element type.
func (v View) U64() []uint64 { return as[uint64](v, U64) }

// Bool is the view's elements. It panics on another element type.
func (v View) Bool() []bool { return as[bool](v, Bool) }

// U8 is the view's elements; those of a Bool view are 0 or 1. It panics on another
// element type.
func (v View) U8() []uint8 {
	if v.Type.DType == Bool {
		return as[uint8](v, Bool)
	}
	return as[uint8](v, U8)
}

// U16 is the elements of a U16 view, or the raw words of a BF16 or F16 one. It panics on
// another type.
func (v View) U16() []uint16 {
	switch v.Type.DType {
	case F16, BF16:
		return as[uint16](v, v.Type.DType)
	}
	return as[uint16](v, U16)
}

func as[T any](v View, want DType) []T {
	if v.Type.DType != want {
		panic(fmt.Sprintf("tensor: %s read as %s", v.Type, want))
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(v.Data))),
		len(v.Data)/int(unsafe.Sizeof(zero)))
}
