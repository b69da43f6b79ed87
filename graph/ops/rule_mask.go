package ops

import "github.com/gomem/gomem/graph"

// Split is along batch and length.
func (paddingMask) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[0])
	r.In, r.Out = [][][]int{axes}, [][][]int{{axes[0], nil, nil, axes[1]}}
	return r, true
}

// Split is along the batch, if its elements have positions of their own.
func (causalMaskAt) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitLeading(in, out, in[0].Rank())
}

// Split is along all axes: a part of the rows or columns has the diagonal elsewhere.
func (o triangle) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitElements(in, out)
	rows, columns := in[0].Rank()-2, in[0].Rank()-1
	r.Local = func(at []graph.Part) graph.Op {
		_, row := shareOf(in[0].Size(rows), r.In[0][rows], at)
		_, column := shareOf(in[0].Size(columns), r.In[0][columns], at)
		return triangle{o.Diagonal + row - column, o.Upper}
	}
	return r, ok
}
