package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gomem/gomem/graph/tensor"
)

// DataType is the type of one element, as files have it.
type DataType int64

// The types of elements that a tensor of ours has, too.
const (
	Float    DataType = 1
	Uint8    DataType = 2
	Int32    DataType = 6
	Int64    DataType = 7
	Bool     DataType = 9
	Float16  DataType = 10
	Double   DataType = 11
	BFloat16 DataType = 16
)

// dataTypes are the types' names, and what they are here.
var dataTypes = map[DataType]struct {
	name string
	of   tensor.DType
}{
	Float: {"float", tensor.F32}, Uint8: {"uint8", tensor.U8}, 3: {"int8", tensor.I8},
	4: {"uint16", tensor.U16}, 5: {"int16", tensor.I16}, Int32: {"int32", tensor.I32},
	Int64: {"int64", tensor.I64}, 8: {"string", tensor.Invalid}, Bool: {"bool", tensor.Bool},
	Float16: {"float16", tensor.F16}, Double: {"double", tensor.F64},
	12: {"uint32", tensor.U32}, 13: {"uint64", tensor.U64},
	14: {"complex64", tensor.Invalid}, 15: {"complex128", tensor.Invalid},
	BFloat16: {"bfloat16", tensor.BF16}, 17: {"float8e4m3fn", tensor.Invalid},
	18: {"float8e4m3fnuz", tensor.Invalid}, 19: {"float8e5m2", tensor.Invalid},
	20: {"float8e5m2fnuz", tensor.Invalid}, 21: {"uint4", tensor.Invalid},
	22: {"int4", tensor.Invalid}, 23: {"float4e2m1", tensor.Invalid},
	24: {"float8e8m0", tensor.Invalid}, 25: {"uint2", tensor.Invalid},
	26: {"int2", tensor.Invalid}, 27: {"float6e2m3", tensor.Invalid},
	28: {"float6e3m2", tensor.Invalid},
}

// String is the type's name in the schema.
func (d DataType) String() string {
	if t, ok := dataTypes[d]; ok {
		return t.name
	}
	return fmt.Sprintf("type %d", int64(d))
}

// DType is what elements are here; an error where there are none such.
func (d DataType) DType() (tensor.DType, error) {
	if t := dataTypes[d]; t.of != tensor.Invalid {
		return t.of, nil
	}
	return tensor.Invalid, fmt.Errorf("elements are %s, which are not computed with", d)
}

// Tensor is a constant. Its elements are in a part of the file, in numbers, or in another file.
type Tensor struct {
	Name string
	Type DataType
	Dims []int64

	raw      []byte
	hasRaw   bool
	floats   []float32
	doubles  []float64
	integers []int64 // of int32_data, int64_data and uint64_data
	strings  []string
	segment  bool

	External *External // nil: in this file
}

// External says where elements are in another file, which is in the directory of the model's.
type External struct {
	Location       string
	Offset, Length int64 // Length is -1 where the file does not say
}

func decodeTensor(message []byte) (*Tensor, error) {
	t := new(Tensor)
	var location int64
	var where External
	where.Length = -1
	err := fields(message, func(f field) error {
		switch f.num {
		case 1:
			return f.integers(&t.Dims)
		case 2:
			return f.integer((*int64)(&t.Type))
		case 8:
			return f.text(&t.Name)
		case 13:
			return fields(f.bytes, where.entry())
		case 14:
			return f.integer(&location)
		}
		return t.content(f)
	})
	if location == 1 {
		t.External = &where
		if where.Location == "" || where.Offset < 0 || where.Length < -1 {
			err = errors.Join(err, errors.New("its external data have no place"))
		}
	}
	return t, of("tensor", t.Name, err)
}

// content is what a tensor has of elements.
func (t *Tensor) content(f field) error {
	switch f.num {
	case 3:
		t.segment = true
	case 4:
		return f.floats(&t.floats)
	case 5, 7, 11:
		return f.integers(&t.integers)
	case 6:
		t.strings = append(t.strings, string(f.bytes))
	case 9:
		t.raw, t.hasRaw = f.bytes, true
	case 10:
		return f.doubles(&t.doubles)
	}
	return nil
}

// entry takes the entries of external_data.
func (e *External) entry() func(f field) error {
	var key, value string
	return func(f field) error {
		switch f.num {
		case 1:
			return f.text(&key)
		case 2:
			if err := f.text(&value); err != nil {
				return err
			}
			switch key {
			case "location":
				e.Location = value
			case "offset":
				return number(value, &e.Offset)
			case "length":
				return number(value, &e.Length)
			}
		}
		return nil
	}
}

func number(s string, to *int64) error {
	if _, err := fmt.Sscan(s, to); err != nil {
		return fmt.Errorf("%.40q is no number", s)
	}
	return nil
}

// Kind is the tensor's type here; an error where elements or sizes cannot be.
func (t *Tensor) Kind() (tensor.Type, error) {
	d, err := t.Type.DType()
	if err != nil {
		return tensor.Type{}, of("tensor", t.Name, err)
	}
	var sizes []int
	for _, n := range t.Dims {
		if n < 0 || n > math.MaxInt32 {
			return tensor.Type{}, fmt.Errorf("tensor %q has %d elements along an axis", t.Name, n)
		}
		sizes = append(sizes, int(n))
	}
	kind := tensor.Of(d, sizes...)
	return kind, of("tensor", t.Name, kind.Check())
}

// View is a copy of the tensor; elements is what another file has of it, little endian.
func (t *Tensor) View(elements []byte) (tensor.View, error) {
	kind, err := t.Kind()
	if err != nil {
		return tensor.View{}, err
	}
	if t.segment {
		return tensor.View{}, fmt.Errorf("tensor %q is in segments, which are not read", t.Name)
	}
	data := elements
	switch {
	case t.External != nil:
	case t.hasRaw:
		data = t.raw
	default:
		data = t.numbers(kind.DType)
	}
	if int64(len(data)) != kind.Bytes() {
		return tensor.View{}, fmt.Errorf("tensor %q has %d bytes, and %s takes %d", t.Name,
			len(data), kind, kind.Bytes())
	}
	v := tensor.New(kind)
	copy(v.Data, data)
	if kind.DType == tensor.Bool {
		for i, b := range v.Data {
			v.Data[i] = min(b, 1)
		}
	}
	return v, nil
}

// numbers are the bytes of elements that are there as numbers, in the field that is for the type.
func (t *Tensor) numbers(d tensor.DType) (out []byte) {
	switch d {
	case tensor.F32:
		for _, v := range t.floats {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	case tensor.F64:
		for _, v := range t.doubles {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	default: // the number, or its bits
		var b [8]byte
		for _, v := range t.integers {
			binary.LittleEndian.PutUint64(b[:], uint64(v))
			out = append(out, b[:d.Size()]...)
		}
	}
	return out
}
