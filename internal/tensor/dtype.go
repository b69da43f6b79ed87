package tensor

import "fmt"

// DType is the type of one element.
type DType uint8

// The element types. F32, I32 and U8 are computed with; BF16 and F16 are
// storage types.
const (
	Invalid DType = iota
	F32           // IEEE 754 binary32
	I32           // two's complement 32-bit integer
	U8            // unsigned byte; booleans are 0 or 1
	BF16          // bfloat16 storage
	F16           // IEEE 754 binary16 storage
)

var dtypes = [...]struct {
	name string
	size int64
}{{"invalid", 0}, {"f32", 4}, {"i32", 4}, {"u8", 1}, {"bf16", 2}, {"f16", 2}}

// Size is the number of bytes of one element.
func (d DType) Size() int64 {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].size
}

// String is the short name: "f32".
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType reads what String prints.
func ParseDType(s string) (DType, error) {
	for i, d := range dtypes[1:] {
		if d.name == s {
			return DType(i + 1), nil
		}
	}
	return Invalid, fmt.Errorf("unknown element type %q", s)
}
