package gomlx

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// elements are the element types that both have.
func elements() map[dtypes.DType]graph.DType {
	return map[dtypes.DType]graph.DType{
		dtypes.Bool: graph.Bool,
		dtypes.Int8: graph.I8, dtypes.Int16: graph.I16, dtypes.Int32: graph.I32,
		dtypes.Int64: graph.I64,
		dtypes.Uint8: graph.U8, dtypes.Uint16: graph.U16, dtypes.Uint32: graph.U32,
		dtypes.Uint64:  graph.U64,
		dtypes.Float16: graph.F16, dtypes.BFloat16: graph.BF16,
		dtypes.Float32: graph.F32, dtypes.Float64: graph.F64,
	}
}

// ErrElement is an element type that gomem has not.
type ErrElement struct{ DType dtypes.DType }

// Error is one line.
func (e *ErrElement) Error() string {
	return fmt.Sprintf("gomem has no elements of %s: convert them to floating-point numbers, "+
		"integers or truth values", e.DType)
}

// elementOf is an element type of GoMLX in gomem.
func elementOf(d dtypes.DType) (graph.DType, error) {
	if e, ok := elements()[d]; ok {
		return e, nil
	}
	return 0, &ErrElement{d}
}

// typeOf is a shape of GoMLX in gomem.
func typeOf(s shapes.Shape) (graph.Type, error) {
	d, err := elementOf(s.DType)
	return graph.Of(d, s.Dimensions...), err
}

// shapeOf is a type of gomem in GoMLX.
func shapeOf(t graph.Type) shapes.Shape {
	s := shapes.Shape{DType: dtypes.InvalidDType, Dimensions: t.Sizes()}
	for d, e := range elements() {
		if e == t.DType {
			s.DType = d
		}
	}
	return s
}

// flat are the elements of a tensor as a slice of Go's type for them, in the same memory.
func flat(v tensor.View, d dtypes.DType) any {
	n := v.Type.Elems()
	if n == 0 {
		return reflect.MakeSlice(reflect.SliceOf(d.GoType()), 0, 0).Interface()
	}
	p := unsafe.Pointer(unsafe.SliceData(v.Data))
	array := reflect.NewAt(reflect.ArrayOf(n, d.GoType()), p)
	return array.Elem().Slice3(0, n, n).Interface()
}

// raw are the bytes of a slice of numbers, in the same memory, and what its elements are.
func raw(flat any) ([]byte, dtypes.DType, error) {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice {
		return nil, 0, fmt.Errorf("values are %T, want a slice", flat)
	}
	d := dtypes.FromGoType(v.Type().Elem())
	if _, err := elementOf(d); err != nil {
		return nil, d, err
	}
	if v.Len() == 0 {
		return nil, d, nil
	}
	bytes := v.Len() * int(v.Type().Elem().Size())
	return unsafe.Slice((*byte)(v.UnsafePointer()), bytes), d, nil
}
