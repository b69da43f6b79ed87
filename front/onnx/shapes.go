package onnx

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// shapes are operators that make, move or join elements.
var shapes = each(map[string]func(n *node){
	"Constant": constant, "ConstantOfShape": constantOfShape, "Range": spaced, "EyeLike": eyeLike,
	"Shape": shape, "Size": func(n *node) { n.giveKnown(longs(nil, n.x(0).Type().Elems())) },
	"Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
	"Transpose": transpose, "Concat": concat, "Split": split, "Slice": slice, "Pad": pad,
	"Expand": expand, "Tile": tile, "Trilu": trilu, "CenterCropPad": centerCropPad,
	"DepthToSpace": depthToSpace, "SpaceToDepth": spaceToDepth,
})

// dtype is the element type of an attribute.
func dtype(v int) (graph.DType, error) { return onnx.DataType(v).DType() }

// longs are known integers, of sizes; of nil, one of them is a scalar.
func longs(sizes []int, v ...int) tensor.View {
	out := tensor.New(tensor.Of(tensor.I64, sizes...))
	for i, x := range v {
		out.I64()[i] = int64(x)
	}
	return out
}

// constant is known.
func constant(n *node) {
	if a := n.attribute("value", onnx.TensorKind); a != nil {
		v, err := n.b.net.file.View(a.Tensor)
		if err != nil {
			fail("%w", err)
		}
		n.giveKnown(v)
		return
	}
	if a := n.attribute("value_float", onnx.FloatKind); a != nil {
		n.giveKnown(tensor.FromF32([]float32{a.Float}))
		return
	}
	if a := n.attribute("value_floats", onnx.FloatsKind); a != nil {
		n.giveKnown(tensor.FromF32(a.Floats, len(a.Floats)))
		return
	}
	if a := n.attribute("value_int", onnx.IntKind); a != nil {
		n.giveKnown(longs(nil, int(a.Int)))
		return
	}
	if list := n.list("value_ints"); list != nil {
		n.giveKnown(longs([]int{len(list)}, list...))
		return
	}
	fail("its value is neither a tensor nor numbers")
}

func constantOfShape(n *node) {
	v := tensor.FromF32([]float32{0})
	if a := n.attribute("value", onnx.TensorKind); a != nil {
		var err error
		if v, err = n.b.net.file.View(a.Tensor); err != nil {
			fail("%w", err)
		}
		v.Type = tensor.Of(v.Type.DType)
	}
	n.give(ops.BroadcastTo(n.b.g.Constant("fill", v), n.ints(0)...))
}

// spaced is a range of numbers.
func spaced(n *node) {
	d := n.known(0).Type.DType
	start, limit, step := n.scalar(0, 0), n.scalar(1, 0), n.scalar(2, 1)
	count := math.Ceil((limit - start) / step)
	if !(count <= mostListed) {
		fail("a range from %v to %v by %v", start, limit, step)
	}
	v := tensor.New(tensor.Of(tensor.F64, int(max(count, 0))))
	for i := range v.F64() {
		v.F64()[i] = start + float64(float64(i)*step)
	}
	n.giveKnown(v.To(d))
}

func eyeLike(n *node) {
	t := n.x(0).Type()
	d := t.DType
	if v := n.int("dtype", 0); v != 0 {
		var err error
		if d, err = dtype(v); err != nil {
			fail("%w", err)
		}
	}
	if t.Rank() != 2 {
		fail("its operand is %s, want a matrix", t)
	}
	k := n.int("k", 0)
	few("elements", t.Elems())
	v := tensor.New(tensor.Of(tensor.F32, t.Sizes()...))
	for i := range t.Size(0) {
		if j := i + k; j >= 0 && j < t.Size(1) {
			v.F32()[i*t.Size(1)+j] = 1
		}
	}
	n.giveKnown(v.To(d))
}

func shape(n *node) {
	sizes := n.x(0).Type().Sizes()
	clamp := func(i int) int {
		if i < 0 {
			i += len(sizes)
		}
		return min(max(i, 0), len(sizes))
	}
	lo, hi := clamp(n.int("start", 0)), clamp(n.int("end", len(sizes)))
	sizes = sizes[lo:max(lo, hi)]
	n.giveKnown(longs([]int{len(sizes)}, sizes...))
}

func reshape(n *node) {
	x := n.x(0)
	keep := !n.flag("allowzero", false)
	var sizes []int
	if n.version() < 5 {
		sizes = n.list("shape")
	} else {
		sizes = n.ints(1)
	}
	sizes, rest, open := slices.Clone(sizes), 1, -1
	for i, s := range sizes {
		if s == 0 && keep {
			if i >= x.Type().Rank() {
				fail("size 0 of axis %d stands for the operand's, which has %d axes", i,
					x.Type().Rank())
			}
			sizes[i] = x.Type().Size(i)
		}
		if s == -1 {
			open = i
			continue
		}
		rest *= sizes[i]
	}
	if open >= 0 && rest > 0 {
		sizes[open] = x.Type().Elems() / rest
	} else if open >= 0 {
		sizes[open] = 0
	}
	n.give(ops.ReshapeSizes(x, sizes...))
}

func flatten(n *node) {
	x := n.x(0)
	a := n.int("axis", 1)
	if a < 0 {
		a += x.Type().Rank()
	}
	if a < 0 || a > x.Type().Rank() {
		fail("there is no axis %d of %s", a, x.Type())
	}
	n.give(ops.ReshapeSizes(x, elems(x.Type().Sizes()[:a]), elems(x.Type().Sizes()[a:])))
}

func elems(sizes []int) int {
	total := 1
	for _, s := range sizes {
		total *= s
	}
	return total
}

func squeeze(n *node) {
	x := n.x(0)
	axes := n.axes(1, 13)
	if axes == nil {
		for i, s := range x.Type().Sizes() {
			if s == 1 {
				axes = append(axes, i)
			}
		}
	}
	if len(axes) == 0 {
		n.give(x)
		return
	}
	n.give(ops.Squeeze(x, axes...))
}

func unsqueeze(n *node) {
	axes := n.axes(1, 13)
	if len(axes) == 0 {
		n.give(n.x(0))
		return
	}
	n.give(ops.ExpandDims(n.x(0), axes...))
}

func transpose(n *node) {
	perm := n.list("perm")
	transposed := func(in []value) value {
		order := perm
		for i := in[0].Type().Rank() - 1; i >= 0 && perm == nil; i-- {
			order = append(order, i)
		}
		return ops.Transpose(in[0], order...)
	}
	// A weight that is turned round, as those of PyTorch's layers, is so once.
	if name := n.own(0); name != "" {
		n.out = []operand{n.derive(name, transposed, n.in[0])}
		return
	}
	n.give(transposed([]value{n.x(0)}))
}

func concat(n *node) {
	xs := n.xs(0)
	a := axis(n.int("axis", 1), xs[0].Type().Rank())
	n.give(ops.Concat(a, xs...))
}

func split(n *node) {
	x := n.x(0)
	a := axis(n.int("axis", 0), x.Type().Rank())
	parts := few("parts", n.int("num_outputs", len(n.Out)))
	size := x.Type().Size(a)
	var sizes []int
	switch {
	case n.version() < 13:
		sizes = n.list("split")
	case n.has(1):
		sizes = n.ints(1)
	}
	if sizes == nil {
		each := (size + parts - 1) / parts
		for left := size; len(sizes) < parts; left -= each {
			sizes = append(sizes, max(0, min(each, left)))
		}
	}
	at := 0
	for _, s := range sizes {
		if s < 0 || at+s > size {
			fail("parts of %v along an axis of %d", sizes, size)
		}
		n.give(ops.Slice(x, a, at, at+s))
		at += s
	}
	if at != size {
		fail("parts of %v along an axis of %d", sizes, size)
	}
}

func slice(n *node) {
	x := n.x(0)
	starts, ends, axes, steps := n.list("starts"), n.list("ends"), n.list("axes"), []int(nil)
	if n.version() >= 10 {
		starts, ends = n.ints(1), n.ints(2)
		if n.has(3) {
			axes = n.ints(3)
		}
		if n.has(4) {
			steps = n.ints(4)
		}
	}
	for i := range starts {
		a, step := i, 1
		if axes != nil {
			a = axes[i]
		}
		if steps != nil {
			step = steps[i]
		}
		if i >= len(ends) || step == 0 {
			fail("starts %v, ends %v, steps %v", starts, ends, steps)
		}
		x = cut(x, axis(a, x.Type().Rank()), starts[i], ends[i], step)
	}
	n.give(x)
}

// cut is Python's x[lo:hi:step] along an axis.
func cut(x value, a, lo, hi, step int) value {
	size := x.Type().Size(a)
	clamp := func(i, least, most int) int {
		if i < 0 {
			i += size
		}
		return min(max(i, least), most)
	}
	if step > 0 {
		lo, hi = clamp(lo, 0, size), clamp(hi, 0, size)
		if step == 1 {
			return ops.Slice(x, a, lo, max(lo, hi))
		}
		return ops.SliceStep(x, a, lo, max(lo, hi), step)
	}
	lo, hi = clamp(lo, 0, size-1), clamp(hi, -1, size-1)
	if hi >= lo || size == 0 {
		return ops.Slice(x, a, 0, 0)
	}
	return ops.SliceStep(ops.Reverse(x, a), a, size-1-lo, size-1-hi, -step)
}

func expand(n *node) {
	x, sizes := n.x(0), n.ints(1)
	n.give(ops.BroadcastTo(x, joint(x.Type().Sizes(), sizes)...))
}

// joint are the sizes that two shapes broadcast to.
func joint(a, b []int) []int {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		s, t := 1, 1
		if k := i - len(out) + len(a); k >= 0 {
			s = a[k]
		}
		if k := i - len(out) + len(b); k >= 0 {
			t = b[k]
		}
		switch {
		case s == t || t == 1:
			out[i] = s
		case s == 1:
			out[i] = t
		default:
			fail("sizes %v and %v do not broadcast", a, b)
		}
	}
	return out
}

func tile(n *node) {
	n.give(ops.Tile(n.x(0), n.ints(1)...))
}

func trilu(n *node) {
	k := 0
	if n.has(1) {
		k = int(n.scalar(1, 0))
	}
	x, f := n.x(0), ops.Tril
	if n.flag("upper", true) {
		f = ops.Triu
	}
	n.give(f(x, k))
}

// indices are a constant i32[n].
func (b *builder) indices(list []int) value {
	v := tensor.New(tensor.Of(tensor.I32, len(list)))
	for i, at := range list {
		v.I32()[i] = int32(at)
	}
	return b.g.Constant("indices", v)
}

func centerCropPad(n *node) {
	x, sizes := n.x(0), n.ints(1)
	axes := n.list("axes")
	for i, want := range sizes {
		a := i
		if axes != nil {
			a = axes[i]
		}
		a = axis(a, x.Type().Rank())
		have := x.Type().Size(a)
		if have > want {
			lo := (have - want) / 2
			x = ops.Slice(x, a, lo, lo+want)
		} else if have < want {
			lo := (want - have) / 2
			x = filled(x, a, lo, want-have-lo, like(x, 0))
		}
	}
	n.give(x)
}

// depthToSpace by reshaping and transposing, of any element type.
func depthToSpace(n *node) {
	x, block := n.x(0), n.int("blocksize", 0)
	mode := n.text("mode", "DCR")
	n.only("mode", mode, "DCR", "CRD")
	t := x.Type()
	if t.Rank() != 4 || block < 1 || t.Size(1)%(block*block) != 0 {
		fail("blocks of %d of %s", block, t)
	}
	b, c, h, w := t.Size(0), t.Size(1)/(block*block), t.Size(2), t.Size(3)
	if mode == "DCR" {
		x = ops.Transpose(ops.ReshapeSizes(x, b, block, block, c, h, w), 0, 3, 4, 1, 5, 2)
	} else {
		x = ops.Transpose(ops.ReshapeSizes(x, b, c, block, block, h, w), 0, 1, 4, 2, 5, 3)
	}
	n.give(ops.ReshapeSizes(x, b, c, h*block, w*block))
}

func spaceToDepth(n *node) {
	x, block := n.x(0), n.int("blocksize", 0)
	mode := n.text("mode", "DCR")
	n.only("mode", mode, "DCR", "CRD")
	t := x.Type()
	if t.Rank() != 4 || block < 1 || t.Size(2)%block != 0 || t.Size(3)%block != 0 {
		fail("blocks of %d of %s", block, t)
	}
	b, c, h, w := t.Size(0), t.Size(1), t.Size(2)/block, t.Size(3)/block
	perm := []int{0, 3, 5, 1, 2, 4}
	if mode == "CRD" {
		perm = []int{0, 1, 3, 5, 2, 4}
	}
	x = ops.Transpose(ops.ReshapeSizes(x, b, c, h, block, w, block), perm...)
	n.give(ops.ReshapeSizes(x, b, c*block*block, h, w))
}
