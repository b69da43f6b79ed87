package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

type foldKind uint8

const (
	foldSum foldKind = iota
	foldProd
	foldMax
	foldMin
	numFolds
)

// fold reduces over axes Lo to Hi-1 what is no f32: integers, whose sums and products wrap, and
// f64. Columns are reduced in blocks, one element after the other, and then the blocks.
type fold struct {
	Kind   foldKind
	Lo, Hi int
}

// foldOver is a reduction of x over axes that are beside one another, in f32 for 16-bit numbers.
func foldOver(k foldKind, x graph.Value, lo, hi int,
	f32 func(x graph.Value) graph.Value) graph.Value {
	switch d := x.Type().DType; {
	case small(d):
		return Cast(f32(Cast(x, graph.F32)), d)
	case (fold{Kind: k}).run(d) != nil:
		return apply(fold{k, lo, hi}, x)
	}
	return f32(x)
}

func (o fold) Name() string { return [...]string{"sum", "prod", "max", "min"}[o.Kind] }

func (o fold) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 1); err != nil {
		return nil, err
	}
	if o.Kind >= numFolds || o.run(in[0].DType) == nil {
		return nil, fmt.Errorf("operand is %s, want integers or f64: convert it with Cast", in[0])
	}
	out, err := dropped(in[0], o.Lo, o.Hi)
	if err == nil && o.Kind >= foldMax && o.geometry(in[0]).n == 0 {
		err = fmt.Errorf("of the no elements of %s none is the %s", in[0], o.Name())
	}
	return []graph.Type{out}, err
}

// geometry has blocks of columns' length alone, so that parts of columns have the bits of all.
func (o fold) geometry(t graph.Type) reduction {
	r := sum{Lo: o.Lo, Hi: o.Hi}.geometry(t)
	r.blocks = blocksOf(r.n, 1, 64)
	return r
}

// Cost: the scratch holds the results of blocks of rows.
func (o fold) Cost(in, out []graph.Type) graph.Cost {
	c := graph.Cost{FLOPs: int64(in[0].Elems()), Bytes: bytes(in, out)}
	if r := o.geometry(in[0]); r.blocks > 1 {
		c.Scratch = int64(r.blocks) * out[0].Bytes()
	}
	return c
}

// VJP repeats the gradient of a sum, and divides that of an extreme among those that are it.
func (o fold) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	x := n.In[0]
	if !x.Type().DType.Floating() || !dout[0].Valid() {
		return none(1)
	}
	kept := slices.Clone(x.Type().Shape)
	for i := o.Lo; i < o.Hi; i++ {
		kept[i] = graph.Dim{Size: 1}
	}
	d := Reshape(dout[0], kept...)
	switch o.Kind {
	case foldSum:
		return []graph.Value{BroadcastTo(d, x.Type().Sizes()...)}
	case foldProd:
		n.Graph().Fail(fmt.Errorf("a product of %s has no gradient: convert it to f32 with Cast",
			x.Type()))
		return none(1)
	}
	those := Cast(Equal(x, Reshape(n.Value(0), kept...)), x.Type().DType)
	count := Reshape(apply(fold{foldSum, o.Lo, o.Hi}, those), kept...)
	return []graph.Value{Mul(those, Div(d, count))}
}

// Split is along all axes but those that are reduced.
func (o fold) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitReduced(in, o.Lo, o.Hi) }

func foldCPU(o fold, c *kernel.Call) error {
	o.run(c.In[0].Type.DType)(o.geometry(c.In[0].Type), c)
	return nil
}

// run is the kernel for elements of a type, nil if there is none.
func (o fold) run(d graph.DType) func(r reduction, c *kernel.Call) {
	switch d {
	case graph.I8:
		return foldIntegers[int8](o.Kind)
	case graph.I16:
		return foldIntegers[int16](o.Kind)
	case graph.I32:
		return foldIntegers[int32](o.Kind)
	case graph.I64:
		return foldIntegers[int64](o.Kind)
	case graph.U8:
		return foldIntegers[uint8](o.Kind)
	case graph.U16:
		return foldIntegers[uint16](o.Kind)
	case graph.U32:
		return foldIntegers[uint32](o.Kind)
	case graph.U64:
		return foldIntegers[uint64](o.Kind)
	case graph.F64:
		return folded(o.Kind, pairs64(foldings[o.Kind]))
	}
	return nil
}

// foldings are the operations of two elements.
var foldings = [numFolds]binary{{add}, {mul}, {maximum}, {minimum}}

func foldIntegers[T tensor.Integer](k foldKind) func(r reduction, c *kernel.Call) {
	return folded(k, integerPairs[T](foldings[k]))
}

// folded is the kernel that reduces by a function of two elements.
func folded[T tensor.Integer | float64](k foldKind,
	f func(a, b T) T) func(reduction, *kernel.Call) {
	all := func(x []T) T {
		v := x[0]
		for _, y := range x[1:] {
			v = f(v, y)
		}
		return v
	}
	two := func(dst, a, b []T) {
		for i := range dst {
			dst[i] = f(a[i], b[i])
		}
	}
	return func(r reduction, c *kernel.Call) {
		if r.n == 0 {
			repeat(raw[T](c.Out[0]), T(bit(k == foldProd)))
			return
		}
		folding[T]{r, two, all}.run(c, func(v tensor.View) []T {
			n := len(v.Data) / int(v.Type.DType.Size())
			return raw[T](tensor.View{Type: tensor.Of(v.Type.DType, n), Data: v.Data})
		})
	}
}

func init() {
	kernel.Register(kernel.CPU, foldCPU)
	for _, d := range tensor.DTypes() {
		if (fold{}).run(d) == nil {
			continue
		}
		for k := range numFolds {
			register(Sample{Op: fold{k, 1, 2}, In: []graph.Type{tensor.Of(d, 3, 17, 2)},
				NoGrad: []int{0}})
		}
		register(Sample{Op: fold{foldSum, 0, 1}, In: []graph.Type{tensor.Of(d, 70000)},
			NoGrad: []int{0}}, Sample{Op: fold{foldSum, 1, 3},
			In: []graph.Type{tensor.Of(d, 2, 3, 5)}, NoGrad: []int{0}})
	}
}
