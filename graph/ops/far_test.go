package ops

import (
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/longtest"
)

// largeRows times 1024 elements of f32 are more than farBytes; half of them less.
const largeRows = farBytes/4096 + 2

// TestLargeResultsHaveTheSameBits: results that bypass the caches are those of
// two halves, which do not.
func TestLargeResultsHaveTheSameBits(t *testing.T) {
	longtest.Skip(t)
	x := tensor.Of(graph.F32, largeRows, 1024)
	row := tensor.Of(graph.F32, 1024)
	threads := pool.New(2)
	defer threads.Close()
	for _, s := range []Sample{
		{Op: binary{add}, In: []graph.Type{x, x}},
		{Op: binary{maximum}, In: []graph.Type{x, x}},
		{Op: unary{exp}, In: []graph.Type{x}},
		{Op: slope{gelu}, In: []graph.Type{x, x}},
		{Op: affine{Factor: 2.5}, In: []graph.Type{x}},
		{Op: affine{Factor: 1, Shift: 2.5}, In: []graph.Type{x}},
		{Op: softmax{}, In: []graph.Type{x}},
		{Op: softmaxGrad{}, In: []graph.Type{x, x}},
		{Op: rmsNorm{0.1}, In: []graph.Type{x, row}},
		{Op: rmsNormGrad{0.1}, In: []graph.Type{x, row, x}},
		{Op: layerNorm{0.1}, In: []graph.Type{x, row, row}},
		{Op: layerNormGrad{0.1}, In: []graph.Type{x, row, x}},
	} {
		t.Run(s.Op.Name(), func(t *testing.T) {
			in := large(s)
			whole := launch(t, s.Op, threads, in, tensor.New(x))
			half := len(whole.Data) / 2
			for _, at := range []int{0, half} {
				part := tensor.View{Type: tensor.Of(graph.F32, largeRows/2, 1024),
					Data: whole.Data[at : at+half]}
				want := launch(t, s.Op, nil, halves(in, at, half), tensor.New(part.Type))
				if !same([]tensor.View{part}, []tensor.View{want}) {
					t.Errorf("the half from byte %d differs", at)
				}
			}
		})
	}
}

// large draws operands of which any half is as good as the other.
func large(s Sample) []tensor.View {
	var in []tensor.View
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ty := range s.In {
		v := tensor.New(ty)
		for i := range v.F32() {
			v.F32()[i] = rng.Float32()*4 - 2
		}
		in = append(in, v)
	}
	return in
}

// halves cuts operands of largeRows to half of their bytes.
func halves(in []tensor.View, at, half int) []tensor.View {
	var out []tensor.View
	for _, v := range in {
		if len(v.Data) == 2*half {
			v = tensor.View{Type: tensor.Of(graph.F32, largeRows/2, 1024),
				Data: v.Data[at : at+half]}
		}
		out = append(out, v)
	}
	return out
}

func launch(t *testing.T, op graph.Op, threads *pool.Pool, in []tensor.View,
	out tensor.View) tensor.View {
	t.Helper()
	fn, err := kernel.Lookup(kernel.CPU, op)
	if err != nil {
		t.Fatal(err)
	}
	if err := fn(op, &kernel.Call{In: in, Out: []tensor.View{out}, Pool: threads}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLargeDropout is the primitive's, whose noise depends on the place.
func TestLargeDropout(t *testing.T) {
	x := tensor.Of(graph.F32, largeRows, 1024)
	threads := pool.New(2)
	defer threads.Close()
	in := append(large(Sample{In: []graph.Type{x}}), tensor.FromI32([]int32{3, 4}, 2))
	got := launch(t, dropout{Rate: 0.25, Salt: 5}, threads, in, tensor.New(x))
	want := tensor.New(x)
	vec.Dropout(want.F32(), in[0].F32(), 0.75, streamKey([]int32{3, 4}, 5), 0)
	if !same([]tensor.View{got}, []tensor.View{want}) {
		t.Error("the noise differs")
	}
}
