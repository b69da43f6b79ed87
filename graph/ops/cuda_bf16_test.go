//go:build linux && amd64 && !nocuda

package ops

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

// TestCUDAInBF16: on a GPU every operation in bfloat16 comes to the host's numbers, but for one
// unit in the last place where sums or elementary functions differ before they are rounded.
func TestCUDAInBF16(t *testing.T) {
	h := needHost(t)
	eachInBF16(t, func(t *testing.T, plain, half Sample) {
		if !cuda.Supports(plain.Op) {
			t.Skip("no commands")
		}
		narrow, _ := halved(plain, half, 1)
		want := half.compute(t, narrow, nil)
		got := half.onCUDA(t, h, narrow, memory{poison: 0xff}, -1)
		for k, w := range want {
			if w.Type.DType != graph.BF16 || cuda.IsExact(plain.Op) {
				if string(w.Data) != string(got[k].Data) {
					t.Fatalf("result %d: %v, want %v", k, got[k], w)
				}
				continue
			}
			nearBF16(t, k, w, got[k], roomBF16(plain.Op))
		}
	})
}

// roomBF16 is what of the largest number a result in bfloat16 may be off on a GPU. Attention rounds
// its weights, and their gradients, as operands of products: by 1/512 each.
func roomBF16(op graph.Op) float64 {
	switch op.(type) {
	case attention, attentionGrad:
		return 1. / 128
	}
	return 2e-6
}

// nearBF16 compares result k: within one unit in the last place of bfloat16, and so much of the
// largest number.
func nearBF16(t testing.TB, k int, want, got tensor.View, of float64) {
	t.Helper()
	x, y := want.To(graph.F32).F32(), got.To(graph.F32).F32()
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(float64(v)))
	}
	for i := range x {
		room := float64(of*most) + math.Abs(float64(x[i]))/128
		if x[i] != y[i] && !(math.Abs(float64(x[i]-y[i])) <= room) &&
			(x[i] == x[i] || y[i] == y[i]) {
			t.Fatalf("result %d: element %d is %g, want %g", k, i, y[i], x[i])
		}
	}
}

// byTensorCores reports whether products of bfloat16 are computed by tensor cores, whose sums are
// in an order of their own: the emulator's are in order.
func byTensorCores(op graph.Op) bool {
	switch op.(type) {
	case conv2D, convInputGrad, convFilterGrad, groupedMatMul, groupedMatMulPart, groupedOuter,
		groupedOuterPart, expertMatMul, expertOuter:
		return true
	}
	return false
}

// TestCUDAReadsBF16: what reads bfloat16 as it is has the bits of the operation in f32 on the same
// numbers, rounded once, but where a GPU's tensor cores add up. It has them in place too, and needs
// no more scratch than filters in f32, or some steps of a sequence.
func TestCUDAReadsBF16(t *testing.T) {
	longtest.Skip(t)
	h, rng := needHost(t), rand.New(rand.NewPCG(1, 2))
	seen := map[reflect.Type]int{}
	for _, plain := range slices.Concat(Samples(), sizedSamples()) {
		form := formBF16CUDA(plain.Op)
		if form == "" {
			continue
		}
		seen[reflect.TypeOf(plain.Op)]++
		t.Run(plain.name(), func(t *testing.T) {
			for range 1 + strings.Count(form, "*") {
				half := inForm(t, plain, form, rng)
				out, _ := half.Op.Infer(half.In)
				if !takesBF16CUDA(plain.Op, half.In, out) {
					t.Fatalf("%v are not of the form %s", half.In, form)
				}
				readsBF16(t, h, plain, half)
			}
		})
	}
	if len(seen) != 50 {
		t.Errorf("samples of %d operations: %v", len(seen), seen)
	}
}

// readsBF16 compares an operation on bfloat16 with the one on f32.
func readsBF16(t *testing.T, h *host, plain, half Sample) {
	t.Helper()
	narrow, wide := halved(plain, half, 1)
	got := half.onCUDA(t, h, narrow, memory{poison: 0xff}, -1)
	want := narrowed(plain.onCUDA(t, h, wide, memory{poison: 0xff}, -1), got)
	if room := roomBF16(plain.Op); room > 2e-6 || byTensorCores(plain.Op) && h.gpu != nil {
		for k, w := range want {
			nearBF16(t, k, w, got[k], room)
		}
	} else if !same(want, got) {
		t.Fatalf("of %v: other bits than those of f32 rounded", half.In)
	}
	out, _ := half.Op.Infer(half.In)
	for _, k := range half.Op.(graph.InPlacer).InPlace(half.In, out) {
		if !same(got, half.onCUDA(t, h, narrow, memory{poison: 0x3e}, k)) {
			t.Errorf("over operand %d the result differs", k)
		}
	}
	outs, _ := plain.Op.Infer(plain.In)
	room := cuda.ScratchOf(plain.Op, plain.In, outs)
	switch plain.Op.(type) {
	case convFilterGrad:
		room += padded(outs[0].Bytes())
	case lstm, lstmGrad: // some steps, and states at the start, before and now
		state := plain.In[3]
		s := sequenceOf(plain.In[0], state, 0)
		room += 4*int64(s.chunk()*s.b*max(s.i, s.n)) + 4*padded(state.Bytes()) + 64
	}
	if n := cuda.ScratchOf(half.Op, half.In, out); n > room {
		t.Errorf("of %v: %d bytes of scratch, %d at most", half.In, n, room)
	}
}
