package ops

import "github.com/gomem/gomem/graph"

// splitRows is the rule of an operation on rows of the last axis of operand 0, of which
// every part has whole ones. Operands in whole are read by all parts.
func splitRows(in, out []graph.Type, whole ...int) (graph.Rule, bool) {
	return splitLeading(in, out, in[0].Rank()-1, whole...)
}

// Split is between rows.
func (softmax) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between rows.
func (softmaxGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between rows.
func (logSumExp) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between positions.
func (crossEntropy) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between positions.
func (crossEntropyGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between positions.
func (correct) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between rows.
func (topK) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between rows.
func (scatterLast) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between rows.
func (gatherLast) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out) }

// Split is between rows.
func (layerNorm) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out, 1, 2) }

// Split is between rows.
func (layerNormGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out, 1) }

// Split is between rows.
func (rmsNorm) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out, 1) }

// Split is between rows.
func (rmsNormGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return splitRows(in, out, 1) }

// Split is between rows, over which the result is a sum.
func (layerScaleGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return sumOverRows(in, out) }

// Split is between rows, over which the result is a sum.
func (rmsScaleGrad) Split(in, out []graph.Type) (graph.Rule, bool) { return sumOverRows(in, out) }

// sumOverRows is the rule of a row that is a sum over those of operands.
func sumOverRows(in, out []graph.Type) (r graph.Rule, ok bool) {
	rows := eachAxis(&r, graph.Type{Shape: in[0].Shape[:in[0].Rank()-1]})
	sums(&r, rows...)
	for _, t := range in {
		r.In = append(r.In, leading(rows, t))
	}
	r.Out = [][][]int{entire(out[0])}
	return r, true
}

// Split is along the axes before the first that is normalised over.
func (o layerOver) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitLeading(in, out, o.From, 1, 2)
}

// Split is along the axes before the first that is normalised over: the gradients of scale
// and bias are sums over them.
func (o layerOverGrad) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitLeading(in, out[:1], o.From, 1)
	sums(&r, r.Out[0]...)
	r.Out = append(r.Out, entire(out[1]), entire(out[2]))
	return r, ok
}

// Split is along all axes but the one along which elements are added up.
func (o cumSum) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitBut(in, out, o.Axis, o.Axis+1)
}

// Split is along all axes but the one that is searched.
func (o arg) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitReduced(in, o.Axis, o.Axis+1)
}

// Split is along all axes but those that are searched.
func (o extreme) Split(in, _ []graph.Type) (graph.Rule, bool) {
	return splitReduced(in, o.Lo, o.Hi)
}

// Split is along all axes but those that are multiplied over.
func (o prod) Split(in, _ []graph.Type) (graph.Rule, bool) { return splitReduced(in, o.Lo, o.Hi) }

// Split is along all axes but those that are multiplied over.
func (o others) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitBut(in, out, o.Lo, o.Hi)
}

// splitReduced is the rule of a result without axes lo to hi-1 of operand 0, which every
// part has whole.
func splitReduced(in []graph.Type, lo, hi int) (graph.Rule, bool) {
	r, ok := splitBut(in, in, lo, hi)
	kept := r.In[0]
	r.Out = [][][]int{append(append([][]int{}, kept[:lo]...), kept[hi:]...)}
	return r, ok
}
