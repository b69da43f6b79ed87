package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// TestInBF16Pieces: of any size, what is computed piece by piece has the bits of the operation in
// f32 on the same numbers, rounded once, and takes less scratch than all of them in f32.
func TestInBF16Pieces(t *testing.T) {
	pieces := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		plain := ofPieces(r)
		out, err := plain.Op.Infer(plain.In)
		if err != nil {
			r.Skip()
		}
		if checkPieces(t, r, plain, out) {
			pieces[kind(plain.Op)] = true
		}
	})
	if len(pieces) < 5 || !pieces["embeddingGrad"] {
		t.Errorf("pieces of %v", pieces)
	}
}

// checkPieces computes an operation in bfloat16 and in f32, and says whether it has pieces.
func checkPieces(t testing.TB, r rapid.TB, plain Sample, out []graph.Type) bool {
	r.Helper()
	half, o := plain, inBF16{plain.Op, 1}
	half.In = nil
	for _, ty := range plain.In {
		if ty.Rank() > 1 {
			ty.DType = graph.BF16
		}
		half.In = append(half.In, ty)
	}
	half.Op = o
	made, err := o.Infer(half.In)
	if err != nil {
		r.Fatal(err)
	}
	narrow, wide := halved(plain, half, 1)
	got := half.compute(t, narrow, nil)
	if !same(narrowed(plain.compute(t, wide, nil), got), got) {
		r.Fatalf("%+v of %v: other bits than those of f32 rounded", plain.Op, half.In)
	}
	all := plain.Op.Cost(plain.In, out).Scratch
	for i, ty := range append(append([]graph.Type{}, half.In...), made...) {
		if ty.DType == graph.BF16 {
			all += padded(append(append([]graph.Type{}, plain.In...), out...)[i].Bytes())
		}
	}
	if n := o.Cost(half.In, made).Scratch; n > all+1024 {
		r.Fatalf("%+v of %v: %d bytes of scratch, converted %d", plain.Op, half.In, n, all)
	}
	return len(o.pieces(half.In, made)) > 1
}

// TestAttentionPieces: groups of heads are computed one after the other, and with a part of the
// scratch.
func TestAttentionPieces(t *testing.T) {
	for i := range 16 {
		on := func(bit int) bool { return i>>bit&1 == 1 }
		op := attention{Scale: 0.125, Causal: on(0), HeadsFirst: on(1)}
		const groups, places, size = 5, 300, 64
		rows := func(heads int) graph.Type {
			if op.HeadsFirst {
				return tensor.Of(graph.F32, 1, heads, places, size)
			}
			return tensor.Of(graph.F32, 1, places, heads, size)
		}
		in := []graph.Type{rows(groups * (1 + flag(on(2)))), rows(groups), rows(groups)}
		if on(3) {
			op.Rate = 0.25
			in = append(in, tensor.Of(graph.I32, 2))
		}
		out, err := op.Infer(in)
		if err != nil {
			t.Fatal(err)
		}
		gradient := Sample{Op: attentionGrad{op}, In: slices.Concat(in[:3],
			[]graph.Type{out[1], out[0], out[1]}, in[3:])}
		dout, err := gradient.Op.Infer(gradient.In)
		if err != nil {
			t.Fatal(err)
		}
		if !checkPieces(t, t, Sample{Op: op, In: in}, out) ||
			!checkPieces(t, t, gradient, dout) {
			t.Errorf("%+v has no pieces", op)
		}
	}
}

// ofPieces is an operation that may be computed piece by piece.
func ofPieces(r *rapid.T) Sample {
	size := func(name string, least, most int) int {
		return rapid.IntRange(least, most).Draw(r, name)
	}
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	n, c, k := size("n", 1, 20), size("c", 1, 80), size("k", 1, 80)
	h, w := size("h", 1, 17), size("w", 1, 17)
	x := f(n, c, h, w)
	switch rapid.IntRange(0, 5).Draw(r, "kind") {
	case 0:
		return Sample{Op: batchNorm{0.1}, In: []graph.Type{x, f(c), f(c)}}
	case 1:
		return Sample{Op: batchNormGrad{0.1}, In: []graph.Type{x, f(c), f(c), f(c), x},
			Fill: fills{3: positive}}
	case 2:
		return Sample{Op: layerOver{1, 0.1}, In: []graph.Type{x, f(c), f(c)}}
	case 3:
		return Sample{Op: matMul{TransA: true}, In: []graph.Type{f(n*h, c), f(n*h, k)}}
	case 4:
		return Sample{Op: embeddingGrad{Rows: c}, Fill: fills{0: below(c)},
			In: []graph.Type{tensor.Of(graph.I32, n), f(n, k)}}
	}
	taps, stride := size("taps", 1, 3), size("stride", 1, 2)
	conv := Conv{Stride: [2]int{stride, stride}, Pad: SamePad(taps)}.defaults()
	filter := f(k, c, taps, taps)
	y, err := conv2D{conv}.Infer([]graph.Type{x, filter})
	if err != nil {
		r.Skip()
	}
	switch rapid.IntRange(0, 2).Draw(r, "of a convolution") {
	case 0:
		return Sample{Op: convInputGrad{conv, h, w}, In: []graph.Type{y[0], filter}}
	case 1:
		return Sample{Op: convFilterGrad{conv, taps, taps}, In: []graph.Type{x, y[0]}}
	}
	return Sample{Op: conv2D{conv}, In: []graph.Type{x, filter}}
}

// TestFilterPartsReadBF16: a part of the gradient of filters has gradients in f32 beside what it
// reads, and no images.
func TestFilterPartsReadBF16(t *testing.T) {
	of := Conv{Pad: SamePad(3)}.shape(4, 3, 17, 17, 5, 3, 3)
	kept, err := convFilterPart{Of: of}.kept()
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{0, 2} {
		op := convFilterPart{of, from}
		in := slices.Concat([]graph.Type{kept}[:flag(from > 0)], []graph.Type{
			tensor.Of(graph.BF16, 2, 3, 17, 17), tensor.Of(graph.BF16, 2, 5, 17, 17)})
		out := []graph.Type{kept}
		copied := padded(inF32(in)[len(in)-1].Bytes())
		plain := op.Cost(inF32(in), out).Scratch
		if n := (inBF16{op, 0}).Cost(in, out).Scratch; n > plain+copied {
			t.Errorf("from %d: %d bytes of scratch, in f32 %d and %d of gradients", from, n, plain,
				copied)
		}
	}
}
