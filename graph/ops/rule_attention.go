package ops

import "github.com/gomem/gomem/graph"

// splitAttention is the rule of an attention's operands and results, of which those behind the
// keys' and before the masks' are by queries. Keys and values are whole along the length.
func (o attention) split(in, out []graph.Type) (r graph.Rule, keys [][]int) {
	x := o.sizes(in[0], in[1], in[2])
	batch, groups := oneAxis(&r, x.Batch), oneAxis(&r, x.Groups)
	heads := append(groups[:len(groups):len(groups)], oneAxis(&r, x.Heads/x.Groups)...)
	queries := oneAxis(&r, x.Queries)
	by := func(t graph.Type, heads, places []int) [][]int {
		axes := [][]int{batch, places, heads, nil}
		if o.HeadsFirst {
			axes = [][]int{batch, heads, places, nil}
		}
		return axes[:t.Rank()]
	}
	keys = by(in[1], groups, nil)
	masks := len(in) - o.masks()
	for i, t := range in[:masks] {
		if i == 1 || i == 2 {
			r.In = append(r.In, keys)
		} else {
			r.In = append(r.In, by(t, heads, queries))
		}
	}
	for i, t := range in[masks:] {
		axes := entire(t)
		if seed := o.Rate != 0 && i == o.masks()-1; !seed && t.Rank() > 0 {
			axes[0] = batch
		}
		r.In = append(r.In, axes)
	}
	for _, t := range out {
		r.Out = append(r.Out, by(t, heads, queries))
	}
	return r, keys
}

// local is the attention that computes a part of the queries.
func (o attention) local(in []graph.Type, axes [][]int, at []graph.Part) attention {
	x := o.sizes(in[0], in[1], in[2])
	if !divided(at, axes...) {
		return o
	}
	whole := o.whole(x)
	heads, places := axes[2], axes[1]
	if o.HeadsFirst {
		heads, places = places, heads
	}
	for i, axis := range [][]int{axes[0], heads, places} {
		_, lo := shareOf([]int{x.Batch, x.Heads, x.Queries}[i], axis, at)
		o.Piece.Whole[i] = int32(whole[i])
		o.Piece.At[i] += int32(lo)
	}
	return o
}

// Split is along the batch, heads and queries.
func (o attention) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, _ := o.split(in, out)
	r.Local = func(at []graph.Part) graph.Op { return o.local(in, r.In[0], at) }
	return r, true
}

// Split is along the batch and heads, and along queries, and the heads of a group: over those the
// gradients of keys and values are sums.
func (o attentionGrad) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, keys := o.Of.split(in, out)
	r.Out[1], r.Out[2] = keys, keys
	x := o.Of.sizes(in[0], in[1], in[2])
	heads, places := r.In[0][2], r.In[0][1]
	if o.Of.HeadsFirst {
		heads, places = places, heads
	}
	sums(&r, places)
	if x.Heads > x.Groups {
		sums(&r, heads[len(heads)-1:])
	}
	r.Local = func(at []graph.Part) graph.Op {
		return attentionGrad{o.Of.local(in, r.In[0], at)}
	}
	return r, true
}

// cut is between elements of the batch.
func (o attention) cut(in, out []graph.Type) (graph.Cut, bool) {
	var whole []int
	for i, t := range in {
		if i >= len(in)-o.masks() && (t.Rank() == 0 || o.Rate != 0 && i == len(in)-1) {
			whole = append(whole, i)
		}
	}
	return cutRows(in, out, 1, whole...)
}

// from is the attention of a part that begins at an element of the batch, a head or a query, which
// are axes 0 to 2.
func (o attention) from(in []graph.Type, axis, lo int) attention {
	for i, n := range o.whole(o.sizes(in[0], in[1], in[2])) {
		o.Piece.Whole[i] = int32(n)
	}
	o.Piece.At[axis] += int32(lo)
	return o
}

// Cut is between elements of the batch.
func (o attention) Cut(in, out []graph.Type) (graph.Cut, bool) { return o.cut(in, out) }

// Part knows where it is in the whole.
func (o attention) Part(in, _ []graph.Type, lo, _ int) graph.Op { return o.from(in, 0, lo) }

// Cut is between elements of the batch.
func (o attentionGrad) Cut(in, out []graph.Type) (graph.Cut, bool) { return o.Of.cut(in, out) }

// Part knows where it is in the whole.
func (o attentionGrad) Part(in, _ []graph.Type, lo, _ int) graph.Op {
	return attentionGrad{o.Of.from(in, 0, lo)}
}

// Split is along the batch, if its elements have masks of their own.
func (o attentionMask) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	batch := oneAxis(&r, o.Batch)
	for _, t := range in {
		axes := entire(t)
		if t.Rank() > 0 {
			axes[0] = batch
		}
		r.In = append(r.In, axes)
	}
	r.Out = [][][]int{{batch, nil, nil, nil}}
	r.Local = func(at []graph.Part) graph.Op {
		o := o
		o.Batch, _ = shareOf(o.Batch, batch, at)
		return o
	}
	return r, true
}
