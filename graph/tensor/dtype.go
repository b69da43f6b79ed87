package tensor

import (
	"fmt"
	"strings"
)

// DType is the type of one element.
type DType uint8

// The element types. Which operations compute in which of them, package ops says; all of
// them are stored, fed and fetched, moved, and converted from and to. The numbers are
// part of graph digests.
const (
	Invalid DType = iota
	F32           // IEEE 754 binary32
	I32           // two's complement 32-bit integer
	U8            // unsigned byte
	BF16          // bfloat16 storage
	F16           // IEEE 754 binary16 storage
	I64           // two's complement 64-bit integer
	F64           // IEEE 754 binary64
	Bool          // a byte that is 0 or 1
	I8            // two's complement 8-bit integer
	I16           // two's complement 16-bit integer
	U16           // unsigned 16-bit integer
	U32           // unsigned 32-bit integer
	U64           // unsigned 64-bit integer
)

var dtypes = [...]struct {
	name string
	size int64
}{{"invalid", 0}, {"f32", 4}, {"i32", 4}, {"u8", 1}, {"bf16", 2}, {"f16", 2}, {"i64", 8},
	{"f64", 8}, {"bool", 1}, {"i8", 1}, {"i16", 2}, {"u16", 2}, {"u32", 4}, {"u64", 8}}

// DTypes are the element types.
func DTypes() []DType {
	list := make([]DType, 0, len(dtypes)-1)
	for d := F32; int(d) < len(dtypes); d++ {
		list = append(list, d)
	}
	return list
}

// Size is the number of bytes of one element.
func (d DType) Size() int64 {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// Floating reports whether elements are floating-point numbers.
func (d DType) Floating() bool { return d == F32 || d == BF16 || d == F16 || d == F64 }

// Integer reports whether elements are integers; those of Bool are truth values.
func (d DType) Integer() bool { return d != Bool && d.Size() > 0 && !d.Floating() }

// String is the short name: "f32".
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType reads what String prints.
func ParseDType(s string) (DType, error) {
	var names []string
	for i, d := range dtypes[1:] {
		if d.name == s {
			return DType(i + 1), nil
		}
		names = append(names, d.name)
	}
	return Invalid, fmt.Errorf("unknown element type %.60q: want one of %s", s,
		strings.Join(names, ", "))
}
