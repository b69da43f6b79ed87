package ops_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// numbers are random elements of a type, among them frequently those at which integers
// wrap and conversions end, and zeros where they may be.
func numbers(d graph.DType, seed uint64, zeros bool, sizes ...int) tensor.View {
	v := tensor.New(tensor.Of(d, sizes...))
	rng := rand.New(rand.NewPCG(seed, uint64(d)))
	edges := tensor.FromF32([]float32{0, 1, -1, 2, -2, 3, 7, -0x1p63, 0x1p64, 0.5, -2.5, 1e30}, 12).
		To(d)
	size := int(d.Size())
	for i := range v.Type.Elems() {
		at := v.Data[i*size : (i+1)*size]
		for k := range at {
			at[k] = byte(rng.Uint32())
		}
		if k := rng.IntN(24); k < 12 {
			copy(at, edges.Data[k*size:])
		}
		if d == graph.Bool {
			at[0] &= 1
		}
		if exact := exactly(v, i); !zeros && exact != nil && exact.Sign() == 0 {
			copy(at, edges.Data[size:])
		}
	}
	return v
}

// exactly is element i of a view as a number; nil for infinities and NaN.
func exactly(v tensor.View, i int) *big.Float {
	size := int(v.Type.DType.Size())
	one := tensor.View{Type: tensor.Of(v.Type.DType), Data: v.Data[i*size : (i+1)*size]}
	x := new(big.Float).SetPrec(200)
	switch {
	case v.Type.DType == graph.U64:
		return x.SetUint64(one.U64()[0])
	case v.Type.DType.Integer():
		return x.SetInt64(one.To(graph.I64).I64()[0])
	}
	f := one.To(graph.F64).F64()[0]
	if f-f != 0 {
		return nil
	}
	return x.SetFloat64(f)
}

// TestEveryElementTypeCompares: comparisons of every type are those of exact numbers.
func TestEveryElementTypeCompares(t *testing.T) {
	type comparison struct {
		of   func(a, b graph.Value) graph.Value
		want func(order int) bool
	}
	list := []comparison{
		{ops.Equal, func(o int) bool { return o == 0 }},
		{ops.NotEqual, func(o int) bool { return o != 0 }},
		{ops.Less, func(o int) bool { return o < 0 }},
		{ops.LessEqual, func(o int) bool { return o <= 0 }},
		{ops.Greater, func(o int) bool { return o > 0 }},
		{ops.GreaterEqual, func(o int) bool { return o >= 0 }},
	}
	for _, d := range tensor.DTypes() {
		a, b := numbers(d, 1, true, 200), numbers(d, 2, true, 200)
		for k, c := range list {
			got := compute(t, func(in []graph.Value) graph.Value {
				return c.of(in[0], in[1])
			}, a, b)
			for i, v := range got.U8() {
				x, y := exactly(a, i), exactly(b, i)
				if x != nil && y != nil && (v == 1) != c.want(x.Cmp(y)) {
					t.Fatalf("%s: comparison %d of %v and %v is %d", d, k, x, y, v)
				}
			}
		}
	}
	nan := tensor.FromF32([]float32{float32(math.NaN())}, 1).To(graph.F16)
	got := compute(t, func(in []graph.Value) graph.Value {
		return ops.Concat(0, ops.Equal(in[0], in[0]), ops.IsNaN(in[0]))
	}, nan)
	if got.U8()[0] != 0 || got.U8()[1] != 1 {
		t.Errorf("NaN compares as %v", got)
	}
}
