package gorgonia

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
)

// functions are Gorgonia's of one operand that are one operation of gomem.
func functions() map[string]func(graph.Value) graph.Value {
	return map[string]func(graph.Value) graph.Value{
		"abs": ops.Abs, "sign": ops.Sign, "ceil": ops.Ceil, "floor": ops.Floor,
		"sin": ops.Sin, "cos": ops.Cos, "exp": ops.Exp, "ln": ops.Log, "neg": ops.Neg,
		"square": ops.Square, "sqrt": ops.Sqrt, "inv": ops.Reciprocal, "invSqrt": ops.Rsqrt,
		"tanh": ops.Tanh, "sigmoid": ops.Sigmoid,
		"log1p": ops.Log1p, "expm1": ops.Expm1, "softplus": ops.Softplus,
	}
}

// unary is a function of every element.
func unary(t *translation, n *G.Node, _ *fields, in []graph.Value) (graph.Value, error) {
	x, name := in[0], n.Op().String()
	d := x.Type().DType
	switch {
	case !d.Floating():
		return x, refusal("it is of floating-point numbers")
	case name == "cube":
		return ops.Mul(ops.Square(x), x), nil
	case name == "log2":
		return ops.Mul(ops.Log(x), t.scalar(d, 1/math.Ln2)), nil
	case d == graph.F64 && slices.Contains([]string{"log1p", "expm1", "softplus"}, name):
		return accurate(t, name, x), nil
	}
	f, ok := functions()[name]
	if !ok {
		return x, refusal("gomem has no such function")
	}
	return f(x), nil
}

// accurate are functions of float64 that would lose digits near 0 as they are written: Kahan's
// quotients, with their derivatives given.
func accurate(t *translation, name string, x graph.Value) graph.Value {
	one := t.scalar(graph.F64, 1)
	switch name {
	case "log1p":
		return withSlope(x, log1p(t, x), ops.Reciprocal(ops.Add(x, one)))
	case "expm1":
		u := ops.Exp(x)
		off := ops.Sub(u, one)
		y := ops.Div(ops.Mul(off, x), ops.Log(u))
		y = ops.Where(ops.Equal(u, one), x, y)
		y = ops.Where(ops.Less(x, t.scalar(graph.F64, -40)), t.scalar(graph.F64, -1), y)
		y = ops.Where(ops.Greater(x, t.scalar(graph.F64, 40)), off, y)
		return withSlope(x, y, u)
	}
	zero := t.scalar(graph.F64, 0)
	y := ops.Add(ops.Maximum(x, zero), log1p(t, ops.Exp(ops.Neg(ops.Abs(x)))))
	return withSlope(x, y, ops.Sigmoid(x))
}

// log1p is ln(1+x): with u = 1+x rounded, ln(u)·x/(u−1) has the error of u out again.
func log1p(t *translation, x graph.Value) graph.Value {
	one := t.scalar(graph.F64, 1)
	u := ops.Add(x, one)
	return ops.Where(ops.Equal(u, one), x, ops.Div(ops.Mul(ops.Log(u), x), ops.Sub(u, one)))
}

// withSlope is y with the given slope as its derivative by x.
func withSlope(x, y, slope graph.Value) graph.Value {
	zero := ops.Sub(x, ops.StopGradient(x))
	return ops.Add(ops.StopGradient(y), ops.Mul(ops.StopGradient(slope), zero))
}

// pairs are Gorgonia's arithmetic and comparisons, by the numbers that it has for them.
func pairs() []func(a, b graph.Value) graph.Value {
	return []func(a, b graph.Value) graph.Value{
		ops.Add, ops.Sub, ops.Mul, ops.Div, ops.Pow,
		ops.Less, ops.Greater, ops.LessEqual, ops.GreaterEqual, ops.Equal, ops.NotEqual,
	}
}

// binary is arithmetic or a comparison, element by element, of values of one shape, or of a value
// and a scalar.
func binary(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error) {
	which := f.within("ʘBinaryOperator").whole("ʘBinaryOperatorType")
	if which >= len(pairs()) {
		return in[0], refusal("gomem has no such arithmetic")
	}
	a, b := in[0], in[1]
	if small, ok := t.spread[a]; ok && slices.Equal(b.Type().Sizes(), n.Shape()) {
		a = small
	} else if small, ok := t.spread[b]; ok && slices.Equal(a.Type().Sizes(), n.Shape()) {
		b = small
	}
	if !fits(a, n) || !fits(b, n) {
		return a, refusal(fmt.Sprintf("of %s and %s", a.Type(), b.Type()))
	}
	y := pairs()[which](a, b)
	if f.flag("retSame") && y.Valid() && y.Type().DType == graph.Bool {
		y = ops.Cast(y, a.Type().DType)
	}
	return y, nil
}

// fits reports whether a value has a node's sizes, or 1 for some, or is a scalar.
func fits(v graph.Value, n *G.Node) bool {
	sizes, of := v.Type().Sizes(), n.Shape()
	if v.Type().Elems() == 1 && len(sizes) <= len(of) {
		return true
	}
	if len(sizes) != len(of) {
		return false
	}
	for i := range sizes {
		if sizes[i] != of[i] && sizes[i] != 1 {
			return false
		}
	}
	return true
}

// extreme is the lesser or the greater of two elements.
func extreme(_ *translation, n *G.Node, _ *fields, in []graph.Value) (graph.Value, error) {
	if strings.HasPrefix(n.Op().String(), "Min") {
		return ops.Minimum(in[0], in[1]), nil
	}
	return ops.Maximum(in[0], in[1]), nil
}

// converted is a value in another element type.
func converted(_ *translation, n *G.Node, _ *fields, in []graph.Value) (graph.Value, error) {
	of, err := typeOf(n)
	if err != nil {
		return in[0], err
	}
	return ops.Cast(in[0], of.DType), nil
}
