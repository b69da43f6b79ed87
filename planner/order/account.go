package order

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// Account is what the nodes of a program take of the device, in bytes of slots. It
// depends on what lives and on Place, not on the order.
type Account struct {
	Fixed int64   // of variables and constants that are there throughout
	Bytes []int64 // by value: of an input or a computed value, if it is ever there

	// By value: how many nodes read it on the device, and whether it comes from the host, as
	// inputs do, so that it is there from its first reader on.
	Readers []int32
	Input   []bool

	// By node, of those that execute on the device: the values of Bytes that it reads,
	// each once; those whose bytes its first result may take over, best first, which are
	// all of one size; what all its results take, and those of them that have readers;
	// and, only while it runs, what its workspace takes, and what the variables and
	// constants take that are staged for it.
	Runs    []bool
	Reads   [][]int32
	Over    [][]int32
	Makes   []int64
	Keeps   []int64
	Scratch []int64
	Staged  []int64
}

// NewAccount works out what the nodes of a program take. Live must be filled, and
// Place may be.
func NewAccount(p *program.Program) *Account {
	n := p.Graph.Len()
	a := &Account{Bytes: make([]int64, p.Values()), Readers: make([]int32, p.Values()),
		Input: make([]bool, p.Values()), Runs: make([]bool, n), Reads: make([][]int32, n),
		Over: make([][]int32, n), Makes: make([]int64, n), Keeps: make([]int64, n),
		Scratch: make([]int64, n), Staged: make([]int64, n)}
	b := builder{Account: a, p: p, times: make([]int32, p.Values()), hosted: p.Hosted()}
	for _, node := range p.Graph.Nodes() {
		switch onDevice := b.onDevice(node); {
		case node.Kind == graph.KindVariable || node.Kind == graph.KindConstant:
			if onDevice { // all of the graph, so that its plans agree on addresses
				a.Fixed += b.rounded(node.Out[0].Bytes())
			}
		case p.Live[node.ID] && node.Executes() && onDevice:
			b.runs(node)
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

// Least is the fewest bytes with which a node can run, beside what is fixed: operands,
// results and workspace.
func (a *Account) Least(id graph.NodeID) int64 {
	bytes := a.Makes[id] + a.Scratch[id] + a.Staged[id]
	for _, v := range a.Reads[id] {
		bytes += a.Bytes[v]
	}
	if over := a.Over[id]; len(over) > 0 {
		bytes -= a.Bytes[over[0]]
	}
	return bytes
}

// builder makes an account.
type builder struct {
	*Account
	p      *program.Program
	hosted []bool  // by node: it is on the host whatever Place says
	times  []int32 // by value: how many operands of the node at hand are parts of it
	parts  []part  // of leaves that are staged for the node at hand
}

// part is a part of a leaf, in bytes.
type part struct {
	leaf      int32 // index of its value
	whole     int64
	off, size int64
}

// rounded is what so many bytes take of the device.
func (b *builder) rounded(bytes int64) int64 { return b.p.Graph.Align().Up(bytes) }

func (b *builder) onDevice(n *graph.Node) bool {
	if b.hosted != nil && b.hosted[n.ID] {
		return false
	}
	return b.p.Place == nil || b.p.Place[n.ID] == space.Device
}

// runs notes what a node takes that executes on the device.
func (b *builder) runs(n *graph.Node) {
	id := n.ID
	b.Runs[id] = true
	for i, t := range n.Out {
		bytes := b.rounded(t.Bytes())
		b.Bytes[b.p.ValueIndex(n.Value(i))] = bytes
		b.Makes[id] += bytes
	}
	for _, operand := range n.In {
		b.operand(id, operand)
	}
	b.Scratch[id], b.Staged[id] = b.rounded(n.Cost().Scratch), b.staged()
	b.Over[id] = b.over(n)
	for _, v := range b.Reads[id] {
		b.times[v] = 0
	}
	b.parts = b.parts[:0]
}

// operand notes what an operand takes. Variables and constants have no time of their
// own on the device: they are there throughout, or staged.
func (b *builder) operand(id graph.NodeID, operand graph.Value) {
	root, _ := operand.Resolve()
	v, bytes := int32(b.p.ValueIndex(root)), root.Type().Bytes()
	switch root.Node.Kind {
	case graph.KindVariable, graph.KindConstant:
		if !b.onDevice(root.Node) {
			_, off, size := operand.Staged()
			b.parts = append(b.parts, part{v, bytes, off, size})
		}
		return
	case graph.KindInput:
		b.Input[v], b.Bytes[v] = true, b.rounded(bytes)
	default:
		if !b.onDevice(root.Node) {
			b.Input[v], b.Bytes[v] = true, b.rounded(bytes)
		}
	}
	if b.times[v]++; b.times[v] == 1 {
		b.Readers[v]++
		b.Reads[id] = append(b.Reads[id], v)
	}
}

// staged is what the parts of leaves take: each its own, but those of one leaf no more
// than the whole.
func (b *builder) staged() int64 {
	slices.SortFunc(b.parts, func(x, y part) int {
		return cmp.Or(cmp.Compare(x.leaf, y.leaf), cmp.Compare(x.off, y.off),
			cmp.Compare(x.size, y.size))
	})
	b.parts = slices.Compact(b.parts)
	var total, leaf int64
	for i, s := range b.parts {
		leaf += b.rounded(s.size)
		if i+1 == len(b.parts) || b.parts[i+1].leaf != s.leaf {
			total += min(leaf, b.rounded(s.whole))
			leaf = 0
		}
	}
	return total
}

// over lists the values that result 0 of a node may replace: the operation allows it,
// the value has as many bytes, and no other operand is a part of it.
func (b *builder) over(n *graph.Node) []int32 {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return nil
	}
	var out []int32
	for _, k := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[k].Resolve()
		v := b.p.ValueIndex(root)
		if b.times[v] == 1 && root.Type().Bytes() == n.Out[0].Bytes() {
			out = append(out, int32(v))
		}
	}
	return out
}
