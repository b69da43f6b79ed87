package split_test

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
)

// images builds a residual network of two convolutions with norms over the batch, with gradients.
func images(batch, side, channels int, layerNorm, pooled, more bool) step {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, batch, 3, side, side))
	var vars []graph.Value
	weights := func(name string, scale float32, sizes ...int) graph.Value {
		v := g.Variable(name, tensor.Of(graph.F32, sizes...), graph.Init{Scale: float64(scale)})
		vars = append(vars, v)
		return v
	}
	norm := func(name string, v graph.Value) graph.Value {
		scale, bias := weights(name+"/scale", 1, channels), weights(name+"/bias", 0, channels)
		if layerNorm {
			return ops.LayerNormOver(v, scale, bias, 1, 1e-5)
		}
		y, mean, variance := ops.BatchNorm(v, scale, bias, 1e-5)
		if more {
			y = ops.Add(y, ops.Sum(ops.Mul(mean, variance)))
		}
		return y
	}
	stem := ops.Conv2D(x, weights("stem", 1, channels, 3, 3, 3), ops.Conv{Pad: ops.SamePad(3)})
	h := ops.Relu(norm("first", stem))
	if pooled {
		h = ops.MaxPool2D(h, ops.Window{Size: [2]int{3, 3}, Stride: [2]int{1, 1},
			Pad: ops.SamePad(3)})
	}
	h = ops.Conv2D(h, weights("one", 1, channels, channels, 1, 1), ops.Conv{})
	h = ops.Add(h, weights("shift", 1, channels, 1, 1))
	h = ops.Relu(ops.Add(norm("second", h), stem))
	loss := ops.Mean(ops.Square(ops.GlobalMean(h)))
	s := step{g: g, fetches: []graph.Value{loss}}
	lr := g.Constant("lr", tensor.FromF32([]float32{0.5}))
	for i, d := range autodiff.Grad(loss, vars...) {
		s.updates = append(s.updates, ops.SGD(vars[i], d, lr).ID)
	}
	return s
}

// TestImages: convolutions, norms over a batch, windows and their gradients are cut between images,
// with the bits of the whole.
func TestImages(t *testing.T) {
	staged, parts := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := images(rapid.IntRange(2, 9).Draw(t, "batch"),
			rapid.SampledFrom([]int{5, 11, 17}).Draw(t, "side"),
			rapid.SampledFrom([]int{2, 5, 70}).Draw(t, "channels"),
			rapid.Bool().Draw(t, "layer norm"), rapid.Bool().Draw(t, "pooled"),
			rapid.Bool().Draw(t, "statistics are read"))
		if s.g.Err() != nil {
			t.Fatal(s.g.Err())
		}
		if rapid.Bool().Draw(t, "fused") {
			s = s.fused(t)
		}
		after := s.split(t, s.most()/rapid.Int64Range(1, 8).Draw(t, "limit"))
		text := after.text(t)
		staged += strings.Count(text, "batch-moments")
		parts += strings.Count(text, "conv2d_filter_grad-part")
		if after.most() > s.most() {
			t.Fatalf("an operation needs %d bytes, and split %d", s.most(), after.most())
		}
		if !bytes.Equal(s.run(t, 12), after.run(t, 12)) {
			t.Fatal("the split graph gives other bits")
		}
	})
	if staged == 0 || parts == 0 {
		t.Errorf("%d norms were in stages, and %d parts of filters' gradients", staged, parts)
	}
}

// TestImagesNeedLess: no operation needs half of what the neediest did before its images were cut.
func TestImagesNeedLess(t *testing.T) {
	s := images(32, 40, 8, false, true, false)
	after := s.split(t, s.most()/8)
	if after.most() > s.most()/2 {
		t.Errorf("an operation needs %d of %d bytes", after.most(), s.most())
	}
}
