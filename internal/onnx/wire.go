package onnx

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a field of a message: a number, or bytes.
type field struct {
	num   protowire.Number
	kind  protowire.Type
	value uint64
	bytes []byte // a part of the message
}

// fields calls one function for every field of a message.
func fields(message []byte, each func(f field) error) error {
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		f := field{num: num, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default: // groups, which nobody writes
			n = protowire.ConsumeFieldValue(num, kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

var errWireType = errors.New("a field has another type than the schema says")

// integer is a number of a field.
func (f field) integer(to *int64) error {
	if f.kind != protowire.VarintType {
		return errWireType
	}
	*to = int64(f.value)
	return nil
}

// text is a string of a field, which has to be UTF-8.
func (f field) text(to *string) error {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	if !utf8.Valid(f.bytes) {
		return errors.New("a name is not UTF-8")
	}
	*to = string(f.bytes)
	return nil
}

// texts is one more string.
func (f field) texts(to *[]string) error {
	var s string
	if err := f.text(&s); err != nil {
		return err
	}
	*to = append(*to, s)
	return nil
}

// integers are some more numbers, packed or not.
func (f field) integers(to *[]int64) error {
	switch f.kind {
	case protowire.VarintType:
		*to = append(*to, int64(f.value))
		return nil
	case protowire.BytesType:
	default:
		return errWireType
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to, b = append(*to, int64(v)), b[n:]
	}
	return nil
}

// floats are some more numbers, packed or not.
func (f field) floats(to *[]float32) error {
	switch f.kind {
	case protowire.Fixed32Type:
		*to = append(*to, math.Float32frombits(uint32(f.value)))
		return nil
	case protowire.BytesType:
	default:
		return errWireType
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to, b = append(*to, math.Float32frombits(v)), b[n:]
	}
	return nil
}

// doubles are some more numbers, packed or not.
func (f field) doubles(to *[]float64) error {
	switch f.kind {
	case protowire.Fixed64Type:
		*to = append(*to, math.Float64frombits(f.value))
		return nil
	case protowire.BytesType:
	default:
		return errWireType
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeFixed64(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*to, b = append(*to, math.Float64frombits(v)), b[n:]
	}
	return nil
}

// one decodes the message of a field.
func one[T any](f field, to **T, decode func([]byte) (*T, error)) (err error) {
	if f.kind != protowire.BytesType {
		return errWireType
	}
	*to, err = decode(f.bytes)
	return err
}

// more decodes one more message.
func more[T any](f field, to *[]*T, decode func([]byte) (*T, error)) error {
	var m *T
	if err := one(f, &m, decode); err != nil {
		return err
	}
	*to = append(*to, m)
	return nil
}

// of says where an error is.
func of(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", what, name, err)
}
