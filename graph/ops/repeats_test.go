package ops_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// TestRepeats: what says that it repeats its operands has the same bits whether or not they have
// been repeated before, of every operand and along every axis, as long as the type is the same.
func TestRepeats(t *testing.T) {
	tried := 0
	for _, s := range ops.Samples() {
		for i := range s.In {
			if !ops.Repeats(s.Op) || len(s.In) < 2 {
				continue
			}
			for axis := range s.In[i].Rank() {
				if once, whole, ok := repeatedAlong(t, s, i, axis); ok {
					tried++
					if !bytes.Equal(once, whole) {
						t.Errorf("%#v has other bits of operand %d along %d", s.Op, i, axis)
					}
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d operands were tried", tried)
	}
}

// repeatedAlong is what a sample gives of operand i with one element along an axis, and repeated.
func repeatedAlong(t *testing.T, s ops.Sample, i, axis int) (once, whole []byte, ok bool) {
	g := graph.New()
	var in []graph.Value
	for k, typ := range s.In {
		sizes := typ.Sizes()
		if k == i {
			sizes[axis] = 1
		}
		x := tensor.New(tensor.Of(graph.F32, sizes...))
		for j := range x.F32() {
			x.F32()[j] = float32((j*7+k*3)%5) + 1
		}
		in = append(in, g.Constant("x", x.As(typ.DType)))
	}
	first := g.Apply(s.Op, slices.Clone(in)...)
	in[i] = ops.BroadcastTo(in[i], s.In[i].Sizes()...)
	second := g.Apply(s.Op, in...)
	if g.Err() != nil || !first.Out[0].Equal(second.Out[0]) {
		return nil, nil, false
	}
	got, err := reference.Values(g, first.Value(0), second.Value(0))
	if err != nil {
		t.Fatal(err)
	}
	return got[0].Data, got[1].Data, true
}
