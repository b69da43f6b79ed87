package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// routed says which rows of a value have to do with which processes along an axis of the mesh:
// those of tokens, or of their choices, whose experts they have. All other rows of what a
// process has are zero, or do not matter to it.
type routed struct {
	by   *packing // of all experts: each process has as many, the first one the first
	rows int      // that the leading axes of the value make up: tokens, or choices
	each int      // processes that a row has to do with, at most
}

func (r *routed) equal(o *routed) bool { return r.rows == o.rows && r.by.equal(o.by) }

// most is how many processes a row is sent to at most, of so many.
func (r *routed) most(parts int64) int64 { return min(int64(r.each), parts-1) }

// tokens are the rows of tokens by a packing, and choices those of their choices.
func (p *packing) tokens() *routed {
	return &routed{p, p.offsets.Node.Value(1).Type().Size(0), 2}
}

func (p *packing) choices() *routed {
	return &routed{p, p.offsets.Node.Value(0).Type().Size(0), 1}
}

// own is the packing by which every process along an axis of the mesh has the rows of its own
// experts; nil if they cannot have as many.
func (l *lowerer) own(m int, offsets graph.Value, experts int) *packing {
	if n := l.spec.Mesh.Cluster[m]; n < 2 || experts%n != 0 {
		return nil
	}
	p := &packing{m, offsets, make([]int32, experts)}
	for e := range p.place {
		p.place[e] = l.owner(m, e, experts)
	}
	return p
}

// routes reports whether a packing is that of a route, which all processes have, and every one
// has the rows of its own experts.
func (l *lowerer) routes(p *packing) bool {
	if p == nil || !ops.Routes(p.offsets.Node.Op) {
		return false
	}
	own := l.own(p.axis, p.offsets, len(p.place))
	for i := range p.offsets.Node.Out {
		v := p.offsets.Node.Value(i)
		if !l.natural(v).equal(newSpread(v.Type().Rank())) {
			return false
		}
	}
	return own != nil && own.equal(p)
}

// moves decides of a node that moves rows between tokens and experts what it reads of them: of
// tokens that are divided along the axis of the mesh along which the experts are, too, the rows
// that are wanted, where fewer bytes are sent for them than for all.
func (l *lowerer) moves(n *graph.Node, m ops.RowMoves, along []int8) (t terms) {
	var p *packing
	if m.Packs {
		p = l.wanted(n.Value(0))
	} else if t = l.adding(n, along); slices.Equal(t.operands, m.Packed) {
		p = l.natural(n.In[m.Packed[0]]).rows
	}
	if !l.routes(p) || n.In[m.Rows] != p.offsets.Node.Value(0) ||
		n.In[m.Inv] != p.offsets.Node.Value(1) {
		return t
	}
	rest := slices.Clone(along)
	undivide(rest, p.axis)
	instead := map[int]*form{}
	share := func(operands []int, by *routed) {
		for _, i := range operands {
			axis := wants(axesOf(l.rules[n.ID].In, i), n.In[i].Type().Rank(), rest)
			if f := l.some(n.In[i], spread{axis: axis}, by); f != nil {
				instead[i] = f
			}
		}
	}
	share(m.Tokens, p.tokens())
	share(m.Choices, p.choices())
	switch {
	case m.Chooses:
		t.routed = p.choices()
	case !m.Packs:
		t.routed = p.tokens()
	case len(instead) == 0:
		return t
	default:
		copy(along, rest)
		t.part[p.axis], t.rows = true, p
		instead[m.Rows] = l.shareOf(p).own
	}
	t.instead = instead
	return t
}

// undivide takes from factors what is along an axis of the mesh.
func undivide(along []int8, m int) {
	for f, a := range along {
		if int(a) == m+1 {
			along[f] = 0
		}
	}
}

// wanted is the packing by which all who read a value read rows of their own experts only; nil
// if somebody reads others.
func (l *lowerer) wanted(v graph.Value) (p *packing) {
	uses := int32(0)
	for i, n := range l.readers[v.Node.ID] {
		if slices.Contains(l.readers[v.Node.ID][:i], n) {
			continue
		}
		for k, x := range n.In {
			if x != v || k > 0 && l.renames(n) {
				continue
			}
			q := l.reads(n, k)
			if q == nil || p != nil && !p.equal(q) {
				return nil
			}
			p, uses = q, uses+1
		}
	}
	if uses != l.uses[l.number(v)] {
		return nil // it is fetched
	}
	return p
}

// reads is the packing by which a node reads of an operand rows of its own experts only; nil if
// it does not.
func (l *lowerer) reads(n *graph.Node, operand int) *packing {
	if r, ok := ops.RowsOf(n.Op); ok && slices.Contains(r.Rows, operand) {
		m, place, ok := l.only(l.processes(l.at[n.ID]))
		if !ok {
			return nil
		}
		p := l.own(m, n.In[r.Offsets], r.Experts)
		if p == nil || p.place[r.Expert] != place {
			return nil
		}
		return p
	}
	if !slices.Contains(ops.GroupsOf(n.Op), operand) {
		return nil
	}
	return l.byExpert(n, l.factors(n, true))
}

// shared is what a process has of a route: which processes have to do with tokens and with
// choices, and its own packed rows.
type shared struct {
	by              *packing
	tokens, choices graph.Value
	own             *form
}

// shareOf is this process's share of the route of a packing, made once.
func (l *lowerer) shareOf(p *packing) *shared {
	for _, s := range l.shares {
		if s.by.axis == p.axis && s.by.offsets == p.offsets {
			return s
		}
	}
	s := &shared{by: p, own: &form{spread: newSpread(1)}}
	l.shares = append(l.shares, s)
	route := p.offsets.Node
	var in []graph.Value
	for i := range route.Out {
		v := route.Value(i)
		in = append(in, l.convert(v, newSpread(v.Type().Rank())).at(l, coords{}))
	}
	op := ops.RoutedApart(l.spec.Mesh.Cluster[p.axis], l.process[p.axis])
	s.tokens = l.make(route.Name+"/part", route.Phase, op, in...)
	if l.err != nil {
		return s
	}
	s.own.put(l, coords{}, s.tokens.Node.Value(1))
	t := route.Value(0).Type()
	t.Shape = append(slices.Clone(t.Shape), graph.Dim{Size: 1})
	s.choices = l.make(route.Name+"/part/choices", route.Phase, ops.Shaped(t), s.tokens)
	return s
}

// ranks says of rows which processes have to do with them.
func (l *lowerer) ranks(r *routed) graph.Value {
	s := l.shareOf(r.by)
	if r.each == 1 {
		return s.choices
	}
	return s.tokens
}

// gathered is a value of which every process has the rows that have to do with it. As they
// differ, it is no form of the value, which others might read.
type gathered struct {
	of   graph.Value
	rows *routed
	form *form
}

// some is a value in the wanted form, but with zeros for rows that have nothing to do with this
// process; nil where the whole is there, or takes fewer bytes.
func (l *lowerer) some(v graph.Value, want spread, rows *routed) *form {
	for _, g := range l.gathered {
		if g.of == v && g.rows.equal(rows) && g.form.equal(want) {
			l.use(g.form)
			return g.form
		}
	}
	m := rows.by.axis
	if want.axis[0] != 0 || v.Type().Size(0)%l.spec.Mesh.Size(m) != 0 {
		return nil
	}
	c := change{kind: Join, m: m, from: 0, to: -1, some: rows}
	blocks := c.before(want)
	_, whole, _ := l.nearest(v, want)
	_, first, _ := l.nearest(v, blocks)
	if whole == 0 || first+l.wire(c, v.Type(), blocks) > whole {
		return nil
	}
	f := l.convert(v, blocks)
	if l.err != nil {
		return nil
	}
	out := &form{spread: want, needs: f.needs}
	l.exchange(v, f, out, c)
	l.gathered = append(l.gathered, gathered{v, rows, out})
	l.use(out)
	return out
}

// before is the form of which a change along the first axis makes another.
func (c change) before(after spread) spread {
	after.axis = slices.Clone(after.axis)
	after.axis[0] = int8(c.m + 1)
	return after
}

// rowwise reports whether a form of a value can be scattered along the first axis row by row:
// its rows are those of leading axes, which are whole.
func (f *form) rowwise(t graph.Type, c change) bool {
	r := f.routed
	if r == nil || r.by.axis != c.m || c.kind != Scatter || c.to != 0 {
		return false
	}
	rows := 1
	for j, d := range t.Shape {
		if rows == r.rows {
			break
		}
		if rows *= d.Size; f.axis[j] != 0 {
			return false
		}
	}
	return rows == r.rows
}

// keeps is which rows a node's result has of terms of operands, in which it is linear: the
// same if they are rows of its result, too.
func (l *lowerer) keeps(n *graph.Node, set []int) (rows *routed) {
	r := l.rules[n.ID]
	for _, i := range set {
		own := l.natural(n.In[i]).routed
		if own == nil || rows != nil && !rows.equal(own) {
			return nil
		}
		rows = own
		in := r.leading(axesOf(r.In, i), n.In[i].Type(), rows.rows)
		if in == nil || !slices.Equal(in, r.leading(axesOf(r.Out, 0), n.Out[0], rows.rows)) {
			return nil
		}
	}
	return rows
}

// leading are the factors of the leading axes of a value that make up so many rows; nil if none
// do.
func (r *rule) leading(axes [][]int, t graph.Type, rows int) (factors []int) {
	size := 1
	for j, list := range axes {
		if size == rows {
			break
		}
		if len(list) == 0 && t.Size(j) != 1 {
			return nil
		}
		for _, f := range list {
			if r.Factors[f].Size == 1 {
				continue
			}
			if size == rows {
				return factors
			}
			factors, size = append(factors, f), size*r.Factors[f].Size
		}
	}
	if size != rows {
		return nil
	}
	return factors
}
