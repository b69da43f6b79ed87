package ops

import "github.com/gomem/gomem/graph"

// Split is along the axes of ids and along the width. Of a part of the table's rows the
// others are zeros: the result is a sum of such parts.
func (o embedding) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	ids, width := axes[:len(axes)-1], axes[len(axes)-1]
	rows := oneAxis(&r, in[0].Size(0))
	exactly(&r, rows)
	r.In, r.Out = [][][]int{{rows, width}, ids}, [][][]int{axes}
	r.Local = func(at []graph.Part) graph.Op {
		if !divided(at, rows) {
			return o
		}
		_, first := shareOf(in[0].Size(0), rows, at)
		return embeddingPart{First: first}
	}
	return r, true
}

// Split is along the rows and the width of the table, and along the axes of ids, over which
// its gradient is a sum.
func (o embeddingGrad) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[1])
	ids, width := axes[:len(axes)-1], axes[len(axes)-1]
	sums(&r, ids...)
	rows := oneAxis(&r, o.Rows)
	r.In, r.Out = [][][]int{ids, axes}, [][][]int{{rows, width}}
	r.Local = func(at []graph.Part) graph.Op {
		n, first := shareOf(o.Rows, rows, at)
		if n == o.Rows {
			return o
		}
		return embeddingPartGrad{First: first, Rows: n}
	}
	return r, true
}

// Split is along the axes of ids and along the width, as the whole embedding's, and along
// the rows that there are.
func (o embeddingPart) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := embedding{}.Split(in, out)
	r.Local = func(at []graph.Part) graph.Op {
		_, first := shareOf(in[0].Size(0), r.In[0][0], at)
		return embeddingPart{First: o.First + first}
	}
	return r, ok
}

// Split is that of the whole gradient.
func (o embeddingPartGrad) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := embeddingGrad{Rows: o.Rows}.Split(in, out)
	r.Local = func(at []graph.Part) graph.Op {
		n, first := shareOf(o.Rows, r.Out[0][0], at)
		return embeddingPartGrad{First: o.First + first, Rows: n}
	}
	return r, ok
}
