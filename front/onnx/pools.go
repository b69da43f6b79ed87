package onnx

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// pooled are the windows over operand 0, an image.
func pooled(n *node) sliding {
	sizes := n.x(0).Type().Sizes()
	if len(sizes) < 3 {
		fail("%s is no image", n.x(0).Type())
	}
	return windows(n, sizes[2:], n.list("kernel_shape"), n.flag("ceil_mode", false))
}

// maxPool is of elements that f32 has, along one axis after the other if windows have more axes
// than two, or gaps.
func maxPool(n *node) {
	x, s := n.x(0), pooled(n)
	if n.int("storage_order", 0) != 0 || n.wants(1) {
		fail("where the largest elements are is not known")
	}
	d := x.Type().DType
	if d == graph.F64 || d.Integer() && d.Size() > 2 {
		fail("its operand is %s: want numbers of f32", x.Type())
	}
	x = ops.Cast(x, graph.F32)
	if s.flat() {
		y := twoAxes(x, func(x value) value { return ops.MaxPool2D(x, s.window()) })
		n.give(ops.Cast(y, d))
		return
	}
	for i := range s.have {
		x = filled(x, 2+i, s.before[i], s.reach(i), like(x, math.Inf(-1)))
		var most value
		for k := range s.kernel[i] {
			lo := k * s.dilation[i]
			part := ops.SliceStep(x, 2+i, lo, lo+(s.want[i]-1)*s.stride[i]+1, s.stride[i])
			if most.Valid() {
				part = ops.Maximum(most, part)
			}
			most = part
		}
		x = most
	}
	n.give(ops.Cast(x, d))
}

// averagePool has means of windows: of the elements inside the image, or, if pads count, of those
// of the image with its pads.
func averagePool(n *node) {
	x, s, padded := n.wide(0), pooled(n), n.flag("count_include_pad", false)
	if !s.flat() {
		n.give(n.narrow(s.sums(n, x, func(i, inside, counted int) float64 {
			if padded {
				return 1 / float64(counted)
			}
			return 1 / float64(max(1, inside))
		})))
		return
	}
	if padded {
		for i := range s.have {
			x = ops.Pad(x, 2+i, s.before[i], s.after[i])
			s.have[i] += s.before[i] + s.after[i]
			s.before[i], s.after[i] = 0, 0
		}
	}
	n.give(n.narrow(twoAxes(x, func(x value) value { return ops.AvgPool2D(x, s.window()) })))
}

// sums are those of windows' elements, each along an axis by a weight that depends on how many of
// them are inside the image, and how many inside the image with its pads.
func (s sliding) sums(n *node, x value, weight func(i, inside, counted int) float64) value {
	for i, have := range s.have {
		rows := make([]map[int]float64, s.want[i])
		for o := range rows {
			rows[o] = map[int]float64{}
			counted := 0
			for k := range s.kernel[i] {
				at := o*s.stride[i] - s.before[i] + k*s.dilation[i]
				if at < have+s.after[i] {
					counted++
				}
				if at >= 0 && at < have {
					rows[o][at] = 1
				}
			}
			w := weight(i, len(rows[o]), counted)
			for at := range rows[o] {
				rows[o][at] = w
			}
		}
		x = weighed(n, x, 2+i, rows)
	}
	return x
}

// lpPool has norms of windows.
func lpPool(n *node) {
	x, s, p := n.wide(0), pooled(n), order(n)
	y := s.sums(n, ops.PowScalar(ops.Abs(x), p), func(_, _, _ int) float64 { return 1 })
	n.give(n.narrow(ops.PowScalar(y, 1/p)))
}

// order is that of a norm.
func order(n *node) float32 {
	if n.version() < 2 {
		return n.float("p", 2)
	}
	return float32(n.int("p", 2))
}
