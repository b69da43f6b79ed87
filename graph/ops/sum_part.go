package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// sumPart adds rows From and following, of Rows, to what a sum keeps of them: the sums
// of Blocks blocks of rows. Operand 0 is what it has kept so far, unless From is zero.
type sumPart struct{ Rows, From, Blocks int }

func (sumPart) Name() string { return "sum-part" }

// part are the rows among the operands.
func (o sumPart) part(in []graph.Type) graph.Type { return in[len(in)-1] }

func (o sumPart) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := want(in[:min(1, len(in))], graph.F32); err != nil {
		return nil, err
	}
	operands := 1 + min(1, max(0, o.From))
	if err := arity(in, operands); err != nil {
		return nil, err
	}
	x := o.part(in)
	if x.DType != graph.F32 || x.Rank() == 0 || o.From < 0 || o.Blocks < 1 ||
		o.Rows < o.Blocks || x.Size(0) > o.Rows-o.From {
		return nil, fmt.Errorf("rows %s from %d on, of %d in %d blocks", x, o.From, o.Rows,
			o.Blocks)
	}
	sums := graph.RowsOf(x, 1, o.Blocks)
	if o.From > 0 && !in[0].Equal(sums) {
		return nil, fmt.Errorf("%s are added to %s, want %s", x, in[0], sums)
	}
	return []graph.Type{sums}, nil
}

func (o sumPart) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(o.part(in).Elems()), Bytes: bytes(in, out)}
}

// InPlace: blocks are added to where they are.
func (o sumPart) InPlace(_, _ []graph.Type) []int {
	if o.From == 0 {
		return nil
	}
	return []int{0}
}

// VJP: a row's gradient is that of its block.
func (o sumPart) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	d := dout[0]
	var parts []graph.Value
	x := n.In[len(n.In)-1].Type()
	for b := range o.Blocks {
		lo, hi := o.rows(b, x.Size(0))
		if lo < hi {
			rows := graph.RowsOf(x, 1, hi-lo)
			parts = append(parts, BroadcastTo(Slice(d, 0, b, b+1), rows.Sizes()...))
		}
	}
	grads := []graph.Value{Concat(0, parts...)}
	if o.From > 0 {
		begun := o.begun()
		kept := Pad(Slice(d, 0, 0, begun), 0, 0, o.Blocks-begun)
		grads = append([]graph.Value{kept}, grads...)
	}
	return grads
}

// begun is the number of blocks with rows before From: what is kept of others is not
// looked at.
func (o sumPart) begun() int {
	n := 0
	for n < o.Blocks {
		if first, _ := block(n, o.Blocks, o.Rows); first >= o.From {
			break
		}
		n++
	}
	return n
}

// rows are those of block b among count rows from From on.
func (o sumPart) rows(b, count int) (lo, hi int) {
	lo, hi = block(b, o.Blocks, o.Rows)
	return max(0, lo-o.From), min(count, hi-o.From)
}

func sumPartCPU(o sumPart, c *kernel.Call) error {
	x, out := c.In[len(c.In)-1], c.Out[0]
	if kept := c.In[0].Data; o.From > 0 && &kept[0] != &out.Data[0] {
		copy(out.Data, kept)
	}
	rows, sums, n, begun := x.F32(), out.F32(), len(out.F32())/o.Blocks, o.begun()
	c.Pool.Run(o.Blocks, func(b int) {
		acc := sums[b*n : (b+1)*n]
		lo, hi := o.rows(b, x.Type.Size(0))
		switch {
		case b < begun:
		case lo < hi:
			copy(acc, rows[lo*n:(lo+1)*n])
			lo++
		default:
			clear(acc)
		}
		for ; lo < hi; lo++ {
			vec.Add(acc, acc, rows[lo*n:(lo+1)*n])
		}
	})
	return nil
}

// Cut is between sums, or between the rows that are added up, if they are added one after the
// other.
func (s sum) Cut(in, out []graph.Type) (graph.Cut, bool) {
	r := s.geometry(in[0])
	if s.Lo > 0 {
		c, ok := cutRows(in, out, s.Lo)
		blocks := func(sums int) int {
			return s.merged().geometry(graph.RowsOf(in[0], s.Lo, sums)).blocks
		}
		for ok && blocks(c.Least) != r.blocks { // of few sums rows are added in more blocks
			c.Least++
		}
		return c, ok
	}
	if s.Keep || 2*r.inner <= narrow {
		return graph.Cut{}, false
	}
	c, ok := cutRows(in, in, s.Hi)
	c.Out[0] = 0
	c.Sum = graph.RowsOf(in[0], s.Hi, r.blocks)
	c.Finish = sum{Hi: 1}
	return c, ok
}

// merged is the sum where the axes before are merged into one.
func (s sum) merged() sum { return sum{Lo: 1, Hi: s.Hi - s.Lo + 1, Keep: s.Keep} }

// Part is some of the sums, or adds rows to those of their blocks.
func (s sum) Part(in, _ []graph.Type, lo, _ int) graph.Op {
	if s.Lo > 0 {
		return s.merged()
	}
	r := s.geometry(in[0])
	return sumPart{Rows: r.n, From: lo, Blocks: r.blocks}
}

func init() {
	kernel.Register(kernel.CPU, sumPartCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: sumPart{Rows: 11, Blocks: 2}, In: []graph.Type{f(7, 3)}, Second: true},
		Sample{Op: sumPart{Rows: 11, From: 2, Blocks: 3}, In: []graph.Type{f(3, 2, 5), f(7, 2, 5)},
			Second: true},
		Sample{Op: sum{Lo: 0, Hi: 2}, In: []graph.Type{f(30, 20, 130)}, Second: true, Eps: 1e-1},
	)
}
