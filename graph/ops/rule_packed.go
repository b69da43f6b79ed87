package ops

import "github.com/gomem/gomem/graph"

// Split is along the leading axes of x and the rows of the matrix; over those its gradient is a
// sum.
func (o packedMatMul) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	last := in[0].Rank() - 1
	lead := eachAxis(&r, graph.Type{Shape: in[0].Shape[:last]})
	rows := oneAxis(&r, in[1].Size(0))
	x, y := append(lead[:last:last], nil), append(lead[:last:last], rows)
	if o.Back {
		sums(&r, rows)
		x, y = y, x
	}
	r.In, r.Out = [][][]int{x, {rows, nil}}, [][][]int{y}
	r.Local = func([]graph.Part) graph.Op {
		return o.ordered(in[0].Elems()/max(1, in[0].Size(-1)), in[1])
	}
	return r, true
}

// Split is along the axes of ids. Of a part of the table's rows the others are zeros: the result
// is a sum of such parts.
func (o packedEmbedding) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	ids := eachAxis(&r, in[1])
	rows := oneAxis(&r, in[0].Size(0))
	exactly(&r, rows)
	r.In = [][][]int{{rows, nil}, ids}
	r.Out = [][][]int{append(ids[:len(ids):len(ids)], nil)}
	r.Local = func(at []graph.Part) graph.Op {
		_, first := shareOf(in[0].Size(0), rows, at)
		part := o
		part.First += first
		return part
	}
	return r, true
}
