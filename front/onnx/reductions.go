package onnx

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// reductions are operators over axes.
var reductions = each(map[string]func(n *node){
	"ReduceSum": reduce(ops.Sum, 13), "ReduceMax": reduce(ops.Max, 18),
	"ReduceMin": reduce(ops.Min, 18), "ReduceProd": reduce(ops.Prod, 18),
	"ReduceMean": reduce(meanOver, 18), "ReduceLogSumExp": reduce(ops.LogSumExp, 18),
	"ReduceL1":        reduce(over(ops.Abs, ops.Sum, nil), 18),
	"ReduceL2":        reduce(over(ops.Square, ops.Sum, ops.Sqrt), 18),
	"ReduceSumSquare": reduce(over(ops.Square, ops.Sum, nil), 18),
	"ReduceLogSum":    reduce(over(nil, ops.Sum, ops.Log), 18),
})

type reducer = func(x value, axes ...int) value

// over is a function before and one after a reduction.
func over(before unary, f reducer, after unary) reducer {
	return func(x value, axes ...int) value {
		if before != nil {
			x = before(x)
		}
		x = f(x, axes...)
		if after != nil {
			x = after(x)
		}
		return x
	}
}

func meanOver(x value, axes ...int) value {
	if x.Type().DType == graph.F32 {
		return ops.Mean(x, axes...)
	}
	y := ops.Sum(x, axes...)
	return ops.Div(y, like(y, float64(x.Type().Elems()/max(1, y.Type().Elems()))))
}

// reduce is a reduction, whose axes are an operand since a version.
func reduce(f reducer, since int64) func(n *node) {
	return func(n *node) {
		x := n.wide(0)
		keep, empty := n.flag("keepdims", true), n.flag("noop_with_empty_axes", false)
		axes := n.axes(1, since)
		if len(axes) == 0 && empty {
			axes = nil
			n.give(n.narrow(elementOf(f, x)))
			return
		}
		rank := x.Type().Rank()
		if len(axes) == 0 {
			for i := range rank {
				axes = append(axes, i)
			}
		}
		sizes := append([]int(nil), x.Type().Sizes()...)
		for i, a := range axes {
			axes[i] = axis(a, rank)
			sizes[axes[i]] = 1
		}
		y := x
		if len(axes) > 0 {
			y = f(x, axes...)
		} else {
			y = elementOf(f, x)
		}
		if keep {
			y = ops.ReshapeSizes(y, sizes...)
		}
		n.give(n.narrow(y))
	}
}

// elementOf is a reduction over no axis: of every element alone.
func elementOf(f reducer, x value) value {
	return f(ops.ExpandDims(x, -1), -1)
}
