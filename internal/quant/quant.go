package quant

import (
	"fmt"
	"strings"
)

// Format is how the elements of a row are packed. The zero Format is none.
type Format uint8

// The formats. Those of blocks are GGUF's, to the bit, but for NF4.
const (
	Q8_0 Format = iota + 1 // 8 bits and a scale for 32 elements: 8.5 bits an element
	Q4_0                   // 4 bits and a scale for 32 elements: 4.5 bits an element
	Q4_K                   // 4 bits, scales and minima of two levels for 256: 4.5 bits
	Q6_K                   // 6 bits, scales of two levels for 256: 6.5625 bits
	NF4                    // quantiles of a normal distribution, scales of 8 bits: 4.13 bits
	BF16                   // bfloat16
	F16                    // IEEE 754 binary16
)

// layout is what a format is: its name, the elements and bytes of a block, the bytes before the
// first; a row packed, and blocks unpacked, of which the lengths are right; and, if elements are
// integers times a scale, blocks as a group.
type layout struct {
	name                    string
	elements, bytes, header int
	pack                    func(dst []byte, src []float32)
	unpack                  func(dst []float32, src []byte)
	group                   func(g *Group, src []byte)
}

var layouts = [...]layout{
	Q8_0: {"q8_0", 32, q8Bytes, 0, packQ8, unpackQ8, groupQ8},
	Q4_0: {"q4_0", 32, q4Bytes, 0, packQ4, unpackQ4, groupQ4},
	Q4_K: {"q4_k", super, q4kBytes, 0, packQ4K, unpackQ4K, groupQ4K},
	Q6_K: {"q6_k", super, q6kBytes, 0, packQ6K, unpackQ6K, groupQ6K},
	NF4:  {"nf4", nf4Block, nf4Bytes, nf4Header, packNF4, nil, nil},
	BF16: {"bf16", 1, 2, 0, packBF16, unpackBF16, nil},
	F16:  {"f16", 1, 2, 0, packF16, unpackF16, nil},
}

// All are the formats there are.
func All() []Format { return []Format{Q8_0, Q4_0, Q4_K, Q6_K, NF4, BF16, F16} }

// valid says whether f is one of the formats.
func (f Format) valid() bool { return f >= Q8_0 && f <= F16 }

// String is the format's name, such as q4_k.
func (f Format) String() string {
	if !f.valid() {
		return fmt.Sprintf("Format(%d)", uint8(f))
	}
	return layouts[f].name
}

// Parse is the format of a name. Any other name is an [*UnknownError].
func Parse(name string) (Format, error) {
	for _, f := range All() {
		if f.String() == name {
			return f, nil
		}
	}
	return 0, &UnknownError{name}
}

// UnknownError is that no format has a name.
type UnknownError struct{ Name string }

// Error names the formats there are.
func (e *UnknownError) Error() string {
	var names []string
	for _, f := range All() {
		names = append(names, f.String())
	}
	return fmt.Sprintf("no format %q: want one of %s", e.Name, strings.Join(names, ", "))
}

// Block is the elements of a block: the rows of a format are multiples of it.
func (f Format) Block() int { return layouts[f].elements }

// maxRow is more elements than a row has, and few enough for their bytes to be an int64.
const maxRow = 1 << 56

// RowBytes is the bytes of a row of n elements. A [*RowError] says that there is no such row.
func (f Format) RowBytes(n int) (int64, error) {
	if !f.valid() || n < 0 || n%f.Block() != 0 || int64(n) > maxRow {
		return 0, &RowError{f, n}
	}
	return f.rowBytes(n), nil
}

// rowBytes is RowBytes of a row that there is.
func (f Format) rowBytes(n int) int64 { return int64(f.Header()) + int64(n/f.Block())*f.size() }

// size is the bytes of a block.
func (f Format) size() int64 { return int64(layouts[f].bytes) }

// Header is the bytes of a row before its first block.
func (f Format) Header() int { return layouts[f].header }

// RowError is that a format has no rows of so many elements.
type RowError struct {
	Format Format
	N      int
}

// Error says what rows there are.
func (e *RowError) Error() string {
	if !e.Format.valid() {
		return fmt.Sprintf("%s is no format of rows", e.Format)
	}
	return fmt.Sprintf("a row of %d elements cannot be %s: want a multiple of %d, at most 2^56",
		e.N, e.Format, e.Format.Block())
}

// Pack packs a row: dst has the RowBytes of src's elements, which are finite. It panics if it has
// not.
func (f Format) Pack(dst []byte, src []float32) {
	f.check(len(src), len(dst))
	layouts[f].pack(dst, src)
}

// Unpack unpacks a row: src has the RowBytes of dst's elements. It panics if it has not.
func (f Format) Unpack(dst []float32, src []byte) {
	f.check(len(dst), len(src))
	f.UnpackPart(dst, src, 0)
}

// UnpackPart unpacks elements of a row into all of dst, from the one of a number, which is a
// multiple of the block, as the length of dst is.
func (f Format) UnpackPart(dst []float32, row []byte, from int) {
	blocks := row[f.rowBytes(from):]
	if f == NF4 {
		unpackNF4(dst, row, blocks)
		return
	}
	layouts[f].unpack(dst, blocks)
}

// check panics unless a row of n elements has so many bytes.
func (f Format) check(n, bytes int) {
	want, err := f.RowBytes(n)
	if err != nil {
		panic("quant: " + err.Error())
	}
	if int64(bytes) != want {
		panic(fmt.Sprintf("quant: %d elements of %s have %d bytes, not %d", n, f, want, bytes))
	}
}
