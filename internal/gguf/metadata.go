package gguf

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/gomem/gomem/internal/legible"
)

// Pair is a key and its value: uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32,
// float64, bool, string, a slice of one of these, or a []any of such slices.
type Pair struct {
	Key   string
	Value any
}

// Metadata are the values of a file, in its order. Keys differ.
type Metadata []Pair

// Get is the value of a key; nil if there is none.
func (m Metadata) Get(key string) any {
	for _, p := range m {
		if p.Key == key {
			return p.Value
		}
	}
	return nil
}

// The codes of the types of values that are no plain numbers.
const (
	codeBool   = 7
	codeString = 8
	codeArray  = 9
)

// kind is a type of values: one is read, or many; nil for the array, which is read by itself.
type kind struct {
	one  func(*decoder) any
	many func(d *decoder, n uint64) any
}

// kinds are the types of values by their codes.
var kinds = [...]kind{
	fixed[uint8](), fixed[int8](), fixed[uint16](), fixed[int16](), fixed[uint32](),
	fixed[int32](), fixed[float32](),
	codeBool: {
		one:  func(d *decoder) any { return d.truth() },
		many: func(d *decoder, n uint64) any { return several(d, n, 1, d.truth) },
	},
	codeString: {
		one:  func(d *decoder) any { return d.text() },
		many: func(d *decoder, n uint64) any { return several(d, n, 8, d.text) },
	},
	codeArray: {}, 10: fixed[uint64](), 11: fixed[int64](), 12: fixed[float64](),
}

// fixed is the kind of numbers of a type.
func fixed[T any]() kind {
	return kind{
		one: func(d *decoder) any {
			var x T
			d.read(&x)
			return x
		},
		many: func(d *decoder, n uint64) any {
			var x T
			if !d.room(n, uint64(binary.Size(x))) {
				return nil
			}
			all := make([]T, n)
			d.read(all)
			return all
		},
	}
}

// several are n values of at least some bytes each.
func several[T any](d *decoder, n, bytes uint64, one func() T) []T {
	if !d.room(n, bytes) {
		return nil
	}
	all := make([]T, 0, n)
	for uint64(len(all)) < n && d.err == nil {
		all = append(all, one())
	}
	return all
}

// maxNested is how many arrays are within each other at most.
const maxNested = 4

// value reads one of a type, within so many arrays.
func (d *decoder) value(code uint32, within int) any {
	switch {
	case d.err != nil:
	case code >= uint32(len(kinds)):
		d.fail("a value of type %d, which is none of GGUF's", code)
	case code != codeArray:
		return kinds[code].one(d)
	case within == maxNested:
		d.fail("more than %d arrays within each other", maxNested)
	default:
		return d.array(within + 1)
	}
	return nil
}

// array reads an array that is within so many, itself among them.
func (d *decoder) array(within int) any {
	var code uint32
	var n uint64
	d.read(&code)
	d.read(&n)
	switch {
	case d.err != nil:
		return nil
	case code == codeArray:
		return several(d, n, 12, func() any { return d.value(code, within) })
	case code >= uint32(len(kinds)):
		d.fail("an array of type %d, which is none of GGUF's", code)
		return nil
	}
	return kinds[code].many(d, n)
}

// decoder reads a header. After an error it reads nothing.
type decoder struct {
	r    io.Reader
	left uint64 // bytes of the file, or of the largest header
	err  error
}

// fail keeps the first error.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// room demands that the file has n values of some bytes.
func (d *decoder) room(n, bytes uint64) bool {
	if d.err == nil && n > d.left/bytes {
		d.fail("%d values of %d bytes or more, where %d bytes are left: the file is damaged or "+
			"truncated", n, bytes, d.left)
	}
	return d.err == nil
}

// read reads numbers of a fixed size.
func (d *decoder) read(into any) {
	n := uint64(binary.Size(into))
	if !d.room(n, 1) {
		return
	}
	if err := binary.Read(d.r, binary.LittleEndian, into); err != nil {
		d.fail("the header: %w", err)
	}
	d.left -= n
}

// truth reads a truth value.
func (d *decoder) truth() bool {
	var b uint8
	if d.read(&b); b > 1 {
		d.fail("%d is no truth value", b)
	}
	return b == 1
}

// text reads a text.
func (d *decoder) text() string {
	var n uint64
	if d.read(&n); !d.room(n, 1) {
		return ""
	}
	b := make([]byte, n)
	d.read(b)
	return string(b)
}

// metadata reads n keys and their values.
func (d *decoder) metadata(n uint64) Metadata {
	seen := map[string]bool{}
	return several(d, n, 13, func() Pair {
		p := Pair{Key: d.text()}
		if seen[p.Key] {
			d.fail("key %s is there twice", legible.Cut(p.Key, 60))
		}
		seen[p.Key] = true
		var code uint32
		d.read(&code)
		p.Value = d.value(code, 0)
		if d.err != nil {
			d.err = fmt.Errorf("key %s: %w", legible.Cut(p.Key, 60), d.err)
		}
		return p
	})
}
