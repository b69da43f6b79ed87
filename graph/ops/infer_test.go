package ops

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// TestOperationsAreComparable: passes use operations as keys.
func TestOperationsAreComparable(t *testing.T) {
	seen := map[graph.Op]bool{}
	for _, s := range Samples() {
		seen[s.Op] = true
	}
	if len(seen) == 0 {
		t.Error("no operation is sampled")
	}
}

// TestBadOperands: whatever the operands, Infer answers with types or an error,
// and never panics; what it accepts is sound, and is computed.
func TestBadOperands(t *testing.T) {
	for _, s := range Samples() {
		t.Run(s.name(), func(t *testing.T) {
			for _, in := range mutations(s.In) {
				s.tryOn(t, in)
			}
			if len(s.In) > 0 {
				if _, err := s.Op.Infer(nil); err == nil {
					t.Error("no operands are accepted")
				}
			}
		})
	}
}

// TestArbitraryOperands: the same for operands that have nothing to do with the
// operation.
func TestArbitraryOperands(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, s := range Samples() {
		for range 50 {
			s.tryOn(t, randomTypes(rng))
		}
	}
}

func randomTypes(rng *rand.Rand) []graph.Type {
	in := make([]graph.Type, rng.IntN(5))
	for i := range in {
		sizes := make([]int, rng.IntN(5))
		for k := range sizes {
			sizes[k] = 1 + rng.IntN(4)
		}
		dtypes := append(tensor.DTypes(), graph.F32, graph.F32, graph.F32, graph.F32)
		in[i] = tensor.Of(dtypes[rng.IntN(len(dtypes))], sizes...)
	}
	return in
}

// tryOn checks the operation on operands that it need not accept.
func (s Sample) tryOn(t *testing.T, in []graph.Type) {
	t.Helper()
	out, err := s.Op.Infer(in)
	if err != nil {
		return
	}
	for _, ty := range out {
		if err := ty.Check(); err != nil {
			t.Errorf("%v is accepted and gives %v", in, err)
			return
		}
	}
	if c := s.Op.Cost(in, out); c.FLOPs < 0 || c.Bytes < 0 || c.Scratch < 0 {
		t.Errorf("%v costs %+v", in, c)
	}
	if op, ok := s.Op.(graph.InPlacer); ok {
		for _, k := range op.InPlace(in, out) {
			if in[k].Bytes() != out[0].Bytes() {
				t.Errorf("%v gives %v over operand %d", in, out[0], k)
			}
		}
	}
	if view, ok := s.Op.(graph.Viewer); ok {
		checkView(t, view, in, out)
		return
	}
	other := Sample{Op: s.Op, In: in, Update: s.Update, Fill: fills{}}
	for i, fill := range s.Fill {
		if i < len(in) && i < len(s.In) && in[i].DType == s.In[i].DType {
			other.Fill[i] = fill
		}
	}
	// The kernel may object to the data, but to nothing else.
	if _, err := other.run(t, other.operands(8), nil, memory{poison: 0xff}); err != nil {
		t.Logf("%v: %v", in, err)
	}
}

// checkView: a view's results lie within operand 0.
func checkView(t *testing.T, view graph.Viewer, in, out []graph.Type) {
	t.Helper()
	offsets := view.View(in, out)
	if len(offsets) != len(out) {
		t.Fatalf("%d offsets of %d results", len(offsets), len(out))
	}
	for i, off := range offsets {
		if off < 0 || off+out[i].Bytes() > in[0].Bytes() || off%out[i].DType.Size() != 0 {
			t.Errorf("result %d is %d bytes at %d of %d", i, out[i].Bytes(), off, in[0].Bytes())
		}
	}
}

// mutations are operand lists with one thing changed.
func mutations(in []graph.Type) [][]graph.Type {
	var out [][]graph.Type
	with := func(i int, t graph.Type) {
		m := slices.Clone(in)
		m[i] = t
		out = append(out, m)
	}
	for n := range in {
		out = append(out, in[:n])
	}
	out = append(out, append(slices.Clone(in), tensor.Of(graph.F32, 2)))
	for i, t := range in {
		for _, d := range tensor.DTypes() {
			with(i, graph.Type{DType: d, Shape: t.Shape})
		}
		with(i, tensor.Of(t.DType))
		with(i, graph.Type{DType: t.DType,
			Shape: append(slices.Clone(t.Shape), graph.Dim{Size: 2})})
		with(i, graph.Type{DType: t.DType, Shape: append([]graph.Dim{{Size: 2}}, t.Shape...)})
		for k := range t.Shape {
			with(i, resized(t, k, t.Size(k)+1))
			with(i, resized(t, k, 1))
			with(i, graph.Type{DType: t.DType, Shape: slices.Delete(slices.Clone(t.Shape), k, k+1)})
		}
	}
	return out
}
