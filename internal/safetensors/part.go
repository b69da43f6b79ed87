package safetensors

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/gomem/gomem/graph/tensor"
)

// ReadPart reads those bytes of a tensor that begin at an offset. As the tensor's checksum
// is of all of it, that of the bytes is returned, for [File.CheckParts].
func (f *File) ReadPart(name string, into []byte, at int64) (sum uint32, err error) {
	i, err := f.find(name)
	if err != nil {
		return 0, err
	}
	e := f.entries[i]
	rest := e.Type.Bytes() - at - int64(len(into))
	if at < 0 || rest < 0 {
		return 0, f.fail(name, fmt.Errorf("%d bytes at %d are not all of its %d", len(into), at,
			e.Type.Bytes()))
	}
	if err := readFull(f.r, into, f.data+e.off+at); err != nil {
		return 0, f.fail(name, err)
	}
	part := tensor.View{Type: tensor.Of(e.Type.DType, len(into)), Data: into}
	if err := checkBool(part, at); err != nil {
		return 0, f.fail(name, err)
	}
	return shift(^crc32.Update(^uint32(0), castagnoli, into), rest), nil
}

// ReadRuns reads parts of a tensor one after the other, as [File.ReadPart] does, and returns
// what they are of the checksum together. runs visits them: where each starts in the tensor
// and in the bytes that are read into, and how long it is.
func (f *File) ReadRuns(name string, into []byte,
	runs func(visit func(at, to, n int))) (sum uint32, err error) {
	runs(func(at, to, n int) {
		if err == nil {
			var own uint32
			own, err = f.ReadPart(name, into[to:to+n], int64(at))
			sum ^= own
		}
	})
	return sum, err
}

// CheckParts reports whether parts that make a tensor up are those which a sealed file was
// written with. sum is the exclusive or of what ReadPart has returned for each, once, in any
// order, by whomever they were read.
func (f *File) CheckParts(name string, sum uint32) error {
	i, err := f.find(name)
	if err != nil {
		return err
	}
	if f.Sealed() && sum^^shift(^uint32(0), f.entries[i].Type.Bytes()) != f.sums[i] {
		return f.fail(name, ErrChecksum)
	}
	return nil
}

// find is the number of a tensor.
func (f *File) find(name string) (int, error) {
	i, ok := f.byName[name]
	for _, t := range f.foreign {
		if t.Name == name {
			code, _, _ := strings.Cut(t.Type, "[")
			return 0, f.fail(name, fmt.Errorf("elements of type %s: want %s", code, readable))
		}
	}
	if !ok {
		return 0, f.fail(name, errors.New("not in the file"))
	}
	return i, nil
}

// fail is an error of a tensor.
func (f *File) fail(name string, err error) error {
	return &Error{Path: f.path, Tensor: name, Err: err}
}

// A checksum without its first and last inversion is the remainder of the bytes as a
// polynomial, and so the sum of the remainders of their parts, each followed by zeros. Bits
// are in reverse: the highest is the coefficient of 1.

// shift is the remainder of bytes that n zeros follow, of the remainder of the bytes.
func shift(c uint32, n int64) uint32 {
	for power := uint32(1) << 23; n > 0; n >>= 1 { // a zero byte multiplies by the power 8
		if n&1 != 0 {
			c = product(c, power)
		}
		power = product(power, power)
	}
	return c
}

// product is the remainder of a product of remainders.
func product(a, b uint32) (p uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			p ^= b
		}
		b = b>>1 ^ -(b&1)&crc32.Castagnoli
	}
	return p
}
