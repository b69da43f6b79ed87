package tensor

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPrint: tensors print as their values.
func TestPrint(t *testing.T) {
	nan := float32(math.NaN())
	inf := float32(math.Inf(1))
	count := New(Of(I64, 10, 7, 20))
	for i := range count.I64() {
		count.I64()[i] = int64(i)
	}
	for _, c := range []struct {
		v    View
		want string
	}{
		{FromF32([]float32{3.14159265}), "f32[] 3.14159"},
		{FromF32([]float32{1, 2.5, -3}, 3), "f32[3] [  1 2.5  -3]"},
		{FromF32([]float32{1, 2, 3, 4, 5.25, -inf}, 2, 3),
			"f32[2 3]\n[[   1    2    3]\n [   4 5.25 -inf]]"},
		{FromF32([]float32{nan, inf}, 2), "f32[2] [nan inf]"},
		{FromF32([]float32{0.1, 1e-9}, 2).To(F64), "f64[2] [  0.1 1e-09]"},
		{FromF32([]float32{1.5, 0x1p100}, 2).To(BF16), "bf16[2] [        1.5 1.26765e+30]"},
		{FromF32([]float32{1.5, 1e30}, 2).To(F16), "f16[2] [1.5 inf]"},
		{FromI32([]int32{-7, 0}, 2).To(Bool), "bool[2] [ true false]"},
		{FromI32([]int32{7, 300}, 1, 2).To(U8), "u8[1 2]\n[[  7 255]]"},
		{FromI32([]int32{-7, 300}, 2).To(I8), "i8[2] [ -7 127]"},
		{FromI32([]int32{-7, 70000}, 2).To(U16), "u16[2] [    0 65535]"},
		{FromF32([]float32{0x1p64, 2}, 2).To(U64),
			"u64[2] [18446744073709551615                    2]"},
		{FromI32([]int32{1, 2, 3, 4}, 2, 1, 2),
			"i32[2 1 2]\n[[[1 2]]\n\n [[3 4]]]"},
		{View{}, "invalid[] without data"},
		{View{Type: Of(F32, 2)}, "f32[2] without data"},
		{count, `i64[10 7 20]
[[[   0    1    2 ...   17   18   19]
  [  20   21   22 ...   37   38   39]
  [  40   41   42 ...   57   58   59]
  ...
`},
	} {
		if got := c.v.String(); got != c.want && (!strings.HasSuffix(c.want, "...\n") ||
			!strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, "1397 1398 1399]]]")) {
			t.Errorf("prints\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestPrintFits: whatever the tensor, lines have at most 75 columns but for what cannot
// be broken, brackets pair, and there are as many values as elements, or few.
func TestPrintFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 60), 0, 4).Draw(t, "sizes")
		v := New(Of(rapid.SampledFrom(DTypes()).Draw(t, "type"), sizes...))
		head, values, _ := strings.Cut(v.String(), "]")
		if head+"]" != v.Type.String() {
			t.Fatalf("begins with %q", head)
		}
		if strings.Count(values, "[") != strings.Count(values, "]") {
			t.Fatalf("brackets in %s", v)
		}
		for _, line := range strings.Split(v.String(), "\n") {
			if len(line) > 80 {
				t.Fatalf("%d columns: %s", len(line), line)
			}
		}
		n := len(strings.FieldsFunc(values,
			func(r rune) bool { return strings.ContainsRune("[] \n", r) }))
		if e := v.Type.Elems(); e <= 1000 && n != e || e > 1000 && n > 7*7*7*7 {
			t.Fatalf("%d of %d elements", n, e)
		}
	})
}
