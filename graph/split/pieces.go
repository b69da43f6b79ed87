package split

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// view is a view of bytes from off on of a value that is in parts: a view of a part,
// or joined if it is in several.
func (b *builder) view(v, of graph.Value, off int64) graph.Value {
	if x, ok := b.views[v]; ok || b.err != nil {
		return x
	}
	number := b.regionOf[of.Node.ID]
	r, parts, size := b.regions[number], b.count[number], v.Type().DType.Size()
	first := int(off / size)
	g := gathering{builder: b, at: v.Node, name: v.Node, lo: first, hi: first + v.Type().Elems()}
	row := of.Type().Elems() / r.units
	for part := range parts {
		g.add(r.begin(part, parts)*row, r.begin(part+1, parts)*row, func() graph.Value {
			return b.part(of, part)
		})
	}
	outer := b.region
	b.region = number
	b.views[v] = g.value(v.Type())
	b.region = outer
	return b.views[v]
}

// gathered is rows of the values that a node joins, for an operand of n.
func (b *builder) gathered(n, joined *graph.Node, want graph.Type, w rows) graph.Value {
	row := want.Elems() / (w.hi - w.lo)
	g := gathering{builder: b, at: n, name: joined, lo: w.lo * row, hi: w.hi * row}
	begin := 0
	for _, v := range joined.In {
		end := begin + v.Type().Elems()
		g.add(begin, end, func() graph.Value { return b.of(v) })
		begin = end
	}
	outer := b.region
	b.region = b.regionOf[n.ID]
	defer func() { b.region = outer }()
	return g.value(want)
}

// gathering is elements lo to hi-1 of values that follow one another.
type gathering struct {
	*builder
	at, name *graph.Node // for which it is, and after which it is named
	lo, hi   int
	pieces   []graph.Value
}

// add adds what there is of a value that has elements begin to end-1.
func (g *gathering) add(begin, end int, make func() graph.Value) {
	lo, hi := max(begin, g.lo), min(end, g.hi)
	if lo >= hi {
		return
	}
	x := make()
	if g.err != nil {
		return
	}
	if lo > begin || hi < end {
		flat := graph.RowsOf(x.Type(), x.Type().Rank(), end-begin)
		x = g.builder.value(g.at, g.builder.name(g.name, "flat"), ops.Shaped(flat), x)
		x = g.builder.value(g.at, g.builder.name(g.name, fmt.Sprintf("%dto%d", lo, hi)),
			ops.Rows(lo-begin, hi-begin), x)
	}
	g.pieces = append(g.pieces, x)
}

// value is all of it, as a value of a type.
func (g *gathering) value(t graph.Type) graph.Value {
	if g.err != nil {
		return graph.Value{}
	}
	x := g.pieces[0]
	if len(g.pieces) > 1 {
		for i, v := range g.pieces {
			if flat := graph.RowsOf(t, t.Rank(), v.Type().Elems()); !v.Type().Equal(flat) {
				g.pieces[i] = g.builder.value(g.at, g.builder.name(g.name, "flat"),
					ops.Shaped(flat), v)
			}
		}
		x = g.builder.value(g.at, g.builder.name(g.name, "joined"), ops.Joined(), g.pieces...)
	}
	if g.err != nil || x.Type().Equal(t) {
		return x
	}
	return g.builder.value(g.at, g.builder.name(g.name, "shaped"), ops.Shaped(t), x)
}

// pruned is the graph without parts that nothing reads.
func (r *Result) pruned(fetches []graph.Value, updates []graph.NodeID) (*Result, error) {
	live := wanted(r.Graph, r.fetched(fetches), r.updated(updates))
	kept := make([]*graph.Node, r.Graph.Len())
	out := &Result{Graph: graph.New(), nodes: make([]*graph.Node, len(r.nodes)),
		joined: map[graph.Value]graph.Value{}}
	for _, n := range r.Graph.Nodes() {
		if !live[n.ID] && !n.Leaf() {
			continue
		}
		in := make([]graph.Value, len(n.In))
		for i, v := range n.In {
			in[i] = kept[v.Node.ID].Value(v.Index)
		}
		var err error
		if kept[n.ID], err = out.Graph.Copy(n, n.Op, in...); err != nil {
			return nil, fmt.Errorf("split: %w", err)
		}
		out.owner = append(out.owner, r.owner[n.ID])
	}
	for id, n := range r.nodes {
		if n != nil {
			out.nodes[id] = kept[n.ID]
		}
	}
	for v, x := range r.joined {
		if n := kept[x.Node.ID]; n != nil {
			out.joined[v] = n.Value(x.Index)
		}
	}
	return out, nil
}
