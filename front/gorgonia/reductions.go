package gorgonia

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
)

// sum is over axes, all if none are given.
func sum(_ *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	return ops.Sum(in[0], f.list("along")...), nil
}

// largest is over axes, all if none are given.
func largest(_ *translation, _ *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	return ops.Max(in[0], f.list("along")...), nil
}

// size is how many elements an axis has.
func size(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	of, err := typeOf(n)
	if err != nil {
		return in[0], err
	}
	many := 1
	if axis := f.whole("axis"); axis < in[0].Type().Rank() {
		many = in[0].Type().Size(axis)
	}
	return ops.Cast(t.scalar(graph.F64, float64(many)), of.DType), nil
}

// softmax is along an axis, the last if none is given, or its logarithm.
func softmax(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	x, axis := in[0], f.whole("axis")
	rank := x.Type().Rank()
	if axis < 0 {
		axis = rank - 1
		if s := n.Shape(); s.IsColVec() {
			axis = 0
		}
	}
	var perm []int
	for a := range rank {
		if a != axis {
			perm = append(perm, a)
		}
	}
	perm = append(perm, axis)
	back := make([]int, rank)
	for i, a := range perm {
		back[a] = i
	}
	return turned(softmaxes(turned(x, perm), f.flag("isLog")), back), nil
}

// softmaxes is that along the last axis.
func softmaxes(x graph.Value, log bool) graph.Value {
	switch f32 := x.Type().DType == graph.F32; {
	case f32 && log:
		return ops.LogSoftmax(x)
	case f32:
		return ops.Softmax(x)
	}
	sizes := x.Type().Sizes()
	sizes[len(sizes)-1] = 1
	x = ops.Sub(x, ops.StopGradient(ops.ReshapeSizes(ops.Max(x, -1), sizes...)))
	e := ops.Exp(x)
	total := ops.SumKeep(e, -1)
	if log {
		return ops.Sub(x, ops.Log(total))
	}
	return ops.Div(e, total)
}
