package ops

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// numbered is an elementwise operation of f32 that other numbers may have.
type numbered interface {
	graph.Op
	pointwise
}

// onNumbers is an elementwise operation of f32 on operands of any type that has it: 16-bit
// floating-point numbers are computed in f32 and rounded, and others by [numeric].
func onNumbers(op numbered, in ...graph.Value) graph.Value {
	d := in[0].Type().DType
	for _, x := range in {
		if !x.Valid() || x.Type().DType != d && small(d) {
			return apply(op, in...)
		}
	}
	switch d {
	case graph.F32:
		return apply(op, in...)
	case graph.BF16:
		return apply(InBF16(op, 1), in...)
	case graph.F16:
		wide := make([]graph.Value, len(in))
		for i, x := range in {
			wide[i] = Cast(x, graph.F32)
		}
		return Cast(apply(op, wide...), d)
	}
	return apply(numeric{op}, in...)
}

// numeric is an elementwise operation on numbers of another type than f32, of which there are no
// chains.
type numeric struct{ Op onElements }

// onElements is what numeric does: an operation of f32, or [bitwise].
type onElements interface {
	Name() string
	pointwise
}

func (o numeric) Name() string { return o.Op.Name() }

// operands is how many the operation has.
func (o numeric) operands() int {
	switch op := o.Op.(type) {
	case binary:
		return 2
	case bitwise:
		return op.operands()
	}
	return 1
}

func (o numeric) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.Op == nil {
		return nil, errors.New("no operation on numbers")
	}
	if err := arity(in, o.operands()); err != nil {
		return nil, err
	}
	out := in[0]
	for _, t := range in[1:] {
		if t.DType != out.DType {
			return nil, fmt.Errorf("operands are %s and %s: convert one of them with Cast", out, t)
		}
		var err error
		if out, err = jointShape(out, t); err != nil {
			return nil, err
		}
	}
	if o.run(out.DType) == nil {
		return nil, fmt.Errorf("operand 0 is %s, want %s: convert it with Cast", in[0], o.types())
	}
	return []graph.Type{out}, nil
}

// types are those of which there is the operation, in words.
func (o numeric) types() string {
	_, floating := o.Op.(graph.Op)
	var list []string
	for _, d := range tensor.DTypes() {
		if o.run(d) != nil || floating && d.Floating() && d != graph.F64 {
			list = append(list, d.String())
		}
	}
	return strings.Join(list, ", ")
}

func (o numeric) Cost(in, out []graph.Type) graph.Cost {
	if op, ok := o.Op.(graph.Op); ok {
		return op.Cost(in, out)
	}
	return streaming(in, out, 1)
}

// InPlace: an operand as large as the result is read just before it is overwritten.
func (numeric) InPlace(in, out []graph.Type) []int { return binary{}.InPlace(in, out) }

// VJP is the operation's, whose formulas are of the operands' type; integers have none.
func (o numeric) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	op, ok := o.Op.(graph.Op)
	if !ok || !n.Out[0].DType.Floating() || !dout[0].Valid() {
		return none(len(n.In))
	}
	y, d := n.Value(0), dout[0]
	switch o.Op {
	case unary{relu}:
		return []graph.Value{Where(LessEqual(y, scalar(y, 0)), scalar(d, 0), d)}
	case unary{tanh}:
		return []graph.Value{Mul(d, Sub(scalar(y, 1), Square(y)))}
	case unary{sigmoid}:
		return []graph.Value{Mul(d, Mul(y, Sub(scalar(y, 1), y)))}
	}
	return op.VJP(n, dout)
}

// Cut is between any elements.
func (numeric) Cut(in, out []graph.Type) (graph.Cut, bool) { return cutAny(in, out) }

// Part is the operation itself.
func (o numeric) Part(_, _ []graph.Type, _, _ int) graph.Op { return o }

// Split is along all axes.
func (numeric) Split(in, out []graph.Type) (graph.Rule, bool) { return splitElements(in, out) }

// CheckData wants no integer divided by zero.
func (o numeric) CheckData(in []tensor.View) error {
	if o.divides(in[0].Type.DType) && in[1].Data != nil {
		return wantNoZero(in[1])
	}
	return nil
}

// divides reports whether the operation refuses to divide by zero.
func (o numeric) divides(d graph.DType) bool {
	switch o.Op {
	case binary{div}, binary{mod}, binary{remainder}:
		return d.Integer()
	}
	return false
}

// wantNoZero reports an integer that is zero.
func wantNoZero(v tensor.View) error {
	size := int(v.Type.DType.Size())
	for lo := 0; lo < len(v.Data); lo += size {
		zero := true
		for _, b := range v.Data[lo : lo+size] {
			zero = zero && b == 0
		}
		if zero {
			return fmt.Errorf("integers divided by zero: element %d of the divisor, %s, is 0",
				lo/size, v.Type)
		}
	}
	return nil
}

func numericCPU(o numeric, c *kernel.Call) error {
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	o.run(c.In[0].Type.DType)(c)
	return nil
}

// run is the kernel for elements of a type, nil if there is none.
func (o numeric) run(d graph.DType) func(c *kernel.Call) {
	switch d {
	case graph.I8:
		return onIntegers[int8](o.Op)
	case graph.I16:
		return onIntegers[int16](o.Op)
	case graph.I32:
		return onIntegers[int32](o.Op)
	case graph.I64:
		return onIntegers[int64](o.Op)
	case graph.U8:
		return onIntegers[uint8](o.Op)
	case graph.U16:
		return onIntegers[uint16](o.Op)
	case graph.U32:
		return onIntegers[uint32](o.Op)
	case graph.U64:
		return onIntegers[uint64](o.Op)
	case graph.F64:
		return kernelOn(pairs64(o.Op), alone64(o.Op))
	}
	return nil
}

// onIntegers is the kernel for integers.
func onIntegers[T tensor.Integer](op onElements) func(c *kernel.Call) {
	return kernelOn(integerPairs[T](op), integerAlone[T](op))
}

// kernelOn is the kernel of a function of two numbers, or else of one.
func kernelOn[T any](two func(a, b T) T, one func(a T) T) func(c *kernel.Call) {
	switch {
	case two != nil:
		return func(c *kernel.Call) { mapPairs(c, two) }
	case one != nil:
		return func(c *kernel.Call) { mapEach(c, one) }
	}
	return nil
}

func mapPairs[T any](c *kernel.Call, f func(a, b T) T) {
	a, b, out := raw[T](c.In[0]), raw[T](c.In[1]), raw[T](c.Out[0])
	walk(c, c.Out[0].Type, []tensor.Type{c.In[0].Type, c.In[1].Type},
		func(at, n int, from, step each) {
			i, j := from[0], from[1]
			for k := range out[at : at+n] {
				out[at+k] = f(a[i], b[j])
				i, j = i+step[0], j+step[1]
			}
		})
}

func mapEach[T any](c *kernel.Call, f func(a T) T) {
	x, out := raw[T](c.In[0]), raw[T](c.Out[0])
	c.Pool.For(len(out), grain/4, func(lo, hi int) {
		for i, v := range x[lo:hi] {
			out[lo+i] = f(v)
		}
	})
}

func init() {
	kernel.Register(kernel.CPU, numericCPU)
	for _, d := range tensor.DTypes() {
		t := []graph.Type{tensor.Of(d, 3, 5), tensor.Of(d, 5)}
		if (numeric{binary{add}}).run(d) == nil {
			continue
		}
		for k := range numBinary {
			if o := (numeric{binary{k}}); o.run(d) != nil {
				register(Sample{Op: o, In: t, Fill: fills{1: fromOne}, NoGrad: []int{0, 1}})
			}
		}
		for k := range numUnary {
			if o := (numeric{unary{k}}); o.run(d) != nil {
				register(Sample{Op: o, In: t[:1], Fill: fills{0: fromOne}, NoGrad: []int{0}})
			}
		}
		for k := range numFunctions {
			if o := (numeric{function{k}}); o.run(d) != nil {
				register(Sample{Op: o, In: t[:1], Fill: fills{0: fromOne}, NoGrad: []int{0}})
			}
		}
	}
}
