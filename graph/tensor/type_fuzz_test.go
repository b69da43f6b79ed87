package tensor

import (
	"testing"

	"github.com/gomem/gomem/internal/legible"
)

// FuzzType: a type is one line, is read again as itself, and has bytes that can be counted; of
// anything else the error is one short line.
func FuzzType(f *testing.F) {
	for _, text := range []string{"f32[]", "bf16[batch:32 10]", "i32[a:b:3]", "f32[:3]",
		"u8[\xff:1]", "f32[+7 007]", "f32[1 1 1 1 1 1 1 1 1]", "f64[9223372036854775807 2]",
		"bool[-1]", "f32[", "[]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		typ, err := ParseType(text)
		if err != nil {
			if !legible.Is(err.Error()) || len(err.Error()) > 1000 {
				t.Errorf("%q", err)
			}
			return
		}
		again, err := ParseType(typ.String())
		if err != nil || again.String() != typ.String() || !again.Equal(typ) ||
			!legible.Is(typ.String()) || typ.Bytes() < 0 {
			t.Errorf("%q is printed as %q, which is %v, %v", text, typ, again, err)
		}
		for i, d := range typ.Shape {
			if err == nil && again.Shape[i] != d {
				t.Errorf("axis %d, %+v, is read again as %+v", i, d, again.Shape[i])
			}
		}
	})
}
