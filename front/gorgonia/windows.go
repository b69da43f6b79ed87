package gorgonia

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
)

// im2col is, for every place of a filter, what it covers: [n c h w] → [n oh ow c·kh·kw].
func im2col(_ *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x := in[0]
	for axis, name := range map[int]string{2: "padH", 3: "padW"} {
		if p := f.whole(name); p > 0 {
			x = ops.Pad(x, axis, p, p)
		}
	}
	out := n.Shape()
	var covered []graph.Value
	for i := range f.whole("h") {
		rows := strided(x, 2, i*f.whole("dilationH"), out[1], f.whole("strideH"))
		for j := range f.whole("w") {
			covered = append(covered,
				strided(rows, 3, j*f.whole("dilationW"), out[2], f.whole("strideW")))
		}
	}
	return ops.Transpose(ops.Stack(covered...), 1, 3, 4, 2, 0), nil
}

// strided is so many elements along an axis, the first and every step-th.
func strided(x graph.Value, axis, first, many, step int) graph.Value {
	return ops.SliceStep(x, axis, first, first+(many-1)*step+1, step)
}

// convolution is the one that ends with a node: a product of what im2col gives with filters, with
// the channels put second. It is of f32, which gomem has convolutions of.
func (t *translation) convolution(n *G.Node, perm []int) (y graph.Value, ok bool) {
	if n.Dtype() != G.Float32 || !slices.Equal(perm, []int{0, 3, 1, 2}) {
		return y, false
	}
	back, ok := only(n, "reshapeOp")
	if !ok {
		return y, false
	}
	multiplied, ok := only(back, "linAlgBinOp")
	if !ok {
		return y, false
	}
	f := read(multiplied.Op())
	of := operands(multiplied)
	if f.whole("āBinaryOperator") != 0 || f.flag("transA") || !f.flag("transB") {
		return y, false
	}
	columns, ok := only(of[0], "im2colOp")
	if !ok || !is(of[0], "reshapeOp") || !is(of[1], "reshapeOp") {
		return y, false
	}
	x, w := t.values[operands(columns)[0]], t.values[operands(of[1])[0]]
	c := read(columns.Op())
	places, filters := columns.Shape(), w.Type().Sizes()
	if len(filters) != 4 || filters[1] != x.Type().Size(1) || filters[2] != c.whole("h") ||
		filters[3] != c.whole("w") || of[1].Shape()[0] != filters[0] ||
		!back.Shape().Eq([]int{places[0], places[1], places[2], filters[0]}) {
		return y, false
	}
	h, v := c.whole("padW"), c.whole("padH")
	return ops.Conv2D(x, w, ops.Conv{Pad: [4]int{v, h, v, h},
		Stride:   [2]int{c.whole("strideH"), c.whole("strideW")},
		Dilation: [2]int{c.whole("dilationH"), c.whole("dilationW")}}), true
}

// is reports whether a node has an operation of a type.
func is(n *G.Node, kind string) bool {
	return n.Op() != nil && read(n.Op()).of.Type().Name() == kind
}

// only is a node's first operand, if that has an operation of a type.
func only(n *G.Node, kind string) (*G.Node, bool) {
	of := operands(n)
	if len(of) == 0 || !is(of[0], kind) {
		return nil, false
	}
	return of[0], true
}

// window is that of a pool, whose first one begins where Gorgonia's does: of padding that is given
// for all four sides it takes that below and right for above and left.
func window(n *G.Node, f *fields, x graph.Type) ops.Window {
	w := ops.Window{Size: [2]int{f.whole("h"), f.whole("w")},
		Stride: [2]int{f.whole("strideH"), f.whole("strideW")},
		Pad: [4]int{f.whole("padNorth"), f.whole("padWest"), f.whole("padSouth"),
			f.whole("padEast")}}
	if f.flag("explicitPadding") {
		w.Pad = [4]int{w.Pad[2], w.Pad[3], w.Pad[0], w.Pad[1]}
	}
	for i := range 2 { // as far as the last window reaches
		reach := (n.Shape()[2+i]-1)*w.Stride[i] + w.Size[i]
		w.Pad[2+i] = max(0, reach-w.Pad[i]-x.Size(2+i))
	}
	return w
}

// maxPool is the largest element of every window.
func maxPool(_ *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	if d := in[0].Type().DType; d != graph.F32 {
		return in[0], refusal(fmt.Sprintf("of %s: pools are of f32", d))
	}
	return ops.MaxPool2D(in[0], window(n, f, in[0].Type())), nil
}

// avgPool is the sum of every window, divided by the image's width, as Gorgonia does.
func avgPool(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x := in[0]
	if d := x.Type().DType; d != graph.F32 {
		return x, refusal(fmt.Sprintf("of %s: pools are of f32", d))
	}
	w := window(n, f, x.Type())
	y := ops.AvgPool(x, ops.Pool{Size: w.Size[:], Stride: w.Stride[:], Before: w.Pad[:2],
		After: w.Pad[2:], CountPad: true})
	of := float64(w.Size[0]*w.Size[1]) / float64(x.Type().Size(3))
	return ops.Mul(y, t.scalar(graph.F32, of)), nil
}

// globalPool is the mean of every channel of every image.
func globalPool(_ *translation, _ *G.Node, _ *fields, in []graph.Value) (graph.Value, error) {
	return ops.Mean(in[0], 2, 3), nil
}
