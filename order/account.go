package order

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/space"
)

// align is what sizes of slots are rounded up to, in bytes: a cache line.
const align = 64

func rounded(bytes int64) int64 { return (bytes + align - 1) / align * align }

// Account is what the nodes of a program take of the device, in bytes of slots. It
// depends on what lives and on Place, not on the order.
type Account struct {
	Fixed int64   // of variables and constants that are there throughout
	Bytes []int64 // by value: of an input or a computed value, if it is ever there

	// By value: how many nodes read it on the device, and whether it is an input, which
	// is there from its first reader on.
	Readers []int32
	Input   []bool

	// By node, of those that execute on the device: the values of Bytes that it reads,
	// each once; those whose bytes its first result may take over, best first; what all
	// its results take, and those of them that have readers; and what it needs only
	// while it runs, which is workspace and staged variables.
	Runs  []bool
	Reads [][]int32
	Over  [][]int32
	Makes []int64
	Keeps []int64
	Aside []int64
}

// NewAccount works out what the nodes of a program take. Live must be filled, and
// Place may be.
func NewAccount(p *pass.Program) *Account {
	n := p.Graph.Len()
	a := &Account{Bytes: make([]int64, p.Values()), Readers: make([]int32, p.Values()),
		Input: make([]bool, p.Values()), Runs: make([]bool, n), Reads: make([][]int32, n),
		Over: make([][]int32, n), Makes: make([]int64, n), Keeps: make([]int64, n),
		Aside: make([]int64, n)}
	for _, node := range p.Graph.Nodes() {
		switch onDevice := p.Place == nil || p.Place[node.ID] == space.Device; {
		case node.Kind == graph.KindVariable || node.Kind == graph.KindConstant:
			if onDevice { // all of the graph, so that its plans agree on addresses
				a.Fixed += rounded(node.Out[0].Bytes())
			}
		case p.Live[node.ID] && node.Executes() && onDevice:
			a.runs(p, node)
		}
	}
	for _, node := range p.Graph.Nodes() {
		for i := range node.Out {
			if v := p.ValueIndex(node.Value(i)); a.Runs[node.ID] && a.Readers[v] > 0 {
				a.Keeps[node.ID] += a.Bytes[v]
			}
		}
	}
	return a
}

// runs notes what a node takes that executes on the device.
func (a *Account) runs(p *pass.Program, n *graph.Node) {
	a.Runs[n.ID] = true
	for i, t := range n.Out {
		bytes := rounded(t.Bytes())
		a.Bytes[p.ValueIndex(n.Value(i))] = bytes
		a.Makes[n.ID] += bytes
	}
	a.Aside[n.ID] = rounded(n.Cost().Scratch) + staged(p, n)
	for k, operand := range n.In {
		root, _ := operand.Resolve()
		if !moves(root.Node) || repeated(n, k, root) {
			continue
		}
		v := p.ValueIndex(root)
		if root.Node.Kind == graph.KindInput {
			a.Input[v], a.Bytes[v] = true, rounded(root.Type().Bytes())
		}
		a.Readers[v]++
		a.Reads[n.ID] = append(a.Reads[n.ID], int32(v))
	}
	a.Over[n.ID] = over(p, n)
}

// moves reports whether the values of a node have a time of their own on the device:
// variables and constants are there throughout, or staged.
func moves(n *graph.Node) bool {
	return n.Kind == graph.KindCompute || n.Kind == graph.KindInput
}

// repeated reports whether an operand before operand k has the bytes of the same root.
func repeated(n *graph.Node, k int, root graph.Value) bool {
	for _, v := range n.In[:k] {
		if other, _ := v.Resolve(); other == root {
			return true
		}
	}
	return false
}

// over lists the values that result 0 of a node may replace: the operation allows it,
// the value has as many bytes, and no other operand is a part of it.
func over(p *pass.Program, n *graph.Node) []int32 {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return nil
	}
	var out []int32
	for _, k := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[k].Resolve()
		if moves(root.Node) && root.Type().Bytes() == n.Out[0].Bytes() && once(n, root) {
			out = append(out, int32(p.ValueIndex(root)))
		}
	}
	return out
}

// once reports whether only one operand of a node has bytes of the root.
func once(n *graph.Node, root graph.Value) bool {
	count := 0
	for _, v := range n.In {
		if other, _ := v.Resolve(); other == root {
			count++
		}
	}
	return count == 1
}

// part is a part of a leaf, in bytes.
type part struct {
	leaf      graph.Value
	off, size int64
}

// staged is what the variables and constants on the host that a node reads take on
// the device: every part of its own, but no more than the whole.
func staged(p *pass.Program, n *graph.Node) int64 {
	var total int64
	var parts []part
	for k, operand := range n.In {
		root, _ := operand.Resolve()
		if p.Place == nil || moves(root.Node) || p.Place[root.Node.ID] == space.Device ||
			repeated(n, k, root) {
			continue
		}
		var bytes int64
		parts = partsOf(parts[:0], n, root)
		for _, s := range parts {
			bytes += rounded(s.size)
		}
		total += min(bytes, rounded(root.Type().Bytes()))
	}
	return total
}

// partsOf appends the parts of a leaf that a node reads, each once.
func partsOf(parts []part, n *graph.Node, leaf graph.Value) []part {
next:
	for _, operand := range n.In {
		root, off := operand.Resolve()
		if root != leaf {
			continue
		}
		for _, s := range parts {
			if s.off == off && s.size == operand.Type().Bytes() {
				continue next
			}
		}
		parts = append(parts, part{root, off, operand.Type().Bytes()})
	}
	return parts
}
