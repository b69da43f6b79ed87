package gorgonia

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	G "gorgonia.org/gorgonia"
)

// translation is a graph of Gorgonia becoming one of gomem.
type translation struct {
	graph   *graph.Graph
	learn   map[*G.Node]bool // that become variables
	values  map[*G.Node]graph.Value
	spread  map[graph.Value]graph.Value // of what repeats another along axes of size 1: the other
	inputs  []*G.Node
	stats   []stat
	seed    graph.Value // i32[2], the input of random operations; none if there are none
	names   map[string]bool
	refused ErrRefused
}

// maker makes what a node is of the values of its operands, which are all there is of it but for
// its operation's fields.
type maker func(t *translation, n *G.Node, f *fields, in []graph.Value) (graph.Value, error)

// translate translates all that some nodes depend on.
func translate(roots, learn G.Nodes) (*translation, error) {
	t := &translation{graph: graph.New(), learn: map[*G.Node]bool{}, names: map[string]bool{},
		values: map[*G.Node]graph.Value{}, spread: map[graph.Value]graph.Value{}}
	for _, n := range learn {
		t.learn[n] = true
	}
	for _, n := range order(roots) {
		if err := t.node(n); err != nil {
			return nil, fmt.Errorf("node %s, %v: %w", n.Name(), n.Op(), err)
		}
	}
	if len(t.refused.Refusals) > 0 {
		return nil, &t.refused
	}
	return t, t.graph.Err()
}

// order is all that some nodes depend on, and these, operands first.
func order(roots G.Nodes) G.Nodes {
	var out G.Nodes
	seen := map[*G.Node]bool{}
	stack := slices.Clone(roots)
	slices.Reverse(stack)
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		var todo G.Nodes
		for _, c := range operands(n) {
			if _, ok := seen[c]; !ok {
				todo = append(todo, c)
			}
		}
		if done, ok := seen[n]; ok && done {
			stack = stack[:len(stack)-1]
			continue
		}
		if len(todo) == 0 {
			seen[n] = true
			out = append(out, n)
			stack = stack[:len(stack)-1]
			continue
		}
		slices.Reverse(todo)
		stack = append(stack, todo...)
	}
	return out
}

// operands are what a node's operation is of. Gorgonia's graph finds them by a node's number, which
// a constant may share with another node.
func operands(n *G.Node) G.Nodes {
	children := read(n).find("children", reflect.Slice)
	out := make(G.Nodes, children.Len())
	for i := range out {
		out[i] = (*G.Node)(children.Index(i).UnsafePointer())
	}
	return out
}

// node translates one whose operands are translated. One that is refused has a placeholder for a
// value, so that all others that are refused are found.
func (t *translation) node(n *G.Node) error {
	v, err := t.make(n)
	var why refusal
	if errors.As(err, &why) {
		t.refused.add(n, string(why))
		d, _ := elementOf(n.Dtype())
		v, err = t.graph.Input(t.name("refused"), graph.Of(d, n.Shape()...)), nil
	}
	t.values[n] = v
	return errors.Join(err, t.graph.Err())
}

// make is the value of a node.
func (t *translation) make(n *G.Node) (graph.Value, error) {
	of, err := typeOf(n)
	switch {
	case err != nil:
		return graph.Value{}, err
	case t.learn[n]:
		return t.graph.Variable(t.name(n.Name()), of, graph.Init{}), nil
	case n.Op() == nil:
		t.inputs = append(t.inputs, n)
		return t.graph.Input(t.name(n.Name()), of), nil
	}
	kind := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", n.Op()), "*"), "gorgonia.")
	m, ok := makers()[kind]
	if !ok {
		return graph.Value{}, refusal(unknown(kind))
	}
	var in []graph.Value
	for _, c := range operands(n) {
		in = append(in, t.values[c])
	}
	f := read(n.Op())
	v, err := m(t, n, f, in)
	if err = errors.Join(err, f.err, t.graph.Err()); err != nil {
		return v, err
	}
	if v.Type().DType != of.DType || v.Type().Elems() != of.Elems() {
		return v, fmt.Errorf("gives %s, want %s", v.Type(), of)
	}
	return t.shaped(v, of.Sizes()), nil
}

// shaped is a value with other sizes, or itself.
func (t *translation) shaped(v graph.Value, sizes []int) graph.Value {
	if slices.Equal(v.Type().Sizes(), sizes) {
		return v
	}
	return ops.ReshapeSizes(v, sizes...)
}

// name is a name that the graph has not given yet, from one that it may not take.
func (t *translation) name(of string) string {
	of = strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == ':' || r == 0x7f {
			return '_'
		}
		return r
	}, of)
	if of == "" {
		of = "node"
	}
	name := of
	for i := 1; t.names[name]; i++ {
		name = fmt.Sprintf("%s#%d", of, i)
	}
	t.names[name] = true
	return name
}

// scalar is a constant of a floating-point type.
func (t *translation) scalar(d graph.DType, x float64) graph.Value {
	if d == graph.F32 {
		return ops.Full(t.graph, graph.Of(d), float32(x))
	}
	v, err := gomem.F64([]float64{x})
	if err != nil {
		t.graph.Fail(err)
	}
	return ops.Cast(t.graph.Constant("scalar", v), d)
}

// makers are those of Gorgonia's operations, by their types' names.
func makers() map[string]maker {
	return map[string]maker{
		"constantScalar": constant, "constantTensor": constant,
		"elemUnaryOp": unary, "elemBinOp": binary,
		"minBetween": extreme, "maxBetween": extreme, "dtConvOp": converted,

		"linAlgBinOp": product, "tensordotOp": contraction,

		"sumOp": sum, "maxOp": largest, "sizeOp": size,
		"softmaxOp": softmax, "GroupNormOp": groupNorm, "BatchNormOp": batchNorm,

		"atOp": at, "sliceOp": slice, "repeatOp": repeated, "transposeOp": transposed,
		"concatOp": joined, "reshapeOp": reshaped, "byIndicesOp": byIndices,
		"upsampleOp": upsampled,

		"im2colOp": im2col, "maxPoolOp": maxPool, "avgPoolOp": avgPool,
		"globalAveragePoolOp": globalPool,

		"dropoutOp": dropout, "randomOp": random,
	}
}

// unknown is why an operation is refused that there is no maker of.
func unknown(kind string) string {
	switch kind {
	case "ctcLossOp":
		return "its gradient is by probabilities, gomem's by logits: use ops.CTCLoss in Go"
	case "sparsemaxOp":
		return "gomem has no sparsemax: use SoftMax"
	case "yoloOp":
		return "gomem has no detection heads: compute its loss of the network's output"
	}
	if strings.Contains(strings.ToLower(kind), "diff") || kind == "sliceIncrOp" ||
		kind == "col2imOp" {
		return "it is of a gradient: those are by graph/autodiff, of the loss"
	}
	return "gomem does not know it"
}

// constant is the value of a node as a constant.
func constant(t *translation, n *G.Node, _ *fields, _ []graph.Value) (graph.Value, error) {
	of, err := typeOf(n)
	if err != nil {
		return graph.Value{}, err
	}
	v, err := tensorOf(n, of)
	if err != nil {
		return graph.Value{}, err
	}
	return t.graph.Constant("constant", v), nil
}
