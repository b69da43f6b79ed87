package fold

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/reference"
)

// How much is computed before the first step, of all that is folded: some tenths of a second.
const (
	mostBytes = 64 << 20
	mostFLOPs = 1 << 29
)

// Fold builds the graph that computes the fetches and applies the updates of g in which what is
// known before the first step is a constant: see the package. exact says of an operation that the
// device computes it to the bits of the kernels here. The graph has all inputs and variables of g,
// in their order, and of the rest what is needed. The error is g's own.
func Fold(exact func(graph.Op) bool, g *graph.Graph, fetches []graph.Value,
	updates []graph.NodeID) (*Result, error) {
	if err := g.Verify(); err != nil {
		return nil, err
	}
	f := newFolder(exact, g)
	f.choose(fetches, updates)
	data, err := reference.Values(g, f.folded...)
	if err != nil { // a kernel refuses what it is given: that is for the step to say
		f = newFolder(func(graph.Op) bool { return false }, g)
		f.choose(fetches, updates)
	}
	r, err := f.build(data)
	if err != nil {
		return nil, fmt.Errorf("fold: %w", err)
	}
	return r, nil
}

// folder chooses what is folded.
type folder struct {
	g      *graph.Graph
	known  []bool
	work   []effort // by node: of computing it from constants alone
	needed []bool   // by node: by what is not known, or it is fetched
	folded []graph.Value
}

// effort is what computing a node takes with all that it depends on, each operand counted with all
// that it depends on: more than it is, where they have something in common.
type effort struct {
	flops, bytes int64 // bytes of all results on the way
	source       int64 // bytes of the constants
}

func newFolder(exact func(graph.Op) bool, g *graph.Graph) *folder {
	f := &folder{g: g, known: make([]bool, g.Len()), work: make([]effort, g.Len()),
		needed: make([]bool, g.Len())}
	for _, n := range g.Nodes() {
		if f.known[n.ID] = f.isKnown(exact, n); f.known[n.ID] {
			f.work[n.ID] = f.effort(n)
		}
	}
	return f
}

// isKnown reports whether a node comes out the same at every step, and can be computed here.
func (f *folder) isKnown(exact func(graph.Op) bool, n *graph.Node) bool {
	if n.Kind == graph.KindConstant {
		return true
	}
	unknown := func(v graph.Value) bool { return !f.known[v.Node.ID] }
	if n.Kind != graph.KindCompute || n.Exchanges() || slices.ContainsFunc(n.In, unknown) {
		return false
	}
	if !n.Executes() {
		return true
	}
	_, err := kernel.Lookup(kernel.CPU, n.Op)
	return err == nil && exact(n.Op)
}

// effort is that of a node that is known.
func (f *folder) effort(n *graph.Node) effort {
	var e effort
	for i, v := range n.In {
		if !slices.Contains(n.In[:i], v) {
			of := f.work[v.Node.ID]
			e.flops, e.bytes, e.source = e.flops+of.flops, e.bytes+of.bytes, e.source+of.source
		}
	}
	switch {
	case n.Kind == graph.KindConstant:
		e.source = n.Out[0].Bytes()
	case n.Executes():
		e.flops += n.Cost().FLOPs
		e.bytes += n.Cost().Scratch + size(n)
	}
	// More than the limits is no more than that: sums of sums would overflow.
	return effort{min(e.flops, mostFLOPs+1), min(e.bytes, mostBytes+1),
		min(e.source, mostBytes+1)}
}

// size is the bytes of a node's results.
func size(n *graph.Node) (sum int64) {
	for _, t := range n.Out {
		sum += t.Bytes()
	}
	return sum
}

// choose goes from the results to the leaves. Of what is folded nothing more is needed.
func (f *folder) choose(fetches []graph.Value, updates []graph.NodeID) {
	read := map[graph.Value]bool{}
	for _, id := range updates {
		f.needed[id] = true
	}
	for _, v := range fetches {
		f.needed[v.Node.ID], read[v] = true, true
	}
	left := effort{flops: mostFLOPs, bytes: mostBytes}
	for _, n := range slices.Backward(f.g.Nodes()) {
		if !f.needed[n.ID] {
			continue
		}
		if w := f.work[n.ID]; f.pays(n) && w.flops <= left.flops && w.bytes <= left.bytes {
			left.flops, left.bytes = left.flops-w.flops, left.bytes-w.bytes
			for i := range slices.Backward(n.Out) {
				if v := n.Value(i); read[v] {
					f.folded = append(f.folded, v)
				}
			}
			continue
		}
		for _, v := range n.In {
			f.needed[v.Node.ID], read[v] = true, true
		}
	}
	slices.Reverse(f.folded)
}

// pays reports whether a node is better a constant: what is only moved and gets larger is not.
func (f *folder) pays(n *graph.Node) bool {
	w := f.work[n.ID]
	return f.known[n.ID] && n.Executes() && (w.flops > 0 || size(n) <= w.source)
}

// build makes the new graph, given what is folded.
func (f *folder) build(data []tensor.View) (*Result, error) {
	r := newResult(f.g)
	for _, n := range f.g.Nodes() {
		some := 0 // of its results are folded
		for some < len(f.folded) && f.folded[some].Node == n {
			some++
		}
		var err error
		switch {
		case some > 0:
			err = r.fold(f.folded[:some], data[:some])
			f.folded, data = f.folded[some:], data[some:]
		case f.needed[n.ID] || n.Kind == graph.KindInput || n.Kind == graph.KindVariable:
			err = r.copy(n, r.operands(n))
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fold has constants for results of a node.
func (r *Result) fold(results []graph.Value, data []tensor.View) (err error) {
	n := results[0].Node
	r.values[n.ID] = make([]graph.Value, len(n.Out))
	for i, v := range results {
		name := n.Name
		if i > 0 {
			name = r.names.Take(name + "/" + strconv.Itoa(v.Index))
		}
		if r.values[n.ID][v.Index], err = r.constant(n, name, data[i]); err != nil {
			return err
		}
		r.Changes = append(r.Changes, Change{name, v.Type().Bytes(), "folded"})
	}
	return nil
}
