package ops

import (
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// TestPartsAddUpAsTheWhole: a part has as many rows as are added up in the order of the whole,
// where fewer are not.
func TestPartsAddUpAsTheWhole(t *testing.T) {
	s := sum{Lo: 1, Hi: 2}
	in := []graph.Type{tensor.Of(graph.F32, 64, 1<<16, 2)}
	blocks := func(rows int) int { return s.geometry(graph.RowsOf(in[0], 1, rows)).blocks }
	c, ok := s.Cut(in, []graph.Type{tensor.Of(graph.F32, 64, 2)})
	if !ok || c.Least < 2 || blocks(c.Least) != blocks(64) || blocks(c.Least-1) == blocks(64) {
		t.Errorf("a part has %d of 64 sums or more", c.Least)
	}
	o := Conv{Pad: [4]int{4, 4, 4, 4}, Stride: [2]int{2, 2}}
	of := o.shape(40, 17, 3, 3, 64, 8, 8)
	in = []graph.Type{tensor.Of(graph.F32, 40, 17, 3, 3), tensor.Of(graph.F32, 64, 17, 8, 8)}
	c, ok = conv2D{o.defaults()}.Cut(in, []graph.Type{tensor.Of(graph.F32, 40, 64, 2, 2)})
	part, fewer := of, of
	part.Batch, fewer.Batch = c.Least, c.Least-1
	if !ok || c.Least < 2 || conv.OrderForward(part) != conv.OrderForward(of) ||
		conv.OrderForward(fewer) == conv.OrderForward(of) {
		t.Errorf("a part has %d of 40 images or more", c.Least)
	}
}
