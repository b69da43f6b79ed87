package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
)

// spoil replaces some elements of a random i32 operand, or of a scalar, by numbers
// from the borders of what makes sense, and one of other integers by 0.
func spoil(rng *rand.Rand, in []tensor.View) {
	v := in[rng.IntN(len(in))]
	absurd := []int32{-1 << 31, -2, -1, 0, 1, 2, 3, 4, 5, 16, 17, 18, 64, 1<<31 - 1}
	switch v.Type.DType {
	case graph.I32:
		for range 1 + rng.IntN(2) {
			v.I32()[rng.IntN(len(v.I32()))] = absurd[rng.IntN(len(absurd))]
		}
	case graph.F32:
		if v.Type.Rank() == 0 {
			v.F32()[0] = float32(absurd[rng.IntN(len(absurd))])
		}
	default:
		if size := int(v.Type.DType.Size()); v.Type.DType.Integer() {
			at := rng.IntN(v.Type.Elems()) * size
			clear(v.Data[at : at+size])
		}
	}
}

// TestCheckDataIsTheKernels: what CheckData refuses is what the kernel refuses,
// with the same error; and what it does not know it does not refuse.
func TestCheckDataIsTheKernels(t *testing.T) {
	eachSample(t, func(t *testing.T, s Sample) {
		op, ok := s.Op.(graph.Checker)
		if !ok {
			return
		}
		if o, ok := s.Op.(inBF16); ok {
			if _, ok := o.Op.(graph.Checker); !ok {
				return
			}
		}
		if o, ok := s.Op.(every); ok {
			if _, ok := o.Op.(graph.Checker); !ok {
				return
			}
		}
		if o, ok := s.Op.(numeric); ok && !o.divides(s.In[0].DType) {
			return
		}
		rng := rand.New(rand.NewPCG(3, 4))
		refused := 0
		for range longtest.Count(60, 5000) {
			in := s.operands(rng.Uint64())
			spoil(rng, in)
			_, want := s.run(t, in, nil, memory{poison: 0xff})
			got := op.CheckData(in)
			if (want == nil) != (got == nil) || want != nil && want.Error() != got.Error() {
				t.Fatalf("the kernel says %v, CheckData %v", want, got)
			}
			if got != nil {
				refused++
			}
			if k := rng.IntN(len(in)); got == nil {
				in[k].Data = nil
				if err := op.CheckData(in); err != nil {
					t.Fatalf("without operand %d: %v", k, err)
				}
			}
		}
		if refused == 0 {
			t.Error("nothing was refused: what is checked?")
		}
		unknown := make([]tensor.View, len(s.In))
		for i := range unknown {
			unknown[i].Type = s.In[i]
		}
		if err := op.CheckData(unknown); err != nil {
			t.Errorf("nothing known: %v", err)
		}
	})
}

// TestRefusingKernelsCheckData: an operation whose kernel refuses indices that are
// fed says so before a step. Those that only operations make are not checked.
func TestRefusingKernelsCheckData(t *testing.T) {
	made := map[string]bool{}
	for _, name := range []string{"dispatch", "combine",
		"expert-matmul", "expert-outer", "grouped-matmul", "grouped-outer", "gather-rows",
		"packed-expert", "sum-rows", "combine-rows", "spread-rows", "dot-rows"} {
		made[name] = true
	}
	eachSample(t, func(t *testing.T, s Sample) {
		if _, ok := s.Op.(graph.Checker); ok || isView(s) || len(s.In) == 0 || made[s.Op.Name()] {
			return
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for range 20 {
			in := s.operands(rng.Uint64())
			spoil(rng, in)
			if _, err := s.run(t, in, nil, memory{poison: 0xff}); err != nil {
				t.Fatalf("%s refuses data (%v), but does not implement graph.Checker",
					s.Op.Name(), err)
			}
		}
	})
}
