package partition

import (
	"container/heap"
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// Strategy decides which ready operation a traversal visits next.
type Strategy string

// The strategies.
const (
	DFS          Strategy = "dfs"
	Depth        Strategy = "depth"
	DFSDepth     Strategy = "dfs-depth"
	BreadthFirst Strategy = "breadth-first"
)

// Strategies are those that a user chooses among.
func Strategies() []Strategy { return []Strategy{DFS, Depth, DFSDepth} }

// Parse reads a strategy's name.
func Parse(s string) (Strategy, error) {
	var names []string
	for _, k := range Strategies() {
		if string(k) == s {
			return k, nil
		}
		names = append(names, string(k))
	}
	return "", fmt.Errorf("unknown strategy %.60q: want one of %s", s, strings.Join(names, ", "))
}

// frontier holds the operations that are ready to be visited.
type frontier interface {
	// push adds the operations that one visit made ready, in order of creation.
	push(ready []graph.NodeID)
	// pop takes the one to visit next; ok is false if there is none.
	pop() (id graph.NodeID, ok bool)
}

// Pass partitions a program: size operations a partition, all in one if size is
// zero. It fills Order with the order of the visits and Part.
func Pass(s Strategy, size int) program.Pass {
	return program.Pass{Name: "partition", Run: func(p *program.Program) error {
		if size < 0 {
			return fmt.Errorf("partition size %d is negative", size)
		}
		succ := p.Successors()
		f, err := newFrontier(s, p, succ)
		if err != nil {
			return err
		}
		order := traverse(p, succ, f)
		cut(p, order, size)
		p.SetOrder(order)
		return nil
	}}
}

func newFrontier(s Strategy, p *program.Program, succ graph.Adjacency) (frontier, error) {
	switch s {
	case DFS:
		return &stack{}, nil
	case BreadthFirst:
		return &queue{}, nil
	case Depth:
		return &byDepth{depth: depths(p, succ)}, nil
	case DFSDepth:
		return &deepestFirst{depth: depths(p, succ)}, nil
	}
	return nil, fmt.Errorf("unknown strategy %.60q", s)
}

// traverse visits every live operation once, after its predecessors.
func traverse(p *program.Program, succ graph.Adjacency, f frontier) []graph.NodeID {
	pending := succ.InDegrees()
	f.push(initial(p, pending))
	var order, ready []graph.NodeID
	for {
		id, ok := f.pop()
		if !ok {
			return order
		}
		order = append(order, id)
		ready = ready[:0]
		for _, s := range succ.Of(id) {
			if pending[s]--; pending[s] == 0 {
				ready = append(ready, s)
			}
		}
		f.push(ready)
	}
}

// initial are the operations without predecessors.
func initial(p *program.Program, pending []int32) []graph.NodeID {
	var ready []graph.NodeID
	for _, n := range p.Graph.Nodes() {
		if p.Live[n.ID] && !n.Leaf() && pending[n.ID] == 0 {
			ready = append(ready, n.ID)
		}
	}
	return ready
}

// cut closes a partition after every size operations. One that stands for
// several counts as so many, and is in the partition where the first would be.
func cut(p *program.Program, order []graph.NodeID, size int) {
	p.Part = make([]int32, p.Graph.Len())
	for i := range p.Part {
		p.Part[i] = -1
	}
	part, end, count := int32(0), size, 0
	for _, id := range order {
		if size > 0 && count >= end {
			part++
			end = count - count%size + size
		}
		p.Part[id] = part
		count += p.Graph.Node(id).Operations()
	}
}

// depths is, by node, the length of the longest path to the end of the graph.
func depths(p *program.Program, succ graph.Adjacency) []int32 {
	depth := make([]int32, p.Graph.Len())
	order := traverse(p, succ, &queue{})
	for i := len(order) - 1; i >= 0; i-- {
		for _, s := range succ.Of(order[i]) {
			depth[order[i]] = max(depth[order[i]],
				depth[s]+int32(p.Graph.Node(order[i]).Operations()))
		}
	}
	return depth
}

// stack is Algorithm 4's ready stack. The initial nodes, the first push, go in
// reversed, so that the first created is on top.
type stack struct {
	ids     []graph.NodeID
	started bool
}

func (s *stack) push(ready []graph.NodeID) {
	if s.started {
		s.ids = append(s.ids, ready...)
		return
	}
	s.started = true
	for i := len(ready) - 1; i >= 0; i-- {
		s.ids = append(s.ids, ready[i])
	}
}

func (s *stack) pop() (graph.NodeID, bool) {
	if len(s.ids) == 0 {
		return 0, false
	}
	id := s.ids[len(s.ids)-1]
	s.ids = s.ids[:len(s.ids)-1]
	return id, true
}

// queue is first in, first out.
type queue struct {
	ids  []graph.NodeID
	head int
}

func (q *queue) push(ready []graph.NodeID) { q.ids = append(q.ids, ready...) }

func (q *queue) pop() (graph.NodeID, bool) {
	if q.head == len(q.ids) {
		return 0, false
	}
	q.head++
	return q.ids[q.head-1], true
}

// byDepth is a heap: the deepest first, then the first created.
type byDepth struct {
	ids   []graph.NodeID
	depth []int32
}

func (b *byDepth) push(ready []graph.NodeID) {
	for _, id := range ready {
		heap.Push(b, id)
	}
}

func (b *byDepth) pop() (graph.NodeID, bool) {
	if len(b.ids) == 0 {
		return 0, false
	}
	return heap.Pop(b).(graph.NodeID), true
}

// Len, Less, Swap, Push and Pop make a byDepth a heap.Interface.
func (b *byDepth) Len() int { return len(b.ids) }

// Less puts the deeper, then the earlier node first.
func (b *byDepth) Less(i, j int) bool {
	if di, dj := b.depth[b.ids[i]], b.depth[b.ids[j]]; di != dj {
		return di > dj
	}
	return b.ids[i] < b.ids[j]
}

// Swap exchanges two elements.
func (b *byDepth) Swap(i, j int) { b.ids[i], b.ids[j] = b.ids[j], b.ids[i] }

// Push appends.
func (b *byDepth) Push(x any) { b.ids = append(b.ids, x.(graph.NodeID)) }

// Pop removes the last element.
func (b *byDepth) Pop() any {
	last := b.ids[len(b.ids)-1]
	b.ids = b.ids[:len(b.ids)-1]
	return last
}

// deepestFirst is a stack on which the nodes of one push lie in order of depth,
// the deepest on top.
type deepestFirst struct {
	stack
	depth []int32
	batch byDepth
}

func (d *deepestFirst) push(ready []graph.NodeID) {
	d.started = true
	d.batch.depth = d.depth
	d.batch.push(ready)
	at := len(d.ids)
	for range ready {
		id, _ := d.batch.pop()
		d.ids = append(d.ids, id)
	}
	for i, j := at, len(d.ids)-1; i < j; i, j = i+1, j-1 {
		d.ids[i], d.ids[j] = d.ids[j], d.ids[i]
	}
}
