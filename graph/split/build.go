package split

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// Result is a graph in which operations are cut into parts, and where the nodes of
// the first graph went.
type Result struct {
	Graph *graph.Graph
	nodes []*graph.Node // by the ID in the first graph; nil for what is cut or gone
	// joined are the results of what is cut that are needed whole.
	joined map[graph.Value]graph.Value
	owner  []int32 // by the ID in the new graph: the region that it is of, or none
}

// Node is the node that stands for one of the first graph: it has its name. It is
// nil if it is cut, or not needed.
func (r *Result) Node(id graph.NodeID) *graph.Node { return r.nodes[id] }

// Value is the value that stands for one of the first graph, or no value.
func (r *Result) Value(v graph.Value) graph.Value {
	if x, ok := r.joined[v]; ok {
		return x
	}
	if !v.Valid() || r.nodes[v.Node.ID] == nil {
		return graph.Value{}
	}
	return r.nodes[v.Node.ID].Value(v.Index)
}

// Build is the graph in which every region is cut into so many parts; one, or
// none, leaves it as it is.
func (s *Survey) Build(parts []int) (*Result, error) {
	r, err := s.draft(parts)
	if err != nil {
		return nil, err
	}
	return r.pruned(s.fetches, s.updates)
}

// draft is Build, with parts that nothing reads. The latest one is made once.
func (s *Survey) draft(parts []int) (*Result, error) {
	if s.latest != nil && slices.Equal(s.drafted, parts) {
		return s.latest, nil
	}
	if len(parts) != len(s.regions) {
		return nil, fmt.Errorf("split: %d numbers of parts for %d regions", len(parts),
			len(s.regions))
	}
	b := &builder{Survey: s, count: make([]int, len(parts)), names: graph.Names{},
		pieces: make([][]*graph.Node, s.g.Len()), made: map[rows]graph.Value{},
		views:   map[graph.Value]graph.Value{},
		segment: make([][]graph.NodeID, s.g.Len()), region: none,
		out: &Result{Graph: graph.New(), nodes: make([]*graph.Node, s.g.Len()),
			joined: map[graph.Value]graph.Value{}}}
	for i, r := range s.regions {
		b.count[i] = min(parts[i], r.most)
	}
	if b.build(); b.err != nil {
		return nil, b.err
	}
	s.drafted, s.latest = slices.Clone(parts), b.out
	return b.out, nil
}

// rows are some rows of a value of the first graph that is not in parts.
type rows struct {
	of           graph.Value
	axes, lo, hi int
}

// builder makes a graph in parts.
type builder struct {
	*Survey
	count   []int // by region: its parts
	out     *Result
	names   graph.Names
	pieces  [][]*graph.Node // by node of the first graph: its parts so far
	made    map[rows]graph.Value
	views   map[graph.Value]graph.Value // by view of some of a value that is in parts
	segment [][]graph.NodeID            // by node: the segment that begins with it
	region  int32                       // of what is being made
	err     error
}

func (b *builder) build() {
	for i := range b.regions {
		if b.count[i] > 1 {
			for _, segment := range b.segments(int32(i)) {
				b.segment[segment[0]] = segment
			}
		}
	}
	for _, n := range b.g.Nodes() {
		b.names.Add(n.Name)
		if n.Leaf() {
			b.out.nodes[n.ID] = b.copy(n, n.Name, nil)
		}
	}
	for _, n := range b.g.Nodes() {
		switch {
		case !b.live[n.ID]:
		case b.segment[n.ID] != nil:
			b.inParts(b.segment[n.ID])
		case !b.isCut(n) && !b.onDemand(n):
			b.whole(n)
		}
	}
	for _, v := range b.fetches {
		b.wholeValue(v)
	}
}

// isCut reports whether there are parts of a node.
func (b *builder) isCut(n *graph.Node) bool {
	r := b.regionOf[n.ID]
	return r != none && b.count[r] > 1
}

// cutOf is where a node is cut.
func (b *builder) cutOf(n *graph.Node) graph.Cut { return b.regions[b.regionOf[n.ID]].cuts[n.ID] }

// onDemand reports whether a node is made only where something needs it: a view of
// what is in parts, and joined values of which only rows are read.
func (b *builder) onDemand(n *graph.Node) bool {
	if root, _ := n.Value(0).Resolve(); root.Node != n {
		return b.isCut(root.Node) || b.takenApart(root.Node)
	}
	return b.takenApart(n)
}

// takenApart reports whether a node joins values of which parts alone read rows.
func (b *builder) takenApart(n *graph.Node) bool {
	if !ops.Joins(n.Op) || b.isFetched(n) {
		return false
	}
	for _, id := range b.readers[n.ID] {
		r := b.g.Node(id)
		if !b.isCut(r) || !b.cuts(r, b.regions[b.regionOf[id]].cuts[id], n.Value(0)) {
			return false
		}
	}
	return true
}

// isFetched reports whether a result of a node, or a view of one, is fetched.
func (b *builder) isFetched(n *graph.Node) bool {
	for _, v := range b.fetches {
		if root, _ := v.Resolve(); root.Node == n || v.Node == n {
			return true
		}
	}
	return false
}

// copy appends a node like n.
func (b *builder) copy(n *graph.Node, name string, op graph.Op, in ...graph.Value) *graph.Node {
	if b.err != nil {
		return nil
	}
	named := *n
	named.Name = name
	c, err := b.out.Graph.Copy(&named, op, in...)
	if err != nil {
		b.err = fmt.Errorf("split: %w", err)
		return nil
	}
	b.out.owner = append(b.out.owner, b.region)
	return c
}

// value is the first result of a node like n.
func (b *builder) value(n *graph.Node, name string, op graph.Op, in ...graph.Value) graph.Value {
	c := b.copy(n, name, op, in...)
	if c == nil {
		return graph.Value{}
	}
	return c.Value(0)
}

// name is a name that no node has.
func (b *builder) name(n *graph.Node, what string) string {
	return b.names.Take(n.Name + "/" + what)
}

// inParts makes the parts of a segment's nodes, part by part.
func (b *builder) inParts(segment []graph.NodeID) {
	for part := range b.count[b.regionOf[segment[0]]] {
		for _, id := range segment {
			b.partOf(id, part)
		}
	}
}

// wholeValue is the new value that stands for all of one of the first graph.
func (b *builder) wholeValue(v graph.Value) graph.Value {
	if b.isCut(v.Node) {
		return b.joined(v)
	}
	if n := b.whole(v.Node); n != nil {
		return n.Value(v.Index)
	}
	return graph.Value{}
}

// whole makes a node that is not cut.
func (b *builder) whole(n *graph.Node) *graph.Node {
	if c := b.out.nodes[n.ID]; c != nil || b.err != nil {
		return c
	}
	in := make([]graph.Value, len(n.In))
	for i, v := range n.In {
		in[i] = b.of(v)
	}
	outer := b.region
	b.region = b.regionOf[n.ID]
	b.out.nodes[n.ID] = b.copy(n, n.Name, n.Op, in...)
	b.region = outer
	return b.out.nodes[n.ID]
}

// of is the new value that stands for one of the first graph.
func (b *builder) of(v graph.Value) graph.Value {
	root, off := v.Resolve()
	if bytes := v.Type().Bytes(); bytes > 0 && bytes < root.Type().Bytes() &&
		b.isCut(root.Node) && !b.isFetched(v.Node) && !b.cutOf(root.Node).Sums() {
		return b.view(v, root, off)
	}
	return b.wholeValue(v)
}

// joined is a result of what is cut, made of its parts.
func (b *builder) joined(v graph.Value) graph.Value {
	if x, ok := b.out.joined[v]; ok || b.err != nil {
		return x
	}
	outer := b.region
	b.region = b.regionOf[v.Node.ID]
	x := b.join(v)
	b.region = outer
	b.out.joined[v] = x
	return x
}

// hasSome reports whether a result of a node that is cut has the node's name already.
func (r *Result) hasSome(n *graph.Node) bool {
	for i := range n.Out {
		if r.joined[n.Value(i)].Valid() {
			return true
		}
	}
	return false
}

func (b *builder) join(v graph.Value) graph.Value {
	n, c, parts := v.Node, b.cutOf(v.Node), b.count[b.regionOf[v.Node.ID]]
	if c.Sums() && c.Finish == nil {
		return b.part(v, parts-1)
	}
	if c.Sums() {
		return b.value(n, n.Name, c.Finish, b.part(v, parts-1))
	}
	var all []graph.Value
	for part := range parts {
		all = append(all, b.part(v, part))
	}
	name := n.Name
	if b.out.hasSome(n) {
		name = b.name(n, "result"+strconv.Itoa(v.Index))
	}
	if c.Out[v.Index] == 1 && v.Type().Shape[0].Name == "" {
		return b.value(n, name, ops.Joined(), all...)
	}
	joined := b.value(n, b.name(n, "joined"), ops.Joined(), all...)
	return b.value(n, name, ops.Shaped(v.Type()), joined)
}

// part is a part of a value.
func (b *builder) part(v graph.Value, part int) graph.Value {
	if n := b.partOf(v.Node.ID, part); n != nil {
		return n.Value(v.Index)
	}
	return graph.Value{}
}

// partOf makes a part of a node.
func (b *builder) partOf(id graph.NodeID, part int) *graph.Node {
	number, n := b.regionOf[id], b.g.Node(id)
	r, parts := b.regions[number], b.count[number]
	if b.pieces[id] == nil {
		b.pieces[id] = make([]*graph.Node, parts)
	}
	if c := b.pieces[id][part]; c != nil || b.err != nil {
		return c
	}
	c := r.cuts[id]
	lo, hi := r.rows(id, part, parts)
	var in []graph.Value
	if c.Sums() && part > 0 {
		in = append(in, b.part(n.Value(0), part-1))
	}
	for i, axes := range c.In {
		if axes > 0 {
			in = append(in, b.rowsOf(n, i, rows{axes: axes, lo: lo, hi: hi}, part))
		} else {
			in = append(in, b.of(n.In[i]))
		}
	}
	name := n.Name
	if !c.Sums() || part < parts-1 || c.Finish != nil {
		name = b.name(n, partName(part+1, parts))
	}
	outer := b.region
	b.region = number
	b.pieces[id][part] = b.copy(n, name, n.Op.(graph.Cutter).Part(n.InTypes(), n.Out, lo, hi),
		in...)
	b.region = outer
	return b.pieces[id][part]
}

// rowsOf is rows of an operand: a part, if it is cut in the same region, else a view.
func (b *builder) rowsOf(n *graph.Node, operand int, w rows, part int) graph.Value {
	v, number := n.In[operand], b.regionOf[n.ID]
	source := b.source(v)
	from := source.Node
	want := graph.RowsOf(v.Type(), w.axes, w.hi-w.lo)
	if b.regionOf[from.ID] == number && !b.cutOf(from).Sums() {
		x := b.part(source, part)
		if b.err != nil || x.Type().Equal(want) {
			return x
		}
		return b.value(n, b.name(from, "shaped"), ops.Shaped(want), x)
	}
	w.of = v
	if x, ok := b.made[w]; ok || b.err != nil {
		return x
	}
	if b.takenApart(from) {
		b.made[w] = b.gathered(n, from, want, w)
		return b.made[w]
	}
	x := b.of(v)
	if w.axes > 1 {
		flat := graph.RowsOf(v.Type(), w.axes, v.Type().Rows(v.Type().Rank()-w.axes))
		x = b.value(n, b.name(v.Node, "rows"), ops.Shaped(flat), x)
	}
	if b.err == nil {
		name := b.name(v.Node, fmt.Sprintf("%dto%d", w.lo, w.hi))
		x = b.value(n, name, ops.Rows(w.lo, w.hi), x)
	}
	b.made[w] = x
	return x
}
