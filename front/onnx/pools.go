package onnx

import (
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
	if n.int("storage_order", 0) != 0 || n.wants(1) {
		fail("where the largest elements are is not known")
	}
	d := x.Type().DType
	if d == graph.F64 || d.Integer() && d.Size() > 2 {
		fail("its operand is %s: want numbers of f32", x.Type())
	}
	n.give(ops.Cast(ops.MaxPool(ops.Cast(x, graph.F32), p), d))
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
