package onnx

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/onnx"
)

// node is a node that is being built. Its methods end the building of it, by a panic that run
// recovers, where the node is not as an operator wants it: so operators have no `if err`.
type node struct {
	*onnx.Node
	b     *builder
	names *scope
	in    []operand
	out   []operand
	asked map[string]bool // attributes that the operator has looked at
}

// failure is what a node's methods panic with.
type failure struct{ error }

// fail ends the building of a node.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// run builds a node.
func (n *node) run() (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		case runtime.Error: // it read the type of a value that is none, or what is not there
			if err = n.b.g.Err(); err == nil {
				err = fmt.Errorf("it is not as its operator wants it: %w", f)
			}
		default:
			panic(f)
		}
	}()
	n.apply()
	if err := n.b.g.Err(); err != nil {
		return err
	}
	for _, a := range n.Attributes {
		if !n.asked[a.Name] {
			return fmt.Errorf("attribute %q is not honoured: nothing is known of it", a.Name)
		}
	}
	return nil
}

// apply builds a node by its function, or by its operator; at once, if all it reads is known.
func (n *node) apply() {
	if f := n.b.net.functions[functionName{n.Domain, n.Op, n.Overload}]; f != nil {
		n.inline(f)
		return
	}
	op := operators[operatorName(n.Node)]
	if op.bodies || !n.fold(op) {
		op.build(n)
	}
}

// operatorName is an operator with its domain, where that is not ONNX's own.
func operatorName(n *onnx.Node) string {
	if n.Domain == "" || n.Domain == "ai.onnx" {
		return n.Op
	}
	return n.Domain + "." + n.Op
}

// version is the version of the operators of the node's domain.
func (n *node) version() int64 {
	domain := n.Domain
	if domain == "ai.onnx" {
		domain = ""
	}
	return onnx.Version(n.b.opsets, domain)
}

// has reports whether operand i is there.
func (n *node) has(i int) bool { return i < len(n.in) && !n.in[i].absent() }

// wants reports whether result i is asked for, and read.
func (n *node) wants(i int) bool { return i < len(n.Out) && len(n.b.net.readers[n.Out[i]]) > 0 }

// x is operand i, which has to be a tensor.
func (n *node) x(i int) graph.Value {
	if !n.has(i) {
		fail("operand %d is left out", i)
	}
	if n.in[i].list != nil {
		fail("operand %d is a sequence", i)
	}
	v := n.b.onGraph(n.in[i])
	if !v.Valid() {
		fail("%w", n.b.g.Err())
	}
	return v
}

// in0 is operand i, no value where it is left out.
func (n *node) in0(i int) value {
	if !n.has(i) {
		return value{}
	}
	return n.x(i)
}

// wide is operand i, as f32 where it has 16 bits.
func (n *node) wide(i int) value {
	x := n.x(i)
	if d := x.Type().DType; d == graph.F16 || d == graph.BF16 {
		return ops.Cast(x, graph.F32)
	}
	return x
}

// narrow is a result in f32 as the type of operand 0.
func (n *node) narrow(y value) value {
	if d := n.x(0).Type().DType; y.Valid() && (d == graph.F16 || d == graph.BF16) {
		return ops.Cast(y, d)
	}
	return y
}

// xs are all operands from i on.
func (n *node) xs(i int) []graph.Value {
	var list []graph.Value
	for ; i < len(n.in); i++ {
		list = append(list, n.x(i))
	}
	return list
}

// known are the elements of operand i, which has to be known while the graph is built.
func (n *node) known(i int) tensor.View {
	if !n.has(i) {
		fail("operand %d is left out", i)
	}
	o := n.in[i]
	switch {
	case o.known != nil:
		return *o.known
	case o.fixed():
		v, err := o.elements(n.b.net.file)
		if err != nil {
			fail("%w", err)
		}
		return v
	case o.value.Valid() && o.value.Node.Kind == graph.KindConstant:
		return o.value.Node.Data
	}
	fail("operand %d, %q, depends on what is fed, and shapes have to be known when the network is "+
		"built", i, n.In[i])
	panic("unreachable")
}

// ints are the elements of operand i, which has to be known, as integers.
func (n *node) ints(i int) []int {
	var list []int
	for _, v := range n.known(i).To(tensor.I64).I64() {
		list = append(list, int(v))
	}
	return list
}

// floats are the elements of operand i, which has to be known.
func (n *node) floats(i int) []float64 {
	return n.known(i).To(tensor.F64).F64()
}

// scalar is the only element of operand i, which has to be known; otherwise, where it is left out,
// as given.
func (n *node) scalar(i int, otherwise float64) float64 {
	if !n.has(i) {
		return otherwise
	}
	v := n.floats(i)
	if len(v) != 1 {
		fail("operand %d has %d elements, want one", i, len(v))
	}
	return v[0]
}

// attribute is an attribute of a name and a kind, nil where there is none. That of a function's
// caller stands for one that refers to it.
func (n *node) attribute(name string, kind onnx.AttributeKind) *onnx.Attribute {
	n.asked[name] = true
	i := slices.IndexFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	a := n.Attributes[i]
	if a.Ref != "" {
		if n.b.call == nil {
			fail("attribute %q is one of a function, and there is none", name)
		}
		a = n.b.call.attributes[a.Ref]
	}
	if a != nil && a.Kind != kind {
		fail("attribute %q is of another kind than the operator's", name)
	}
	return a
}

// int is an attribute, or its default.
func (n *node) int(name string, otherwise int) int {
	if a := n.attribute(name, onnx.IntKind); a != nil {
		return int(a.Int)
	}
	return otherwise
}

// flag is an attribute that is 0 or 1.
func (n *node) flag(name string, otherwise bool) bool {
	if a := n.attribute(name, onnx.IntKind); a != nil {
		return a.Int != 0
	}
	return otherwise
}

// float is an attribute, or its default.
func (n *node) float(name string, otherwise float32) float32 {
	if a := n.attribute(name, onnx.FloatKind); a != nil {
		return a.Float
	}
	return otherwise
}

// text is an attribute, or its default.
func (n *node) text(name, otherwise string) string {
	if a := n.attribute(name, onnx.StringKind); a != nil {
		return a.String
	}
	return otherwise
}

// list is an attribute of integers; nil where there is none.
func (n *node) list(name string) []int {
	a := n.attribute(name, onnx.IntsKind)
	if a == nil {
		return nil
	}
	list := make([]int, len(a.Ints))
	for i, v := range a.Ints {
		list[i] = int(v)
	}
	return list
}

// axes are an attribute in old versions, and operand i in those from since on; nil if neither is
// there.
func (n *node) axes(i int, since int64) []int {
	if n.version() < since {
		return n.list("axes")
	}
	if !n.has(i) {
		return nil
	}
	return n.ints(i)
}

// only refuses values of an attribute that are not among those that are known.
func (n *node) only(name, value string, known ...string) {
	if !slices.Contains(known, value) {
		fail("attribute %s is %q: want one of %q", name, value, known)
	}
}

// give makes values the node's results.
func (n *node) give(values ...graph.Value) {
	for _, v := range values {
		if !v.Valid() {
			if err := n.b.g.Err(); err != nil {
				fail("%w", err)
			}
			panic(failure{errors.New("it has no result")})
		}
		n.out = append(n.out, operand{value: v})
	}
}

// giveKnown makes elements the node's results.
func (n *node) giveKnown(views ...tensor.View) {
	for _, v := range views {
		n.out = append(n.out, operand{known: &v})
	}
}

// mostListed is how many elements of what is known an operator lists: a file may say any number.
const mostListed = 1 << 24

// few refuses numbers of elements that nobody means.
func few(what string, n int) int {
	if n < 0 || n > mostListed {
		fail("%d %s: want 0 to %d", n, what, mostListed)
	}
	return n
}

// axis is an axis from the front, of one that may be counted from the end.
func axis(a, rank int) int {
	if a < 0 {
		a += rank
	}
	if a < 0 || a >= rank {
		fail("there is no axis %d: the operand has %d", a, rank)
	}
	return a
}

// index is operand i as indices i32 along an axis of so many elements: those below zero count
// from the end.
func (n *node) index(i, size int) graph.Value {
	x := n.x(i)
	if o := n.in[i]; o.known != nil {
		v := tensor.New(graph.Type{DType: graph.I32, Shape: o.known.Type.Shape})
		for k, at := range o.known.To(tensor.I64).I64() {
			if at < 0 {
				at += int64(size)
			}
			if at < 0 || at >= int64(size) {
				fail("index %d of operand %d is not in an axis of %d", at, i, size)
			}
			v.I32()[k] = int32(at)
		}
		return n.b.g.Constant("indices", v)
	}
	at := ops.Cast(x, graph.I32)
	zero := n.b.i32(0)
	return ops.Where(ops.Less(at, zero), ops.Add(at, n.b.i32(size)), at)
}

// i32 is a constant.
func (b *builder) i32(v int) graph.Value {
	return b.g.Constant("number", tensor.FromI32([]int32{int32(v)}))
}
