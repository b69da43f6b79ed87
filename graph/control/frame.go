package control

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/plan/space"
)

// aligned is what addresses in a frame are multiples of: a frame is laid out before it is known for
// which device.
const aligned = space.Wide

// frame is where a body's values are, from the frame's first byte on.
type frame struct {
	bytes   int64
	all     []*graph.Node          // but for leaves, in order
	nodes   []*graph.Node          // those of all that are executed, views are not
	at      map[graph.Value]int64  // of operands and of what nodes compute
	outside map[graph.Value]int    // operands that are read where they are, by their number
	scratch map[graph.NodeID]int64 // of nodes
	staged  map[int]int64          // results that are to be copied before an operand is written
}

// newFrame packs the values of a body: operands live throughout and results until the end, so that
// operands may be written for the next iteration while all results are there; those results that
// are an operand, or in one, are copied first. Operands lo to hi-1, of which the states come first
// as in the results, are in the frame; the others stay the same, and where they are. A result that
// an operation may write over an operand of it is there, as a sum over iterations is in the sum
// before it.
func newFrame(g *graph.Graph, in, out []graph.Value, lo, hi int) frame {
	f := frame{at: map[graph.Value]int64{}, scratch: map[graph.NodeID]int64{},
		staged: map[int]int64{}, outside: map[graph.Value]int{}}
	live := g.Ancestors(nodes(out))
	for _, n := range g.Nodes() {
		if !live[n.ID] || n.Leaf() {
			continue
		}
		f.all = append(f.all, n)
		if _, ok := n.Op.(graph.Viewer); !ok {
			f.nodes = append(f.nodes, n)
		}
	}
	p := packing{end: len(f.nodes) + 1, block: map[graph.Value]int{}}
	p.findLast(f.nodes, out)
	operand := map[graph.Value]bool{}
	for i, v := range in {
		if i < lo || i >= hi {
			f.outside[v] = i
			continue
		}
		operand[v] = true
		p.add(v, -1, p.end)
	}
	p.operands = len(p.blocks)
	for t, n := range f.nodes {
		for _, v := range n.In {
			root, _ := v.Resolve()
			p.reads(root, t)
		}
		for i := range n.Out {
			if over, ok := p.takesOver(n, t, out); i == 0 && ok {
				p.block[n.Value(0)] = over
				continue
			}
			p.add(n.Value(i), t, t)
		}
	}
	for _, v := range out {
		root, _ := v.Resolve()
		p.reads(root, p.end)
	}
	own := len(p.blocks)
	for t, n := range f.nodes {
		p.blocks = append(p.blocks, arena.Block{From: t, To: t, Bytes: scratchOf(n)})
	}
	for i, v := range out {
		if root, _ := v.Resolve(); operand[root] {
			f.staged[i] = int64(len(p.blocks))
			p.blocks = append(p.blocks,
				arena.Block{From: p.end, To: p.end, Bytes: v.Type().Bytes()})
		}
	}
	packed := arena.Of(aligned).Pack(p.blocks)
	f.bytes = packed.Peak
	for v, i := range p.block {
		f.at[v] = packed.Offsets[i]
	}
	for t, n := range f.nodes {
		f.scratch[n.ID] = packed.Offsets[own+t]
	}
	for i, block := range f.staged {
		f.staged[i] = packed.Offsets[block]
	}
	return f
}

// scratchOf is the workspace that a node needs, on any device.
func scratchOf(n *graph.Node) int64 {
	return max(n.Cost().Scratch, cuda.ScratchOf(n.Op, n.InTypes(), n.Out))
}

// packing gathers blocks.
type packing struct {
	end      int
	operands int // blocks that are a body's operands: the first ones
	blocks   []arena.Block
	block    map[graph.Value]int
	last     map[graph.Value]int // by value: when it is read last
}

// findLast finds when values are read last: results at the end.
func (p *packing) findLast(nodes []*graph.Node, out []graph.Value) {
	p.last = map[graph.Value]int{}
	for t, n := range nodes {
		for _, v := range n.In {
			root, _ := v.Resolve()
			p.last[root] = t
		}
	}
	for _, v := range out {
		root, _ := v.Resolve()
		p.last[root] = p.end
	}
}

// takesOver is the block of an operand that result 0 of a node is written over, if there is one. A
// body's own operand is written for the next iteration at the end: only the state that it becomes
// may be there until then.
func (p *packing) takesOver(n *graph.Node, t int, out []graph.Value) (int, bool) {
	op, ok := n.Op.(graph.InPlacer)
	if !ok {
		return 0, false
	}
	for _, i := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[i].Resolve()
		block, ok := p.block[root]
		if !ok || p.last[root] != t || root.Type().Bytes() != n.Out[0].Bytes() ||
			times(n.In, root) > 1 {
			continue
		}
		own := block < p.operands
		if !own || p.last[n.Value(0)] < p.end || block < len(out) && out[block] == n.Value(0) {
			return block, true
		}
	}
	return 0, false
}

// times is how many operands are in a value's bytes.
func times(in []graph.Value, root graph.Value) (n int) {
	for _, v := range in {
		if r, _ := v.Resolve(); r == root {
			n++
		}
	}
	return n
}

func (p *packing) add(v graph.Value, from, to int) {
	p.block[v] = len(p.blocks)
	p.blocks = append(p.blocks, arena.Block{From: from, To: to, Bytes: v.Type().Bytes()})
}

// reads has a value live until a time.
func (p *packing) reads(root graph.Value, t int) {
	if i, ok := p.block[root]; ok {
		p.blocks[i].To = max(p.blocks[i].To, t)
	}
}

// view is a value within a frame's memory, or within an operand.
func (f *frame) view(memory []byte, operands []tensor.View, v graph.Value) tensor.View {
	root, at := v.Resolve()
	if i, ok := f.outside[root]; ok {
		memory = operands[i].Data
	} else {
		at += f.at[root]
	}
	return tensor.View{Type: v.Type(), Data: memory[at : at+v.Type().Bytes()]}
}

// machine is a body on the CPU.
type machine struct {
	in, out []tensor.View
	staged  []tensor.View // by result; without data where it need not be copied
	calls   []launch
}

// launch is an operation of a body that is to be executed.
type launch struct {
	node *graph.Node
	fn   kernel.Func
	args kernel.Call
}

// machine binds a body's kernels to a frame, and to operands, of which only those matter that are
// read where they are.
func (b *Body) machine(memory []byte, operands []tensor.View, threads *pool.Pool) (*machine,
	error) {
	f, m := &b.frame, &machine{staged: make([]tensor.View, len(b.out))}
	for _, v := range b.in {
		m.in = append(m.in, f.view(memory, operands, v))
	}
	for i, v := range b.out {
		m.out = append(m.out, f.view(memory, operands, v))
		if at, ok := f.staged[i]; ok {
			m.staged[i] = tensor.View{Type: v.Type(), Data: memory[at : at+v.Type().Bytes()]}
		}
	}
	for _, n := range f.nodes {
		c := launch{node: n, args: kernel.Call{Pool: threads}}
		for _, v := range n.In {
			c.args.In = append(c.args.In, f.view(memory, operands, v))
		}
		for i := range n.Out {
			c.args.Out = append(c.args.Out, f.view(memory, operands, n.Value(i)))
		}
		at := f.scratch[n.ID]
		c.args.Scratch = memory[at : at+n.Cost().Scratch]
		var err error
		if c.fn, err = kernel.Lookup(kernel.CPU, n.Op); err != nil {
			return nil, err
		}
		m.calls = append(m.calls, c)
	}
	return m, nil
}

// run executes the body once, of what its operands are in the frame.
func (m *machine) run() error {
	for i := range m.calls {
		c := &m.calls[i]
		if err := c.fn(c.node.Op, &c.args); err != nil {
			return fmt.Errorf("%s: %s: %w", c.node.Name, c.node.Op.Name(), err)
		}
	}
	for i, s := range m.staged {
		if s.Data != nil {
			copy(s.Data, m.out[i].Data)
		}
	}
	return nil
}

// result is result i, which stays while operands are written.
func (m *machine) result(i int) []byte {
	if s := m.staged[i]; s.Data != nil {
		return s.Data
	}
	return m.out[i].Data
}
