package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Shape is a family of graphs that grow in one respect. Planning one takes time
// that grows no faster than n log n.
type Shape struct {
	Name  string
	Build func(n int) *Model // about n nodes, or a small multiple
}

// Shapes are graphs in which something there is few of in models is there n
// times.
func Shapes() []Shape {
	return []Shape{
		{"chain", chain},
		{"parts of a split", splitParts},
		{"views of views", viewsOfViews},
		{"parts of a variable", variableParts},
		{"parts of a variable, one reader", variablePartsAtOnce},
		{"readers of a value", readers},
		{"results of an operation", results},
		{"operands of an operation", operands},
		{"variables", manyVariables},
		{"readers of a variable", recurrent},
		{"fetches", fetches},
		{"equal names", equalNames},
		{"branches", branches},
		{"towers", towers},
		{"elementwise", elementwise},
	}
}

// row is the type of all values of the shapes but the views.
var row = tensor.Of(graph.F32, 1, 64)

// sketch is a model under construction from operations that are only shapes.
type sketch struct {
	*Model
	x graph.Value
}

func newSketch() *sketch {
	g := graph.New()
	x := g.Input("x", row)
	return &sketch{&Model{Graph: g, Inputs: []graph.Value{x}}, x}
}

// run is an operation on any operands.
func (s *sketch) run(in ...graph.Value) graph.Value {
	return s.Graph.Apply(work{1, 64}, in...).Value(0)
}

// each is an operation on each of the values.
func (s *sketch) each(values []graph.Value) []graph.Value {
	out := make([]graph.Value, len(values))
	for i, v := range values {
		out[i] = s.run(v)
	}
	return out
}

// fetching is the model that computes values.
func (s *sketch) fetching(values ...graph.Value) *Model {
	s.Fetches = values
	return s.Model
}

func chain(n int) *Model {
	s := newSketch()
	h := s.x
	for range n {
		h = s.run(h)
	}
	return s.fetching(h)
}

func splitParts(n int) *Model {
	s := newSketch()
	whole := s.Graph.Apply(work{n, 64}, s.x).Value(0)
	return s.fetching(s.run(s.each(ops.Unstack(whole))...))
}

func viewsOfViews(n int) *Model {
	s := newSketch()
	h := s.run(s.x)
	var out []graph.Value
	for i := range n {
		h = ops.ReshapeSizes(h, 1+63*(i%2), 64-63*(i%2))
		out = append(out, s.run(h))
	}
	return s.fetching(s.run(out...))
}

func variableParts(n int) *Model {
	s := newSketch()
	w := s.Graph.Variable("w", tensor.Of(graph.F32, n, 64), graph.Init{})
	h := s.x
	for _, part := range ops.Unstack(w) {
		h = s.run(h, part)
	}
	return s.fetching(h)
}

func variablePartsAtOnce(n int) *Model {
	s := newSketch()
	w := s.Graph.Variable("w", tensor.Of(graph.F32, n, 64), graph.Init{})
	dw := s.run(ops.Unstack(w)...)
	s.Updates = []graph.NodeID{s.Graph.Update(apply{}, []graph.Value{w}, dw).ID}
	return s.fetching(dw)
}

func readers(n int) *Model {
	s := newSketch()
	h := s.run(s.x)
	last := h
	for range n {
		last = s.run(h, last)
	}
	return s.fetching(last)
}

func results(n int) *Model {
	s := newSketch()
	node := s.Graph.Apply(burst{n}, s.x)
	parts := make([]graph.Value, n)
	for i := range parts {
		parts[i] = node.Value(i)
	}
	return s.fetching(s.run(s.each(parts)...))
}

func operands(n int) *Model {
	s := newSketch()
	var in []graph.Value
	for range n {
		in = append(in, s.run(s.x))
	}
	return s.fetching(ops.Concat(0, in...))
}

func manyVariables(n int) *Model {
	s := newSketch()
	d := s.run(s.x)
	for i := range n {
		w := s.Graph.Variable(fmt.Sprintf("w%d", i), tensor.Of(graph.F32), graph.Init{})
		d = s.run(d, w)
		s.Updates = append(s.Updates, s.Graph.Update(apply{}, []graph.Value{w}, d).ID)
	}
	return s.fetching(d)
}

func recurrent(n int) *Model {
	s := newSketch()
	w := s.Graph.Variable("w", row, graph.Init{})
	h := []graph.Value{s.x}
	for i := range n {
		h = append(h, s.run(h[i], w))
	}
	d := s.run(h[n])
	dw := d
	for i := n - 1; i >= 0; i-- {
		dw = s.run(dw, s.run(d, h[i]))
		d = s.run(d, w)
	}
	s.Updates = []graph.NodeID{s.Graph.Update(apply{}, []graph.Value{w}, dw).ID}
	return s.fetching(d)
}

func fetches(n int) *Model {
	s := newSketch()
	var out []graph.Value
	for range n {
		out = append(out, s.run(s.x))
	}
	return s.fetching(out...)
}

func equalNames(n int) *Model {
	s := newSketch()
	h := s.x
	for i := range n {
		leave := s.Graph.Scope("layer")
		w := s.Graph.State(fmt.Sprintf("work_%d", 2*i), row, graph.Init{})
		h = s.run(h, w)
		leave()
	}
	return s.fetching(h)
}

func branches(n int) *Model {
	s := newSketch()
	h := s.run(s.x)
	var ends []graph.Value
	for range n / 4 {
		a := s.run(h)
		ends = append(ends, s.run(a, s.run(a)))
	}
	back := s.run(ends...)
	for i := len(ends) - 1; i >= 0; i-- {
		back = s.run(back, ends[i])
	}
	return s.fetching(back)
}

// towers are two chains that meet at the end, and are read backwards.
func towers(n int) *Model {
	s := newSketch()
	a, b := []graph.Value{s.x}, []graph.Value{s.x}
	for i := range n / 4 {
		a, b = append(a, s.run(a[i])), append(b, ops.Sigmoid(b[i]))
	}
	d := s.run(a[len(a)-1], b[len(b)-1])
	e := ops.Tanh(d)
	for i := len(a) - 1; i > 0; i-- {
		d = ops.Mul(s.run(d, a[i]), b[i])
		e = ops.Mul(ops.Tanh(ops.Mul(e, a[i])), b[i])
	}
	return s.fetching(ops.Add(d, e))
}

// elementwise has nothing but operations that fuse, with their gradients.
func elementwise(n int) *Model {
	g := graph.New()
	x := g.Input("x", row)
	w := g.Variable("w", row, graph.Init{})
	h := ops.Mul(x, w)
	for range n / 12 {
		h = ops.Mul(h, ops.Sigmoid(ops.Add(h, w)))
	}
	loss := ops.Mean(h)
	dw := autodiff.Grad(loss, w)[0]
	return &Model{Graph: g, Inputs: []graph.Value{x}, Fetches: []graph.Value{loss},
		Updates: []graph.NodeID{ops.SGD(w, dw, ops.Ones(g, tensor.Of(graph.F32))).ID}}
}

// burst stands for an operation with many results.
type burst struct{ Results int }

func (burst) Name() string { return "burst" }

func (b burst) Infer([]graph.Type) ([]graph.Type, error) {
	out := make([]graph.Type, b.Results)
	for i := range out {
		out[i] = row
	}
	return out, nil
}

func (burst) Cost(_, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: int64(len(out)) * row.Bytes()}
}

func (burst) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

func init() {
	kernel.Register(kernel.CPU, func(burst, *kernel.Call) error { return nil })
}
