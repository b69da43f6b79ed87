package tensor

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTypeText: a type survives its text.
func TestTypeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Type{DType: rapid.SampledFrom(DTypes()).Draw(t, "dtype")}
		for i := range rapid.IntRange(0, 4).Draw(t, "rank") {
			d := Dim{Size: rapid.IntRange(0, 9).Draw(t, "size")}
			if rapid.Bool().Draw(t, "named") {
				d.Name = string(rune('a' + i))
			}
			want.Shape = append(want.Shape, d)
		}
		got, err := ParseType(want.String())
		if err != nil || got.String() != want.String() || !got.Equal(want) {
			t.Fatalf("%s reads as %s, %v", want, got, err)
		}
	})
}

func TestBadTypeText(t *testing.T) {
	for _, s := range []string{"", "f32", "f32[", "f33[2]", "f32[x]", "f32[-1]",
		"f32[a:]", "f32[a:2 a:2]", "f32[4000000000 4000000000]", "invalid[1]"} {
		if ty, err := ParseType(s); err == nil {
			t.Errorf("%q reads as %s", s, ty)
		}
	}
}

func TestSizes(t *testing.T) {
	ty := Named(F32, Dim{"batch", 3}, Dim{"", 5})
	if ty.Elems() != 15 || ty.Bytes() != 60 || ty.Rank() != 2 || ty.Size(-1) != 5 ||
		ty.Size(0) != 3 || ty.Rows(1) != 3 {
		t.Errorf("%s: %d elements, %d bytes", ty, ty.Elems(), ty.Bytes())
	}
	if s := Of(F32); s.Elems() != 1 || s.String() != "f32[]" {
		t.Errorf("a scalar is %s of %d elements", s, s.Elems())
	}
	if !ty.Equal(Of(F32, 3, 5)) || ty.Equal(Of(I32, 3, 5)) || !ty.SameShape(Of(I32, 3, 5)) ||
		ty.SameShape(Of(F32, 5, 3)) {
		t.Error("types compare wrongly")
	}
	if d := DType(99); d.Size() != 0 || d.String() != "dtype(99)" {
		t.Errorf("an unknown type is %s of %d bytes", d, d.Size())
	}
}

func TestViews(t *testing.T) {
	f := FromF32([]float32{1, 2, 3, 4}, 2, 2)
	f.F32()[3] = 7
	if got := f.F32(); len(got) != 4 || got[3] != 7 || len(f.Data) != 16 {
		t.Errorf("elements are %v", got)
	}
	i := FromI32([]int32{-1, 5}, 2)
	if i.I32()[0] != -1 || i.Data[0] != 0xff {
		t.Errorf("elements are %v", i.I32())
	}
	if u := New(Of(U8, 3)); len(u.U8()) != 3 {
		t.Errorf("%d bytes", len(u.U8()))
	}
	if h := New(Of(F16, 3)); len(h.U16()) != 3 || len(New(Of(BF16, 3)).U16()) != 3 {
		t.Error("half-precision views have the wrong length")
	}
	defer func() {
		if recover() == nil {
			t.Error("floats are read as integers")
		}
	}()
	f.I32()
}

// TestMakeWantsAllElements: data is neither padded nor cut, and sizes are those of
// a type.
func TestMakeWantsAllElements(t *testing.T) {
	x, n := []float32{10, 20, 30, 40}, []int32{1, 2, 3, 4}
	for _, c := range []struct {
		elems int
		sizes []int
		ok    bool
	}{
		{4, []int{4}, true}, {4, []int{2, 2}, true}, {1, nil, true}, {1, []int{1, 1, 1}, true},
		{2, []int{4}, false}, {4, []int{3}, false}, {4, nil, false}, {0, nil, false},
		{0, []int{0}, true}, {0, []int{3, 0}, true}, {1, []int{0}, false},
		{4, []int{-2, -2}, false}, {4, []int{-4}, false},
		{0, []int{1 << 32, 1 << 32}, false}, {4, []int{1 << 62, 4}, false},
		{4, []int{math.MaxInt, 4}, false},
	} {
		f, errF := MakeF32(x[:c.elems], c.sizes...)
		i, errI := MakeI32(n[:c.elems], c.sizes...)
		if (errF == nil) != c.ok || (errI == nil) != c.ok {
			t.Errorf("%d elements of sizes %v: %v, %v", c.elems, c.sizes, errF, errI)
		}
		if c.ok && (!slices.Equal(f.F32(), x[:c.elems]) || !slices.Equal(i.I32(), n[:c.elems])) {
			t.Errorf("%d elements of sizes %v are %v and %v", c.elems, c.sizes, f, i)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("FromF32 pads")
		}
	}()
	FromF32(x[:2], 4)
}
