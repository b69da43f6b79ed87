package gomem_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// started compiles a graph of one variable and returns how it starts.
func started(t *testing.T, d graph.DType, init graph.Init) (tensor.View, error) {
	t.Helper()
	g := graph.New()
	v := g.Variable("v", tensor.Of(d, 6, 500), init)
	read := ops.Reshape(v, graph.Dim{Size: 3000})
	if d != graph.F32 {
		read = ops.Cast(v, graph.F32)
	}
	s, err := gomem.Compile(context.Background(), g, gomem.Options{Seed: 4},
		gomem.Target{Name: "read", Fetches: []graph.Value{ops.Neg(read)}})
	if err != nil {
		return tensor.View{}, err
	}
	defer s.Close()
	return s.Get(v)
}

// TestSmallFloatsStartRounded: a variable of bf16 or f16 starts as the f32 of its name,
// rounded, whatever the distribution.
func TestSmallFloatsStartRounded(t *testing.T) {
	for _, init := range []graph.Init{
		{Dist: graph.Normal, Scale: 1}, {Dist: graph.Truncated, Scale: 0.3},
		{Dist: graph.Uniform, Scale: 2}, {Scale: 1.2345},
		{Each: []graph.Init{{Scale: 3}, {Dist: graph.Normal, Scale: 1}}},
	} {
		exact, err := started(t, graph.F32, init)
		if err != nil {
			t.Fatal(err)
		}
		for d, digits := range map[graph.DType]int{graph.BF16: 8, graph.F16: 11} {
			got, err := started(t, d, init)
			if err != nil {
				t.Fatal(err)
			}
			for i, bits := range got.U16() {
				x, want := widened(d, bits), float64(exact.F32()[i])
				if math.Abs(x-want) > math.Ldexp(math.Abs(want), -digits)+0x1p-25 {
					t.Fatalf("%s %+v: element %d is %g, want %g", d, init, i, x, want)
				}
			}
		}
	}
}

// TestDoublesStartUnrounded: a variable of f64 starts as the f32 of its name before that
// is rounded.
func TestDoublesStartUnrounded(t *testing.T) {
	init := graph.Init{Dist: graph.Normal, Scale: 0.7}
	single, err := started(t, graph.F32, init)
	if err != nil {
		t.Fatal(err)
	}
	double, err := started(t, graph.F64, init)
	if err != nil {
		t.Fatal(err)
	}
	rounded := 0
	for i, x := range double.F64() {
		if float32(x) != single.F32()[i] {
			t.Fatalf("element %d is %g, as f32 %g", i, x, single.F32()[i])
		}
		if float64(float32(x)) != x {
			rounded++
		}
	}
	if rounded < 2000 {
		t.Errorf("only %d of 3000 are no f32", rounded)
	}
}

// widened is the number that small floating-point bits are.
func widened(d graph.DType, bits uint16) float64 {
	if d == graph.BF16 {
		return float64(math.Float32frombits(uint32(bits) << 16))
	}
	x := math.Ldexp(float64(bits&0x3ff), -24)
	if e := int(bits >> 10 & 31); e > 0 {
		x = math.Ldexp(float64(bits&0x3ff|0x400), e-25)
	}
	return math.Copysign(x, float64(1-int(bits>>15)*2))
}

// TestIntegersStartAsConstants: and as nothing else.
func TestIntegersStartAsConstants(t *testing.T) {
	v, err := started(t, graph.I32, graph.Init{Each: []graph.Init{{Scale: -7}, {Scale: 1 << 30}}})
	if err != nil {
		t.Fatal(err)
	}
	if x := v.I32(); x[0] != -7 || x[1499] != -7 || x[1500] != 1<<30 || x[2999] != 1<<30 {
		t.Errorf("parts start as %d … %d and %d … %d", x[0], x[1499], x[1500], x[2999])
	}
	if v, err = started(t, graph.U8, graph.Init{Scale: 255}); err != nil || v.U8()[9] != 255 {
		t.Errorf("bytes start as %v, %v", v, err)
	}
	if v, err = started(t, graph.I64, graph.Init{Scale: -1 << 53}); err != nil ||
		v.I64()[9] != -1<<53 {
		t.Errorf("i64 starts as %v, %v", v, err)
	}
	if v, err = started(t, graph.Bool, graph.Init{Scale: 1}); err != nil || !v.Bool()[9] {
		t.Errorf("truth values start as %v, %v", v, err)
	}
	for _, c := range []struct {
		d    graph.DType
		init graph.Init
		want string
	}{
		{graph.I32, graph.Init{Dist: graph.Normal, Scale: 1}, "cannot be drawn"},
		{graph.I32, graph.Init{Each: []graph.Init{{}, {Dist: graph.Uniform}}}, "cannot be drawn"},
		{graph.I32, graph.Init{Scale: 0.5}, "0.5 is none of its type"},
		{graph.I32, graph.Init{Scale: 1 << 31}, "is none of its type"},
		{graph.U8, graph.Init{Scale: 256}, "256 is none of its type"},
		{graph.U8, graph.Init{Scale: -1}, "-1 is none of its type"},
		{graph.I64, graph.Init{Dist: graph.Normal, Scale: 1}, "cannot be drawn"},
		{graph.I64, graph.Init{Scale: 0.5}, "0.5 is none of its type"},
		{graph.I64, graph.Init{Scale: 0x1p60}, "is none of its type"},
		{graph.Bool, graph.Init{Scale: 2}, "2 is none of its type"},
	} {
		_, err := started(t, c.d, c.init)
		var mistake *graph.Error
		if !errors.As(err, &mistake) || mistake.Node != "v" ||
			!strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "initialize_test.go") {
			t.Errorf("%s %+v: error is %v, want one with %q", c.d, c.init, err, c.want)
		}
	}
}

// TestDrawnInParts: how a variable starts is one sequence, wherever parts of it begin, and so are
// those that start otherwise than the rest.
func TestDrawnInParts(t *testing.T) {
	normal := graph.Init{Dist: graph.Normal, Scale: 1}
	each := graph.Init{Each: []graph.Init{normal, {Scale: 3}, normal}}
	const n = 900_000
	s, w := large(t, tensor.Of(graph.F32, n), each)
	one, _ := large(t, tensor.Of(graph.F32, n), normal)
	drawn, some := must(t, one, one.Variables()[0]).F32(), must(t, s, w).F32()
	for i, want := range map[int]float32{0: drawn[0], n/3 - 1: drawn[n/3-1], n / 3: 3, 2*n/3 - 1: 3,
		2 * n / 3: drawn[n/3], n - 1: drawn[2*n/3-1]} {
		if some[i] != want {
			t.Errorf("element %d is %v, want %v", i, some[i], want)
		}
	}
}
