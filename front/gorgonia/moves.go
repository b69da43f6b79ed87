package gorgonia

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// at is an element as a scalar.
func at(t *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x := in[0]
	for axis, i := range f.list("coordinates") {
		x = ops.Slice(x, axis, i, i+1)
	}
	return t.shaped(x, nil), nil
}

// slice is a part along an axis, which is dropped if the part is one element.
func slice(_ *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	op, ok := n.Op().(tensor.Slice)
	if s := f.of.FieldByName("Slice"); !ok || !s.IsValid() || s.IsNil() || op.End() <= op.Start() {
		return in[0], nil // all of the axis
	}
	axis := f.whole("along")
	if op.Step() > 1 {
		return ops.SliceStep(in[0], axis, op.Start(), op.End(), op.Step()), nil
	}
	return ops.Slice(in[0], axis, op.Start(), op.End()), nil
}

// repeated has every element along an axis several times. An axis that a vector or a scalar has
// not has one element.
func repeated(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x, axis, to := in[0], f.whole("along"), n.Shape()
	sizes := x.Type().Sizes()
	for len(sizes) < len(to) {
		sizes = append(sizes, 1)
	}
	x = t.shaped(x, sizes)
	if sizes[axis] == to[axis] {
		return x, nil
	}
	if sizes[axis] != 1 {
		return ops.Repeat(x, axis, to[axis]/sizes[axis]), nil
	}
	y := ops.BroadcastTo(x, to...)
	t.spread[y] = x
	if small, ok := t.spread[x]; ok {
		t.spread[y] = small
	}
	return y, nil
}

// transposed has the axes in another order. The last step of a convolution is one.
func transposed(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	perm := f.list("pattern")
	if y, ok := t.convolution(n, perm); ok {
		return y, nil
	}
	return turned(in[0], perm), nil
}

// joined are values, one after the other along an axis.
func joined(_ *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	return ops.Concat(f.whole("axis"), in...), nil
}

// reshaped has other sizes: the node's, which it is given in any case.
func reshaped(_ *translation, _ *G.Node, _ *fields, in []graph.Value) (graph.Value, error) {
	return in[0], nil
}

// byIndices is what is at some places along an axis.
func byIndices(t *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	if d := in[0].Type().DType; d != graph.F32 {
		return in[0], refusal(fmt.Sprintf("of %s: what is taken by indices is f32", d))
	}
	places := ops.Cast(t.shaped(in[1], []int{in[1].Type().Elems()}), graph.I32)
	return ops.Take(in[0], places, f.whole("axis")), nil
}

// upsampled has every pixel several times in both directions.
func upsampled(_ *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	times := f.whole("stride") + 1
	return ops.Repeat(ops.Repeat(in[0], 2, times), 3, times), nil
}
