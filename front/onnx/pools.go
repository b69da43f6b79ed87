package onnx

import (
	"maps"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// pooled are the windows over operand 0, an image.
func pooled(n *node) ops.Pool {
	sizes := n.x(0).Type().Sizes()
	if len(sizes) < 3 {
		fail("%s is no image", n.x(0).Type())
	}
	ceil := n.flag("ceil_mode", false) && n.text("auto_pad", "NOTSET") == "NOTSET"
	s := fitted(n, sizes[2:], n.list("kernel_shape"))
	return ops.Pool{Size: s.kernel, Stride: s.stride, Dilation: s.dilation, Before: s.before,
		After: s.after, Ceil: ceil, CountPad: n.flag("count_include_pad", false)}
}

// maxPool is of elements that f32 has.
func maxPool(n *node) {
	x, p := n.x(0), pooled(n)
	columns := n.flag("storage_order", false)
	d := x.Type().DType
	if d == graph.F64 || d.Integer() && d.Size() > 2 {
		fail("its operand is %s: want numbers of f32", x.Type())
	}
	if n.wants(1) {
		y, at := ops.MaxPoolIndices(ops.Cast(x, graph.F32), p)
		if columns {
			at = byColumns(at, x.Type())
		}
		n.give(ops.Cast(y, d), at)
		return
	}
	n.give(ops.Cast(ops.MaxPool(ops.Cast(x, graph.F32), p), d))
}

// byColumns are places of elements that are counted down the columns of images.
func byColumns(at value, t graph.Type) value {
	if t.Rank() != 4 {
		fail("%s has no columns", t)
	}
	h, w := like(at, float64(t.Size(2))), like(at, float64(t.Size(3)))
	plane := ops.Div(at, ops.Mul(h, w))
	within := ops.Mod(at, ops.Mul(h, w))
	down := ops.Add(ops.Mul(ops.Mod(within, w), h), ops.Div(within, w))
	return ops.Add(ops.Mul(plane, ops.Mul(h, w)), down)
}

// maxUnpool puts elements where they were in an image, which may be part of a larger one.
func maxUnpool(n *node) {
	x := n.x(0)
	rank := x.Type().Rank()
	kernel, strides, pads := n.list("kernel_shape"), n.list("strides"), n.list("pads")
	sizes := slices.Clone(x.Type().Sizes())
	for i := 2; i < rank; i++ {
		stride, border := 1, 0
		if strides != nil {
			stride = strides[i-2]
		}
		if pads != nil {
			border = pads[i-2] + pads[i-2+rank-2]
		}
		sizes[i] = (sizes[i]-1)*stride - border + kernel[i-2]
	}
	y := ops.MaxUnpool(x, n.x(1), sizes...)
	if n.has(2) {
		for i, s := range n.ints(2) {
			if s < sizes[i] {
				y = ops.Slice(y, i, 0, s)
			} else if s > sizes[i] {
				y = filled(y, i, 0, s-sizes[i], like(y, 0))
			}
		}
	}
	n.give(y)
}

// gridSample is of 2-D images.
func gridSample(n *node) {
	modes := map[string]ops.GridMode{"linear": ops.GridBilinear, "bilinear": ops.GridBilinear,
		"nearest": ops.GridNearest, "cubic": ops.GridBicubic, "bicubic": ops.GridBicubic}
	beyond := map[string]ops.GridOutside{"zeros": ops.GridZeros, "border": ops.GridBorder,
		"reflection": ops.GridReflection}
	mode, outside := n.text("mode", "linear"), n.text("padding_mode", "zeros")
	n.only("mode", mode, slices.Sorted(maps.Keys(modes))...)
	n.only("padding_mode", outside, slices.Sorted(maps.Keys(beyond))...)
	if t := n.x(0).Type(); t.Rank() != 4 {
		fail("%s is no batch of images of two axes", t)
	}
	n.give(n.narrow(ops.GridSample(n.wide(0), n.wide(1), ops.Grid{Mode: modes[mode],
		Outside: beyond[outside], AlignCorners: n.flag("align_corners", false)})))
}

func averagePool(n *node) { n.give(n.narrow(ops.AvgPool(n.wide(0), pooled(n)))) }

func lpPool(n *node) { n.give(n.narrow(ops.LpPool(n.wide(0), order(n), pooled(n)))) }

// order is that of a norm.
func order(n *node) int {
	if n.version() >= 2 {
		return n.int("p", 2)
	}
	p := n.float("p", 2)
	if p != float32(int(p)) {
		fail("p is %v: want an integer", p)
	}
	return int(p)
}
