package tensor

import (
	"fmt"
	"strings"
)

// DType is the type of one element.
type DType uint8

// The element types. Operations compute in F32 and I32, with U8 masks; the others are
// what values are stored as, fed and fetched, and converted from and to. The numbers
// are part of graph digests.
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
)

var dtypes = [...]struct {
	name string
	size int64
}{{"invalid", 0}, {"f32", 4}, {"i32", 4}, {"u8", 1}, {"bf16", 2}, {"f16", 2}, {"i64", 8},
	{"f64", 8}, {"bool", 1}}

// DTypes are the element types.
func DTypes() []DType { return []DType{F32, I32, U8, BF16, F16, I64, F64, Bool} }

// Size is the number of bytes of one element.
func (d DType) Size() int64 {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// Floating reports whether elements are floating-point numbers.
func (d DType) Floating() bool { return d == F32 || d == BF16 || d == F16 || d == F64 }

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
