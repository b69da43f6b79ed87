package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/shapeinference"
)

// windows are the operations of windows that move over values.
type windows struct{ *computation }

// moving is how a window of some size moves, whose strides are by default its sizes.
func moving(size, strides, dilations []int, paddings [][2]int) hlo.Moving {
	m := hlo.Moving{Size: size}
	for i, n := range size {
		m.Stride = append(m.Stride, at(strides, i, n))
		m.Dilation = append(m.Dilation, at(dilations, i, 1))
		var pad [2]int
		if len(paddings) > 0 {
			pad = paddings[i]
		}
		m.Lo, m.Hi = append(m.Lo, pad[0]), append(m.Hi, pad[1])
	}
	return m
}

// ReduceWindow puts the elements of every place of a window together.
func (c windows) ReduceWindow(x backends.Op, kind backends.ReduceOpType, size, strides, spread,
	dilations []int, paddings [][2]int) (backends.Op, error) {
	const t = backends.OpTypeReduceWindow
	v, err := c.values(t, x)
	if err != nil {
		return nil, err
	}
	_, err = shapeinference.ReduceWindowOp(shapeOf(v[0].Type()), size, strides, spread, dilations,
		paddings)
	if err != nil {
		return nil, err
	}
	how, ok := kinds(v[0].Type().DType)[kind]
	if !ok {
		return c.made(t, graph.Value{}, fmt.Errorf("%s of %s", kind, v[0].Type()))
	}
	if len(size) == 0 {
		size = slices.Repeat([]int{1}, v[0].Type().Rank())
	}
	m := moving(size, strides, dilations, paddings)
	return c.made(t, inF32(func(v ...graph.Value) graph.Value {
		fill := v[0].Graph().Constant("neutral", hlo.Neutral(how, v[0].Type().DType))
		return hlo.Window(how, spreadOut(v[0], fill, spread), m)
	}, v...), nil)
}

// kinds are the ways of ReduceWindow that an element type has.
func kinds(d graph.DType) map[backends.ReduceOpType]hlo.How {
	if d == graph.Bool {
		return map[backends.ReduceOpType]hlo.How{backends.ReduceOpMax: hlo.Or,
			backends.ReduceOpMin: hlo.And}
	}
	return map[backends.ReduceOpType]hlo.How{backends.ReduceOpSum: hlo.Sum,
		backends.ReduceOpProduct: hlo.Product, backends.ReduceOpMax: hlo.Max,
		backends.ReduceOpMin: hlo.Min}
}

// inF32 makes an operation of 16-bit floating-point numbers in f32.
func inF32(f func(...graph.Value) graph.Value, v ...graph.Value) graph.Value {
	d := v[0].Type().DType
	if !small(d) {
		return f(v...)
	}
	var wide []graph.Value
	for _, x := range v {
		if x.Type().DType == d {
			x = ops.Cast(x, graph.F32)
		}
		wide = append(wide, x)
	}
	return ops.Cast(f(wide...), d)
}

// spreadOut is x with elements put between its own along its last axes, so that these are as far
// apart as dilations say.
func spreadOut(x, fill graph.Value, dilations []int) graph.Value {
	inner := make([]int, x.Type().Rank())
	for i, d := range dilations {
		inner[len(inner)-len(dilations)+i] = d - 1
	}
	if !slices.ContainsFunc(inner, func(n int) bool { return n != 0 }) {
		return x
	}
	none := make([]int, len(inner))
	return hlo.Pad(x, fill, none, none, inner)
}

// SelectAndScatterMax adds the elements of source where the largest element is of each place of a
// window over x.
func (c windows) SelectAndScatterMax(x, source backends.Op, size, strides []int,
	paddings [][2]int) (backends.Op, error) {
	return c.choose(backends.OpTypeSelectAndScatterMax, x, source, size, strides, paddings, false)
}

// SelectAndScatterMin is SelectAndScatterMax of the smallest element.
func (c windows) SelectAndScatterMin(x, source backends.Op, size, strides []int,
	paddings [][2]int) (backends.Op, error) {
	return c.choose(backends.OpTypeSelectAndScatterMin, x, source, size, strides, paddings, true)
}

func (c windows) choose(t backends.OpType, x, source backends.Op, size, strides []int,
	paddings [][2]int, least bool) (backends.Op, error) {
	v, err := c.values(t, x, source)
	if err != nil {
		return nil, err
	}
	_, err = shapeinference.ReduceWindowOp(shapeOf(v[0].Type()), size, strides, nil, nil, paddings)
	if err != nil {
		return nil, err
	}
	m := moving(size, strides, nil, paddings)
	return c.made(t, inF32(func(v ...graph.Value) graph.Value {
		return hlo.Select(v[0], v[1], m, least)
	}, v...), nil)
}

// ConvGeneral is a convolution over any axes, in any order of them, in groups of channels or of
// the batch.
func (c windows) ConvGeneral(x, kernel backends.Op, axes backends.ConvolveAxesConfig,
	strides []int, paddings [][2]int, spread, dilations []int, channelGroups, batchGroups int) (
	backends.Op, error) {
	const t = backends.OpTypeConvGeneral
	v, err := c.values(t, x, kernel)
	if err != nil {
		return nil, err
	}
	if len(strides) == 0 {
		strides = slices.Repeat([]int{1}, len(axes.InputSpatial))
	}
	channelGroups, batchGroups = max(channelGroups, 1), max(batchGroups, 1)
	out, err := shapeinference.ConvGeneralOp(shapeOf(v[0].Type()), shapeOf(v[1].Type()), axes,
		strides, paddings, spread, dilations, channelGroups, batchGroups)
	if err != nil {
		return nil, err
	}
	order := slices.Concat([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial)
	filters := slices.Concat([]int{axes.KernelOutputChannels, axes.KernelInputChannels},
		axes.KernelSpatial)
	images := ordered(v[0], order)
	if batchGroups > 1 {
		images, channelGroups = batchAsChannels(images, batchGroups), batchGroups
	}
	w := ordered(v[1], filters)
	m := moving(w.Type().Sizes()[2:], strides, dilations, paddings)
	made := inF32(func(v ...graph.Value) graph.Value {
		images := spreadOut(v[0], scalar(v[0], 0), spread)
		return convolved(images, v[1], m, channelGroups)
	}, images, w)
	back := make([]int, out.Rank())
	places := slices.Concat([]int{axes.OutputBatch, axes.OutputChannels}, axes.OutputSpatial)
	for i, a := range places {
		back[a] = i
	}
	return c.made(t, ordered(made, back), nil)
}

// batchAsChannels makes groups of a batch groups of channels: [groups·n c …] → [n groups·c …].
func batchAsChannels(x graph.Value, groups int) graph.Value {
	sizes := x.Type().Sizes()
	n, c, rest := sizes[0]/groups, sizes[1], sizes[2:]
	x = ops.ReshapeSizes(x, slices.Concat([]int{groups, n, c}, rest)...)
	order := []int{1, 0, 2}
	for i := range rest {
		order = append(order, 3+i)
	}
	sizes = slices.Concat([]int{n, groups * c}, rest)
	return ops.ReshapeSizes(ops.Transpose(x, order...), sizes...)
}

// convolved is the convolution of x [n c s…] with filters w [o c/groups k…]: that of graph/ops
// over one axis and two of f32, which takes no negative padding.
func convolved(x, w graph.Value, m hlo.Moving, groups int) graph.Value {
	axes := len(m.Size)
	negative := func(n int) bool { return n < 0 }
	if x.Type().DType != graph.F32 || axes > 2 || x.Type().Elems() == 0 ||
		slices.ContainsFunc(slices.Concat(m.Lo, m.Hi), negative) {
		return hlo.Convolve(x, w, m, groups)
	}
	if axes == 1 {
		wide := hlo.Moving{Size: append([]int{1}, m.Size...), Stride: append([]int{1}, m.Stride...),
			Dilation: append([]int{1}, m.Dilation...), Lo: append([]int{0}, m.Lo...),
			Hi: append([]int{0}, m.Hi...)}
		return ops.Squeeze(convolved(ops.ExpandDims(x, 2), ops.ExpandDims(w, 2), wide, groups), 2)
	}
	return ops.Conv2D(x, w, ops.Conv{Stride: [2]int(m.Stride), Dilation: [2]int(m.Dilation),
		Pad: [4]int{m.Lo[0], m.Lo[1], m.Hi[0], m.Hi[1]}, Groups: groups})
}
