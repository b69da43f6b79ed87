// Package randgraph builds graphs for tests and benchmarks: [Synthetic], a
// training step of any number of nodes whose operations are only shapes, and
// [Random], a small random training step that computes.
package randgraph

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// work stands for an operation: any operands, one result of a given width.
type work struct{ Rows, Cols int }

func (work) Name() string { return "work" }

func (w work) Infer([]graph.Type) ([]graph.Type, error) {
	return []graph.Type{tensor.Of(graph.F32, w.Rows, w.Cols)}, nil
}

func (work) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{FLOPs: int64(out[0].Elems()), Bytes: out[0].Bytes()}
}

func (work) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

// apply stands for an update.
type apply struct{}

func (apply) Name() string                             { return "apply" }
func (apply) Infer([]graph.Type) ([]graph.Type, error) { return nil, nil }
func (apply) Cost(in, _ []graph.Type) graph.Cost {
	return graph.Cost{Bytes: in[0].Bytes()}
}
func (apply) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

// Model is a graph with what a step of it computes.
type Model struct {
	Graph   *graph.Graph
	Fetches []graph.Value
	Updates []graph.NodeID
	Inputs  []graph.Value
}

// width is the number of columns of a layer: uneven, so that packing has work.
func width(layer int) int { return 16 + 16*(layer*7919%5) }

// Synthetic builds a training step of about the given number of nodes: layers
// of four branches that join, the mirror image backward, one update a variable.
// Every value of the forward pass is read again by the backward pass.
func Synthetic(nodes int) *Model {
	const branches = 4
	layers := max(1, nodes/(4*branches+2))
	g := graph.New()
	m := &Model{Graph: g, Inputs: []graph.Value{g.Input("x", tensor.Of(graph.F32, 32, width(0)))}}
	run := func(w int, in ...graph.Value) graph.Value {
		return g.Apply(work{32, w},
			in...).Value(0)
	}
	h := m.Inputs[0]
	type layer struct {
		in       graph.Value
		weights  []graph.Value
		branches []graph.Value
	}
	var made []layer
	for i := range layers {
		l := layer{in: h}
		for b := range branches {
			w := g.Variable(fmt.Sprintf("layer%d/w%d", i, b), tensor.Of(graph.F32, 8, width(i+b)),
				graph.Init{})
			l.weights = append(l.weights, w)
			l.branches = append(l.branches, run(width(i), h, w))
		}
		h = run(width(i), l.branches...)
		made = append(made, l)
	}
	d := run(1, h)
	m.Fetches = []graph.Value{d}
	for i := layers - 1; i >= 0; i-- {
		l := made[i]
		var back []graph.Value
		for b, w := range l.weights {
			gw := run(width(i), d, l.in, l.branches[b])
			back = append(back, run(width(i), d, w, l.branches[b]))
			m.Updates = append(m.Updates, g.Update(apply{}, []graph.Value{w}, gw).ID)
		}
		d = run(width(i), back...)
	}
	return m
}

func init() {
	kernel.Register(kernel.CPU, func(work, *kernel.Call) error { return nil })
	kernel.Register(kernel.CPU, func(apply, *kernel.Call) error { return nil })
}
