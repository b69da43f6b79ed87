package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/gomem/gomem/internal/count"
)

// Write writes a file of version 3: the values, and the tensors in their order, whose names, types
// and sizes are taken. put is called once for each, and writes its bytes in as many parts as it
// likes. Errors are *[Error]s but for those of w and of put.
func Write(w io.Writer, values Metadata, tensors []Tensor,
	put func(Tensor, io.Writer) error) error {
	align, err := values.alignment()
	if err != nil {
		return &Error{Err: err}
	}
	tensors = slices.Clone(tensors)
	header, err := encode(values, tensors, align)
	if err != nil {
		return &Error{Err: err}
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		all := count.NewWriter(w)
		if err := put(t, all); err != nil {
			return err
		}
		n, err := all.Done()
		if err != nil {
			return err
		}
		if n != t.bytes {
			return &Error{Err: t.fail("has %d bytes: want %d", n, t.bytes)}
		}
		if _, err := w.Write(make([]byte, padded(t.bytes, align)-t.bytes)); err != nil {
			return err
		}
	}
	return nil
}

// encode is the header with what follows it up to the first tensor. It places the tensors.
func encode(values Metadata, tensors []Tensor, align int64) ([]byte, error) {
	e := encoder{b: []byte(Magic)}
	e.put(uint32(3), uint64(len(tensors)), uint64(len(values)))
	for _, p := range values {
		e.put(p.Key)
		e.value(p.Value)
	}
	var next int64
	names := map[string]bool{}
	for i := range tensors {
		t := &tensors[i]
		if err := t.measure(); err != nil {
			return nil, err
		}
		if names[t.Name] {
			return nil, t.fail("is there twice")
		}
		names[t.Name] = true
		t.off, next = next, padded(next+t.bytes, align)
		e.put(t.Name, uint32(len(t.Sizes)))
		for _, n := range slices.Backward(t.Sizes) {
			e.put(uint64(n))
		}
		e.put(uint32(t.Type), uint64(t.off))
	}
	e.b = append(e.b, make([]byte, padded(int64(len(e.b)), align)-int64(len(e.b)))...)
	return e.b, e.err
}

// encoder writes a header.
type encoder struct {
	b   []byte
	err error
}

// put writes numbers, slices of them, and texts.
func (e *encoder) put(all ...any) {
	for _, x := range all {
		if s, ok := x.(string); ok {
			e.b = binary.LittleEndian.AppendUint64(e.b, uint64(len(s)))
			e.b = append(e.b, s...)
			continue
		}
		b, err := binary.Append(e.b, binary.LittleEndian, x)
		if err != nil {
			e.err = fmt.Errorf("a value is %T, which GGUF has not: %w", x, err)
			return
		}
		e.b = b
	}
}

// codes are those of the types of values. An array of arrays is one of interfaces.
var codes = map[reflect.Kind]uint32{reflect.Uint8: 0, reflect.Int8: 1, reflect.Uint16: 2,
	reflect.Int16: 3, reflect.Uint32: 4, reflect.Int32: 5, reflect.Float32: 6,
	reflect.Bool: codeBool, reflect.String: codeString, reflect.Slice: codeArray,
	reflect.Interface: codeArray, reflect.Uint64: 10, reflect.Int64: 11, reflect.Float64: 12}

// value writes the code of a value's type, and the value.
func (e *encoder) value(x any) {
	e.code(reflect.TypeOf(x))
	e.body(reflect.ValueOf(x))
}

// code writes the code of a type.
func (e *encoder) code(t reflect.Type) {
	if t == nil {
		e.err = errors.New("a value is nil, which GGUF has not")
		return
	}
	code, ok := codes[t.Kind()]
	if !ok {
		e.err = fmt.Errorf("a value is %s, which GGUF has not", t)
	}
	e.put(code)
}

// body writes a value without its code.
func (e *encoder) body(v reflect.Value) {
	switch {
	case e.err != nil:
	case v.Kind() == reflect.Interface:
		e.body(v.Elem())
	case v.Kind() != reflect.Slice:
		e.put(v.Interface())
	default:
		e.code(v.Type().Elem())
		e.put(uint64(v.Len()))
		if k := v.Type().Elem().Kind(); k != reflect.String && k != reflect.Interface {
			e.put(v.Interface())
			return
		}
		for i := range v.Len() {
			e.body(v.Index(i))
		}
	}
}
