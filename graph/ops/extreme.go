package ops

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Max is the largest element over some axes, all of them if none are given, which are
// dropped; NaN if there is one. x is of any type. Elements that are equally large
// share the gradient.
func Max(x graph.Value, axes ...int) graph.Value { return extremeOver(x, axes, false) }

// Min is the smallest element, as Max is the largest.
func Min(x graph.Value, axes ...int) graph.Value { return extremeOver(x, axes, true) }

// Any is where some truth value over the axes is true: bool. Of none, none is.
func Any(x graph.Value, axes ...int) graph.Value { return truthOver(x, axes, false) }

// All is where every truth value over the axes is true: bool. Of none, every one is.
func All(x graph.Value, axes ...int) graph.Value { return truthOver(x, axes, true) }

// truthOver is the extreme of truth values, which there is of none, too: an axis of none is
// made one of those that change nothing.
func truthOver(x graph.Value, axes []int, all bool) graph.Value {
	x, lo, hi := together(asTruth(x), axes)
	if lo == hi {
		return x
	}
	if t := x.Type(); (graph.Type{Shape: t.Shape[lo:hi]}).Elems() == 0 {
		t = graph.Type{DType: graph.F32, Shape: slices.Clone(t.Shape)}
		for i := lo; i < hi; i++ {
			t.Shape[i].Size = 1
		}
		x = Cast(Full(x.Graph(), t, float32(bit(all))), graph.Bool)
	}
	return apply(extreme{Lo: lo, Hi: hi, Least: all}, x)
}

// asTruth is x as bool.
func asTruth(x graph.Value) graph.Value {
	if x.Type().DType == graph.Bool {
		return x
	}
	return Not(Not(x))
}

func extremeOver(x graph.Value, axes []int, least bool) graph.Value {
	x, lo, hi := together(x, axes)
	if lo == hi {
		return x
	}
	own := func(x graph.Value) graph.Value {
		return apply(extreme{Lo: lo, Hi: hi, Least: least}, x)
	}
	if ordered(x.Type().DType) {
		return own(x)
	}
	return foldOver(foldMax+foldKind(bit(least)), x, lo, hi, own)
}

// together is x with the given axes, all if there are none, beside one another: lo to
// hi-1. They are moved to the end if they are not. It is no value if there is no such
// axis; lo is hi for a scalar.
func together(x graph.Value, axes []int) (y graph.Value, lo, hi int) {
	if !x.Valid() {
		return x, 0, 0
	}
	rank := x.Type().Rank()
	if len(axes) == 0 {
		return x, 0, rank
	}
	chosen := make([]int, 0, len(axes))
	for _, a := range axes {
		i := axis(a, rank)
		if i < 0 {
			x.Graph().Fail(fmt.Errorf("reduction over axis %d: %s has none such", a, x.Type()))
			return graph.Value{}, 0, 0
		}
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	lo, hi = chosen[0], chosen[len(chosen)-1]+1
	if hi-lo == len(chosen) {
		return x, lo, hi
	}
	return lastly(x, chosen), rank - len(chosen), rank
}

// lastly is x with some axes moved to the end.
func lastly(x graph.Value, chosen []int) graph.Value {
	var order []int
	for i := range x.Type().Rank() {
		if !slices.Contains(chosen, i) {
			order = append(order, i)
		}
	}
	return Transpose(x, append(order, chosen...)...)
}

// extreme is the largest, or the smallest, over axes Lo to Hi-1.
type extreme struct {
	Lo, Hi int
	Least  bool
}

func (o extreme) Name() string {
	if o.Least {
		return "min"
	}
	return "max"
}

// ordered are the element types that have an order.
func ordered(d graph.DType) bool { return d == graph.F32 || d == graph.I32 || truth(d) }

// dropped is the type of a reduction over axes lo to hi-1.
func dropped(t graph.Type, lo, hi int) (graph.Type, error) {
	if lo < 0 || hi > t.Rank() || lo >= hi {
		return t, fmt.Errorf("reduction over axes %d to %d of %s", lo, hi-1, t)
	}
	return graph.Type{DType: t.DType, Shape: append(slices.Clone(t.Shape[:lo]),
		t.Shape[hi:]...)}, nil
}

func (o extreme) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if !ordered(in[0].DType) {
		return nil, fmt.Errorf("operand is %s, want f32, i32, u8 or bool: convert it with Cast",
			in[0])
	}
	out, err := dropped(in[0], o.Lo, o.Hi)
	if err == nil && o.geometry(in[0]).n == 0 {
		err = fmt.Errorf("of the no elements of %s none is the %s", in[0], o.Name())
	}
	return []graph.Type{out}, err
}

func (o extreme) geometry(t graph.Type) reduction { return sum{Lo: o.Lo, Hi: o.Hi}.geometry(t) }

// Cost: the scratch holds the results of blocks of rows.
func (o extreme) Cost(in, out []graph.Type) graph.Cost {
	c := graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
	if r := o.geometry(in[0]); r.blocks > 1 {
		c.Scratch = int64(r.blocks) * out[0].Bytes()
	}
	return c
}

// VJP divides the gradient among the elements that are the result.
func (o extreme) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0]
	if x.Type().DType != graph.F32 {
		return none(1)
	}
	kept := slices.Clone(x.Type().Shape)
	for i := o.Lo; i < o.Hi; i++ {
		kept[i] = graph.Dim{Size: 1}
	}
	those := Cast(Equal(x, Reshape(n.Value(0), kept...)), graph.F32)
	count := apply(sum{Lo: o.Lo, Hi: o.Hi, Keep: true}, those)
	return []graph.Value{Mul(those, Div(Reshape(dout[0], kept...), count))}
}

func extremeCPU(o extreme, c *kernel.Call) error {
	switch r := o.geometry(c.In[0].Type); c.In[0].Type.DType {
	case graph.F32:
		f := folding[float32]{r, vec.Max, vec.MaxOf}
		if o.Least {
			f = folding[float32]{r, vec.Min, smallestOf}
		}
		f.run(c, tensor.View.F32)
	case graph.I32:
		foldingOf[int32](r, o.Least).run(c, tensor.View.I32)
	default:
		foldingOf[uint8](r, o.Least).run(c, tensor.View.U8)
	}
	return nil
}

// foldingOf is that of integers.
func foldingOf[T cmp.Ordered](r reduction, least bool) folding[T] {
	if least {
		return folding[T]{r, func(dst, a, b []T) {
			for i := range dst {
				dst[i] = min(a[i], b[i])
			}
		}, slices.Min[[]T]}
	}
	return folding[T]{r, func(dst, a, b []T) {
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	}, slices.Max[[]T]}
}

// smallestOf is that of a row, NaN if there is one.
func smallestOf(x []float32) float32 {
	least := x[0]
	for _, v := range x[1:] {
		if v < least || v != v {
			least = v
		}
		if least != least {
			break
		}
	}
	return least
}

// folding reduces rows with a function of two of them, and rows of one element with a
// function of all.
type folding[T any] struct {
	reduction
	two func(dst, a, b []T)
	all func(x []T) T
}

// rows reduces rows x, which are stride elements apart, to dst.
func (f folding[T]) rows(dst, x []T, count, stride int) {
	if stride == 1 {
		dst[0] = f.all(x[:count])
		return
	}
	copy(dst, x)
	for k := 1; k < count; k++ {
		f.two(dst, dst, x[k*stride:k*stride+len(dst)])
	}
}

// run divides columns, or else blocks of rows, among threads.
func (f folding[T]) run(c *kernel.Call, view func(tensor.View) []T) {
	x, out := view(c.In[0]), view(c.Out[0])
	if f.blocks > 1 {
		f.partial(c, out, x, view(tensor.View{Type: tensor.Of(c.Out[0].Type.DType),
			Data: c.Scratch}))
		return
	}
	c.Pool.For(len(out), max(1, grain/f.n), func(lo, hi int) {
		for lo < hi { // one outer index at a time
			o, at := lo/f.inner, lo%f.inner
			end := min(f.inner, at+hi-lo)
			f.rows(out[lo:lo+end-at], x[o*f.n*f.inner+at:], f.n, f.inner)
			lo += end - at
		}
	})
}

// partial reduces blocks of rows, and then the blocks.
func (f folding[T]) partial(c *kernel.Call, out, x, part []T) {
	c.Pool.Run(f.outer*f.blocks, func(i int) {
		lo, hi := block(i%f.blocks, f.blocks, f.n)
		first := i / f.blocks * f.n
		f.rows(part[i*f.inner:(i+1)*f.inner], x[(first+lo)*f.inner:], hi-lo, f.inner)
	})
	for o := range f.outer {
		f.rows(out[o*f.inner:(o+1)*f.inner], part[o*f.blocks*f.inner:], f.blocks, f.inner)
	}
}

func init() {
	kernel.Register(kernel.CPU, extremeCPU)
	t := func(d graph.DType, sizes ...int) []graph.Type {
		return []graph.Type{tensor.Of(d, sizes...)}
	}
	for _, least := range []bool{false, true} {
		float := func(lo, hi int, sizes ...int) Sample {
			return Sample{Op: extreme{lo, hi, least}, In: t(graph.F32, sizes...),
				Fill: fills{0: spaced(0)}, Second: true, Eps: 1e-3}
		}
		whole := func(d graph.DType, lo, hi int, sizes ...int) Sample {
			return Sample{Op: extreme{lo, hi, least}, In: t(d, sizes...), NoGrad: []int{0}}
		}
		register(
			float(0, 2, 3, 5), float(1, 2, 3, 17), float(0, 1, 3, 17), float(1, 3, 2, 3, 5, 4),
			whole(graph.F32, 1, 2, 1, 20000), whole(graph.F32, 0, 1, 300, 70),
			whole(graph.F32, 0, 1, 3, 5000), whole(graph.I32, 1, 2, 3, 17, 2),
			whole(graph.I32, 1, 2, 3, 5), whole(graph.U8, 0, 1, 40000),
			whole(graph.U8, 1, 2, 3, 5), whole(graph.Bool, 1, 2, 3, 5),
		)
	}
}
