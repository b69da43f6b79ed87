package calibrate

import (
	"errors"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/plan/space"
)

// room gives operands places in a memory, like a plan that keeps everything: a value's
// bytes are free after the last operation that reads it, and taken again by the next of
// their size; an operation that can work in place does. How much of its operands an
// operation finds in the caches is then like in a step.
type room struct {
	scratch func(*graph.Node) int64
	memory  device.Memory
	limit   int64
	used    int64
	free    map[int64][]device.Region // by size
	homes   map[home]device.Region
}

// home says whose bytes a region has.
type home struct {
	node   *graph.Node // an operation, or a leaf of which it has a part
	result int
	off    int64
	bytes  int64
	like   string // or else an operation of this signature, the last that there was
}

// newRoom is an empty one for a target. Without a memory it tells what fits.
func newRoom(on target, m device.Memory, limit int64) *room {
	return &room{on.scratch, m, limit, 0, map[int64][]device.Region{}, map[home]device.Region{}}
}

// uses counts how often operands are a value or a part of it.
type uses struct {
	all  map[graph.Value]int // in the graph
	left map[graph.Value]int // in what is still to be prepared
}

func newUses(nodes []*graph.Node, some []want) uses {
	u := uses{map[graph.Value]int{}, map[graph.Value]int{}}
	for _, n := range nodes {
		count(u.all, n)
	}
	for _, w := range some {
		count(u.left, w.node)
	}
	return u
}

func count(uses map[graph.Value]int, n *graph.Node) {
	if !n.Executes() {
		return
	}
	for _, v := range n.In {
		root, _ := v.Resolve()
		uses[root]++
	}
}

// needs is how much memory running a node takes at most, in bytes.
func (t target) needs(n *graph.Node) int64 {
	total := aligned(t.scratch(n))
	for _, v := range n.In {
		total += aligned(v.Type().Bytes())
	}
	for _, t := range n.Out {
		total += aligned(t.Bytes())
	}
	return total
}

// aligned is what so many bytes take, on any device.
func aligned(bytes int64) int64 { return space.Wide.Up(bytes) }

var errFull = errors.New("the memory for measuring is full")

// place is a region of so many bytes for what an operation makes.
func (m *room) place(bytes int64) device.Region {
	size := aligned(bytes)
	if n := len(m.free[size]); n > 0 {
		r := m.free[size][n-1]
		m.free[size] = m.free[size][:n-1]
		r.Bytes = bytes
		return r
	}
	return m.fresh(bytes)
}

// fresh is a region that nothing else has, before or after: for what is written once.
func (m *room) fresh(bytes int64) device.Region {
	r := device.Region{Mem: m.memory, Off: m.used, Bytes: bytes}
	m.used += aligned(bytes)
	return r
}

func (m *room) release(r device.Region) {
	size := aligned(r.Bytes)
	m.free[size] = append(m.free[size], r)
}

// seat places a trial's operands. What an update writes has a place of its own, so
// that weights stay as they are however often all is run.
func (m *room) seat(t *trial, u uses) error {
	n := t.node
	for i, v := range n.In {
		r, made := m.operand(v, i < n.Mutates)
		if !made {
			t.given = append(t.given, i)
		}
		t.launch.In = append(t.launch.In, device.Operand{Region: r, Type: v.Type()})
	}
	over := overwritten(n, u)
	for i, ty := range n.Out {
		var r device.Region
		if i == 0 && over >= 0 {
			r = t.launch.In[over].Region
		} else {
			r = m.place(ty.Bytes())
		}
		m.homes[home{node: n, result: i}], m.homes[home{like: t.signature, result: i}] = r, r
		t.launch.Out = append(t.launch.Out, device.Operand{Region: r, Type: ty})
	}
	t.launch.Scratch = m.place(m.scratch(n))
	if m.used > m.limit {
		return errFull
	}
	m.release(t.launch.Scratch)
	m.vacate(n, over, u)
	return nil
}

// vacate frees the values that nothing reads any more. Indices stay: who reads them in
// the place of others would be refused.
func (m *room) vacate(n *graph.Node, over int, u uses) {
	for i, v := range n.In {
		root, _ := v.Resolve()
		u.left[root]--
		r, ok := m.homes[home{node: root.Node, result: root.Index}]
		if ok && u.left[root] == 0 && i != over && !root.Node.Leaf() && !exact(root.Type()) {
			m.release(r)
		}
	}
}

// operand is where a value is, and whether an operation has made it.
func (m *room) operand(v graph.Value, own bool) (r device.Region, made bool) {
	root, off := v.Resolve()
	bytes := v.Type().Bytes()
	if own {
		return m.fresh(bytes), false
	}
	if root.Node.Leaf() {
		part := home{node: root.Node, off: off, bytes: bytes}
		r, ok := m.homes[part]
		if !ok {
			r = m.fresh(bytes)
			m.homes[part] = r
		}
		return r, false
	}
	r, ok := m.homes[home{node: root.Node, result: root.Index}]
	if !ok {
		r, ok = m.homes[home{like: signature(root.Node), result: root.Index}]
	}
	if !ok {
		return m.fresh(bytes), false
	}
	r.Off, r.Bytes = r.Off+off, bytes
	return r, true
}

// overwritten is the operand that the first result takes the place of in a plan, or
// -1.
func overwritten(n *graph.Node, u uses) int {
	op, ok := n.Op.(graph.InPlacer)
	if !ok || len(n.Out) == 0 {
		return -1
	}
	for _, k := range op.InPlace(n.InTypes(), n.Out) {
		root, _ := n.In[k].Resolve()
		if !root.Node.Leaf() && u.all[root] == 1 && u.left[root] == 1 && !exact(root.Type()) &&
			root.Type().Bytes() == n.Out[0].Bytes() {
			return k
		}
	}
	return -1
}
