package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// terms are operands that a node reads as terms of sums over processes, which nobody has
// added up yet, since its results are such sums, too, or since it reads no more of them
// than its own process has.
type terms struct {
	operands []int
	part     [maxAxes]bool // of results
	rows     *packing      // of results
	routed   *routed       // of results
	instead  map[int]*form // of operands: forms of which they are no other's
}

// packing says of a value with rows packed by expert that every process has the rows of its
// own experts, and zeros elsewhere.
type packing struct {
	axis    int         // of the mesh
	offsets graph.Value // of the first graph
	place   []int32     // by expert: 1 + the process that has its rows; 0 nobody does yet
}

// has reports whether a process has the rows of an expert, by the same offsets.
func (p *packing) has(r ops.ExpertRows, offsets graph.Value, m int, place int32) bool {
	return p != nil && p.axis == m && p.offsets == offsets && len(p.place) == r.Experts &&
		p.place[r.Expert] == place
}

func (p *packing) equal(o *packing) bool {
	return p.axis == o.axis && p.offsets == o.offsets && slices.Equal(p.place, o.place)
}

// late decides what operands of a node stay in terms: what follows is then added up instead
// of them. That costs fewer bytes where several are, or where results are smaller, and never
// more. The node is not divided along the axis of the mesh over which they are.
func (l *lowerer) late(n *graph.Node, along []int8) (t terms) {
	if l.spec.Mesh.Processes() < 2 || n.Kind == graph.KindUpdate {
		return terms{}
	}
	if r, ok := ops.RowsOf(n.Op); ok {
		return l.ofExpert(n, r)
	}
	if rows := ops.GroupsOf(n.Op); rows != nil {
		return l.ofExperts(n, rows, along)
	}
	if l.processes(l.at[n.ID]) != [maxAxes]int32{} {
		return terms{}
	}
	if m, ok := ops.MovesOf(n.Op); ok {
		return l.moves(n, m, along)
	}
	return l.adding(n, along)
}

// adding decides of a node what it reads in terms as it is linear in them, or makes zeros of
// zeros.
func (l *lowerer) adding(n *graph.Node, along []int8) (t terms) {
	r := l.rules[n.ID]
	for _, set := range r.Zeros {
		if rows, ok := l.inRows(n, set); ok && t.operands == nil {
			t = terms{operands: set, part: l.natural(n.In[set[0]]).part, rows: rows}
		}
	}
	for _, set := range r.Adds {
		if t.operands == nil && l.inTerms(n, set) {
			t = terms{operands: set, part: l.natural(n.In[set[0]]).part, routed: l.keeps(n, set)}
		}
	}
	for m, in := range t.part {
		if in {
			undivide(along, m)
		}
	}
	return t
}

// waiting reports whether a value is in terms, and nobody has had them added up.
func (l *lowerer) waiting(v graph.Value) bool {
	forms := l.forms[l.number(v)]
	return len(forms) > 0 && !slices.ContainsFunc(forms, func(f *form) bool {
		return !f.parted()
	})
}

// inTerms reports whether operands are terms of sums, and what all who read them make of
// them is no larger.
func (l *lowerer) inTerms(n *graph.Node, set []int) bool {
	var had, made int64
	for _, i := range set {
		v := n.In[i]
		f := l.natural(v)
		if !l.waiting(v) || f.part != l.natural(n.In[set[0]]).part ||
			f.place != [maxAxes]int32{} {
			return false
		}
		had += v.Type().Bytes()
	}
	readers := []*graph.Node{n}
	switch v := n.In[set[0]]; {
	case len(set) == 1:
		var all bool
		if readers, all = l.linear(v); !all {
			return false
		}
	case slices.ContainsFunc(set, func(i int) bool { return l.uses[l.number(n.In[i])] > 1 }):
		return false
	}
	for _, r := range readers {
		for _, t := range r.Out {
			made += t.Bytes()
		}
	}
	return made <= had
}

// linear are the nodes that read a value, and whether all of them can read it in terms.
func (l *lowerer) linear(v graph.Value) (readers []*graph.Node, all bool) {
	uses := int32(0)
	for _, n := range l.readers[v.Node.ID] {
		i := slices.Index(n.In, v)
		if i < 0 || i > 0 && l.renames(n) || slices.Contains(readers, n) {
			continue
		}
		can := slices.ContainsFunc(l.rules[n.ID].Adds, func(set []int) bool {
			return len(set) == 1 && set[0] == i
		})
		if !can || l.processes(l.at[n.ID]) != [maxAxes]int32{} {
			return nil, false
		}
		readers, uses = append(readers, n), uses+1
	}
	return readers, uses == l.uses[l.number(v)]
}

// inRows reports whether operands all have the rows of the same experts.
func (l *lowerer) inRows(n *graph.Node, set []int) (rows *packing, ok bool) {
	for _, i := range set {
		f := l.natural(n.In[i])
		if f.rows == nil || !l.waiting(n.In[i]) || rows != nil && !rows.equal(f.rows) {
			return nil, false
		}
		rows = f.rows
	}
	return rows, true
}

// ofExpert are the operands of which a node reads an expert's rows only, and its process has
// those.
func (l *lowerer) ofExpert(n *graph.Node, r ops.ExpertRows) (t terms) {
	m, place, ok := l.only(l.processes(l.at[n.ID]))
	for _, i := range r.Rows {
		if ok && l.natural(n.In[i]).rows.has(r, n.In[r.Offsets], m, place) {
			t.operands = append(t.operands, i)
		}
	}
	return t
}

// ofExperts are the operands of which a node reads rows by expert, where experts are divided
// over processes, and nothing else is: each process has the rows of its own.
func (l *lowerer) ofExperts(n *graph.Node, rows []int, along []int8) (t terms) {
	own := l.byExpert(n, along)
	if own == nil {
		return terms{}
	}
	for _, i := range rows {
		if have := l.natural(n.In[i]).rows; have != nil && have.equal(own) {
			t.operands = append(t.operands, i)
		}
	}
	if n.Out[0].Rank() != 3 {
		t.rows = own
	}
	return t
}

// byExpert is the packing by which a node reads rows by expert, where experts are divided over
// processes, and nothing else is; nil if that is not so.
func (l *lowerer) byExpert(n *graph.Node, along []int8) *packing {
	const offsets = 2
	r := l.rules[n.ID]
	axes := axesOf(r.In, 1)
	if n.Out[0].Rank() == 3 { // weights come of it
		axes = axesOf(r.Out, 0)
	}
	if len(axes) == 0 || len(axes[0]) == 0 || l.processes(l.at[n.ID]) != [maxAxes]int32{} {
		return nil
	}
	experts := axes[0][0]
	if experts >= len(along) || along[experts] == 0 {
		return nil
	}
	if rest := slices.Delete(slices.Clone(along), experts, experts+1); used(rest) != used(nil) {
		return nil
	}
	return l.own(int(along[experts])-1, n.In[offsets], r.Factors[experts].Size)
}

// only is the axis of the mesh along which something is at one process, if there is one, and
// 1 + that process.
func (l *lowerer) only(at [maxAxes]int32) (m int, place int32, ok bool) {
	for i, c := range at {
		switch {
		case c > 0 && ok:
			return 0, 0, false
		case c > 0:
			m, place, ok = i, c, true
		}
	}
	return m, place, ok
}

// fills makes a link of a chain in which every expert fills its rows, and reports whether
// the node is one: the process that has the expert makes it, and for all others it is the
// link before. So each has the rows of its own experts, and what is made of the chain is a
// sum in which all other terms are zero.
func (l *lowerer) fills(n *graph.Node) bool {
	r, ok := ops.RowsOf(n.Op)
	if !ok || !r.Fills {
		return false
	}
	m, place, ok := l.only(l.processes(l.at[n.ID]))
	if !ok {
		return false
	}
	before, rows := l.before(n, r, m)
	if before == nil {
		return false
	}
	none := make([]int8, n.Out[0].Rank())
	out := &form{spread: spread{axis: none}, rows: rows, pieces: before.pieces}
	out.part[m], rows.place[r.Expert] = true, place
	in, t := []graph.Value{before.at(l, coords{})}, l.ofExpert(n, r)
	for i, v := range n.In[1:] {
		want := spread{axis: make([]int8, v.Type().Rank()), place: l.processes(l.at[n.ID])}
		if slices.Contains(t.operands, i+1) {
			want.part = l.natural(v).part
		}
		in = append(in, l.convert(v, want).at(l, coords{}))
	}
	l.res.Whole++
	if l.here(l.processes(l.at[n.ID])) {
		if c := l.copy(n, n.Name, n.Op, in...); c != nil {
			l.res.nodes[n.ID], out.pieces = c, []graph.Value{c.Value(0)}
		}
	}
	l.enter(n.Value(0), out)
	return true
}

// before is the form of the link before in a chain along an axis of the mesh, and the rows
// that are filled in it, which are now those of the next; nil if it is neither such a link
// that nobody else reads, nor where a chain begins, zeros.
func (l *lowerer) before(n *graph.Node, r ops.ExpertRows, m int) (*form, *packing) {
	acc, offsets := l.natural(n.In[0]), n.In[r.Offsets]
	switch {
	case used(acc.axis) != [maxAxes]bool{} || l.uses[l.number(n.In[0])] > 1:
		return nil, nil
	case acc.rows.has(r, offsets, m, 0) && l.waiting(n.In[0]):
		return acc, acc.rows
	case ops.IsZeros(n.In[0].Node.Op) && !acc.parted() && acc.place == [maxAxes]int32{}:
		return acc, &packing{m, offsets, make([]int32, r.Experts)}
	}
	return nil, nil
}
