package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// BroadcastTo repeats x, of any element type, along new leading axes and axes of size 1
// until it has the given sizes.
func BroadcastTo(x graph.Value, sizes ...int) graph.Value {
	return apply(broadcast{sized(sizes)}, x)
}

type broadcast struct{ Shape dims }

func (broadcast) Name() string { return "broadcast" }

func (b broadcast) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if err := b.Shape.check(); err != nil {
		return nil, err
	}
	out := b.Shape.typ(in[0].DType)
	joint, err := jointShape(in[0], out)
	if err != nil {
		return nil, err
	}
	if !joint.SameShape(out) {
		return nil, fmt.Errorf("%s does not broadcast to %s", in[0], out)
	}
	return []graph.Type{joint}, nil
}

func (broadcast) Cost(in, out []graph.Type) graph.Cost { return streaming(in, out, 0) }

func (broadcast) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{reduceTo(dout[0], n.In[0].Type())}
}

// Repeats reports whether an operation repeats its operands as [BroadcastTo] would, to the same
// bits: where the type of its result is the same, it may read what has not been repeated.
func Repeats(op graph.Op) bool {
	switch o := op.(type) {
	case inBF16:
		return Repeats(o.Op)
	case binary, numeric, compare, logic, where:
		return true
	}
	return false
}

// broadcastCPU moves elements of any type by their size.
func broadcastCPU(_ broadcast, c *kernel.Call) error {
	switch c.In[0].Type.DType.Size() {
	case 1:
		spreadOut[uint8](c)
	case 2:
		spreadOut[uint16](c)
	case 4:
		spreadOut[uint32](c)
	default:
		spreadOut[uint64](c)
	}
	return nil
}

func spreadOut[T any](c *kernel.Call) {
	x, out := raw[T](c.In[0]), raw[T](c.Out[0])
	walk(c, c.Out[0].Type, []tensor.Type{c.In[0].Type}, func(at, n int, from, step each) {
		dst, src := out[at:at+n], x[from[0]:]
		if step[0] == 1 {
			copy(dst, src[:n])
			return
		}
		repeat(dst, src[0])
	})
}

// repeat sets every element of dst, most of them by copying, which is faster
// than a loop.
func repeat[T any](dst []T, v T) {
	const few, run = 32, 1 << 10 // elements set one by one, and copied at a time
	head := dst[:min(few, len(dst))]
	for i := range head {
		head[i] = v
	}
	for n := len(head); n < len(dst); {
		n += copy(dst[n:], dst[:min(n, run)])
	}
}

// jointShape is the shape to which two operands broadcast: axes are aligned at
// the end, and sizes agree or one of them is 1.
func jointShape(a, b graph.Type) (graph.Type, error) {
	if a.Rank() < b.Rank() {
		a, b = b, a
	}
	out := graph.Type{DType: a.DType, Shape: append([]graph.Dim(nil), a.Shape...)}
	lead := a.Rank() - b.Rank()
	for i, d := range b.Shape {
		o := &out.Shape[lead+i]
		switch {
		case o.Size == d.Size && o.Name == "":
			o.Name = d.Name
		case o.Size == d.Size || d.Size == 1:
		case o.Size == 1:
			*o = d
		default:
			return graph.Type{}, fmt.Errorf("%s and %s do not broadcast", a, b)
		}
	}
	return out, nil
}

// reduceTo sums v over the axes along which a value of type t was broadcast.
func reduceTo(v graph.Value, t graph.Type) graph.Value {
	if !v.Valid() || v.Type().SameShape(t) {
		return v
	}
	lead := v.Type().Rank() - t.Rank()
	var axes []int
	for i, d := range v.Type().Shape {
		if i < lead || t.Shape[i-lead].Size == 1 && d.Size != 1 {
			axes = append(axes, i)
		}
	}
	if v = Sum(v, axes...); v.Type().SameShape(t) {
		return v
	}
	return Reshape(v, t.Shape...)
}

// each is a number for each of the operands of a broadcasting operation, of which
// there are three at most.
type each [3]int

// walk visits a result row by row, in parallel: f gets the position of a run of
// n elements of the result, where each operand starts, and whether it advances
// (step 1) or repeats (step 0). Axes over which all operands are contiguous are
// merged, so that runs are long.
func walk(c *kernel.Call, out tensor.Type, in []tensor.Type, f func(at, n int, from, step each)) {
	axes := mergeAxes(out, in)
	last := axes[len(axes)-1]
	rows := 1
	for _, a := range axes[:len(axes)-1] {
		rows *= a.size
	}
	c.Pool.For(rows, max(1, grain/last.size), func(lo, hi int) {
		for row := lo; row < hi; row++ {
			var from each
			rest := row
			for i := len(axes) - 2; i >= 0; i-- {
				k := rest % axes[i].size
				rest /= axes[i].size
				for j, s := range axes[i].stride {
					from[j] += k * s
				}
			}
			f(row*last.size, last.size, from, last.stride)
		}
	})
}

// strided is an axis of a result with the stride of each operand along it.
type strided struct {
	size   int
	stride each
}

// mergeAxes lists the axes of a result, neighbours merged where every operand
// allows it. The last axis has stride 0 or 1 in every operand.
func mergeAxes(out tensor.Type, in []tensor.Type) []strided {
	axes := append(make([]strided, 0, maxRank), strided{size: 1})
	step := each{1, 1, 1}
	for i := out.Rank() - 1; i >= 0; i-- {
		size := out.Shape[i].Size
		if size == 1 {
			continue
		}
		next := strided{size: size}
		for j, t := range in {
			k := i - (out.Rank() - t.Rank())
			if k >= 0 && t.Shape[k].Size > 1 {
				next.stride[j] = step[j]
				step[j] *= size
			}
		}
		inner := &axes[len(axes)-1]
		switch {
		case inner.size == 1:
			*inner = next
		case follows(*inner, next):
			inner.size *= size
		default:
			axes = append(axes, next)
		}
	}
	slices.Reverse(axes)
	return axes
}

// follows reports whether the outer axis continues the inner one in every
// operand.
func follows(inner, outer strided) bool {
	for j, s := range outer.stride {
		if s != inner.stride[j]*inner.size {
			return false
		}
	}
	return true
}

func init() {
	kernel.Register(kernel.CPU, broadcastCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	register(
		Sample{Op: broadcast{sized([]int{3, 5})}, In: []graph.Type{f(5)}, Second: true},
		Sample{Op: broadcast{sized([]int{3, 5})}, In: []graph.Type{f(3, 1)}, Second: true},
		Sample{Op: broadcast{sized([]int{2, 3, 4})}, In: []graph.Type{f()}, Second: true},
		Sample{Op: broadcast{sized([]int{3, 5})}, In: []graph.Type{tensor.Of(graph.U8, 3, 1)},
			NoGrad: []int{0}},
		Sample{Op: broadcast{sized([]int{3, 5})}, In: []graph.Type{tensor.Of(graph.I32, 5)},
			NoGrad: []int{0}},
		Sample{Op: broadcast{sized([]int{2, 3, 1, 4})}, In: []graph.Type{f(3, 1, 1)}, Second: true},
	)
}
