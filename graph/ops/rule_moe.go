package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Split is between tokens; every part draws the chances of its own.
func (o top2) Split(in, out []graph.Type) (graph.Rule, bool) {
	if out[0].Rank() > maxRank {
		return graph.Rule{}, false
	}
	r, ok := splitLeading(in, out, out[0].Rank(), 1)
	r.Local = func(at []graph.Part) graph.Op {
		if w, some := windowOf(out[0], r.Out[0], at); some {
			return top2Window{o, w}
		}
		return o
	}
	return r, ok
}

// top2Window chooses for some tokens, with the chances that they have among all.
type top2Window struct {
	Top2 top2
	Win  window
}

func (o top2Window) Name() string { return o.Top2.Name() }

func (o top2Window) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := o.Top2.Infer(in)
	if err != nil {
		return nil, err
	}
	return out, o.Win.check(out[0].Sizes())
}

func (o top2Window) Cost(in, out []graph.Type) graph.Cost { return o.Top2.Cost(in, out) }

func (top2Window) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

func top2WindowCPU(o top2Window, c *kernel.Call) error {
	t := o.Top2.tokens(c)
	c.Pool.For(len(t.first), max(1, grain/t.experts), func(lo, hi int) {
		o.Win.visit(lo, hi, t.choose)
	})
	return nil
}

// onePlace is a part of an operation with places in rows: it has those from First on, of
// Whole. A place elsewhere is none.
type onePlace struct {
	Of           graph.Op
	First, Whole int
}

func (o onePlace) Name() string { return o.Of.Name() }

func (o onePlace) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := o.Of.Infer(in)
	if err != nil {
		return nil, err
	}
	var places int
	switch o.Of.(type) {
	case takeLast:
		places = in[0].Size(-1)
	case putLast, dispatch, combine, oneHot:
		places = out[0].Size(-1)
	default:
		return nil, fmt.Errorf("%s has no places in rows", o.Of.Name())
	}
	if places < 1 || o.First < 0 || places > o.Whole-o.First {
		return nil, fmt.Errorf("%d places from %d on, of %d", places, o.First, o.Whole)
	}
	return out, nil
}

// CheckData wants places in the whole row, or none.
func (o onePlace) CheckData(in []tensor.View) error {
	switch o.Of.(type) {
	case takeLast:
		return checkChoices(known(in[1]), o.Whole)
	case oneHot:
		return checkIDs(known(in[0]), o.Whole)
	case putLast:
		return checkChoices(known(in[0]), o.Whole)
	}
	return checkExperts(in[:2], o.Whole)
}

func (o onePlace) Cost(in, out []graph.Type) graph.Cost { return o.Of.Cost(in, out) }

// VJP puts gradients where elements were taken from, and takes them from where they were put.
func (o onePlace) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	of := func(op graph.Op) graph.Op { return onePlace{op, o.First, o.Whole} }
	take := func(choice int) graph.Value { return apply(of(takeLast{}), dout[0], n.In[choice]) }
	switch o.Of.(type) {
	case takeLast:
		put := putLast{Size: n.In[0].Type().Size(-1)}
		return []graph.Value{apply(of(put), n.In[1], dout[0]), {}}
	case putLast:
		return []graph.Value{{}, take(0)}
	case combine:
		return []graph.Value{{}, {}, take(0), take(1)}
	}
	return none(len(n.In))
}

func onePlaceCPU(o onePlace, c *kernel.Call) error {
	here := inRow{o.First, o.Whole}
	switch of := o.Of.(type) {
	case takeLast:
		return here.take(c)
	case putLast:
		return here.put(c, of.Size)
	case oneHot:
		return here.mark(c, of.Depth)
	case dispatch:
		return here.dispatch(c, of.Slots)
	}
	return here.combine(c, o.Of.(combine).Slots)
}

// placed is the part of an operation whose last axis has the places.
func placed(whole int, axis []int, of func(size int) graph.Op) func([]graph.Part) graph.Op {
	return func(at []graph.Part) graph.Op {
		if !divided(at, axis) {
			return of(whole)
		}
		size, first := shareOf(whole, axis, at)
		return onePlace{of(size), first, whole}
	}
}

// splitPlaces is the rule of an operation that makes rows with places along the last axis
// of the result. Parts of a row have the places that they have.
func splitPlaces(in, out []graph.Type, of func(size int) graph.Op) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	last := len(axes) - 1
	for range in {
		r.In = append(r.In, axes[:last])
	}
	r.Out = [][][]int{axes}
	r.Local = placed(out[0].Size(-1), axes[last], of)
	return r, true
}

// Split is along all axes: of a part of a row, what is elsewhere is zero, and the result a
// sum of such parts.
func (takeLast) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, in[0])
	last := len(axes) - 1
	exactly(&r, axes[last])
	r.In, r.Out = [][][]int{axes, axes[:last]}, [][][]int{axes[:last]}
	r.Local = placed(in[0].Size(-1), axes[last], func(int) graph.Op { return takeLast{} })
	return r, true
}

// Split is along all axes.
func (putLast) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitPlaces(in, out, func(size int) graph.Op { return putLast{Size: size} })
}

// Split is along all axes.
func (oneHot) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitPlaces(in, out, func(size int) graph.Op { return oneHot{Depth: size} })
}

// Split is along groups, tokens and slots.
func (dispatch) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitPlaces(in, out, func(size int) graph.Op { return dispatch{Slots: size} })
}

// Split is along groups, tokens and slots.
func (combine) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitPlaces(in, out, func(size int) graph.Op { return combine{Slots: size} })
}

// Split is between groups: within one, a token's place depends on those before it.
func (positions) Split(in, out []graph.Type) (graph.Rule, bool) { return splitLeading(in, out, 1) }

// splitWidth is the rule of an operation that moves rows, along the width of what it has of
// two axes: numbers of rows are those of the whole.
func splitWidth(in, out []graph.Type, wide ...int) (r graph.Rule, ok bool) {
	width := oneAxis(&r, in[0].Size(1))
	for _, t := range in {
		r.In = append(r.In, entire(t))
	}
	for _, i := range wide {
		r.In[i] = [][]int{nil, width}
	}
	r.Out = [][][]int{{nil, width}}
	return r, true
}

// Split is along the width.
func (gatherRows) Split(in, out []graph.Type) (graph.Rule, bool) { return splitWidth(in, out, 0) }

// Split is along the width. It is linear.
func (sumRows) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitWidth(in, out, 0)
	r.Adds = [][]int{{0}}
	return r, ok
}

// Split is along the width. It is linear in the rows.
func (combineRows) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitWidth(in, out, 0)
	r.Adds = [][]int{{0}}
	return r, ok
}

// Split is along the width.
func (spreadRows) Split(in, out []graph.Type) (graph.Rule, bool) { return splitWidth(in, out, 0) }

// Split is along the width, over which inner products are sums. They are linear in either
// of the two that are multiplied.
func (dotRows) Split(in, out []graph.Type) (graph.Rule, bool) {
	r, ok := splitWidth(in, out, 0, 1)
	sums(&r, r.In[0][1])
	r.Out, r.Adds = [][][]int{entire(out[0])}, [][]int{{0}, {1}}
	return r, ok
}

func init() {
	kernel.Register(kernel.CPU, top2WindowCPU)
	kernel.Register(kernel.CPU, onePlaceCPU)
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	part := func(op graph.Op) graph.Op { return onePlace{op, 3, 9} }
	pick := fills{0: choices(9), 1: choices(9)}
	w := window{N: 2, Size: [maxRank]int32{2, 17}, Whole: [maxRank]int32{3, 51},
		At: [maxRank]int32{1, 17}}
	register(
		Sample{Op: top2Window{top2{Threshold: 0.2, Salt: 9}, w}, Fill: fills{0: positive},
			In: []graph.Type{f(2, 17, 5), ids(2)}, NoGrad: []int{0, 1}},
		Sample{Op: part(takeLast{}), In: []graph.Type{f(2, 3, 5), ids(2, 3)},
			Fill: fills{1: choices(9)}, NoGrad: []int{1}, Second: true},
		Sample{Op: part(putLast{Size: 5}), In: []graph.Type{ids(2, 3), f(2, 3)},
			Fill: fills{0: choices(9)}, NoGrad: []int{0}, Second: true},
		Sample{Op: part(oneHot{Depth: 4}), In: []graph.Type{ids(2, 3)}, Fill: fills{0: below(9)},
			NoGrad: []int{0}},
		Sample{Op: part(dispatch{Slots: 4}), In: []graph.Type{ids(3, 17), ids(3, 17)}, Fill: pick,
			NoGrad: []int{0, 1}},
		Sample{Op: part(combine{Slots: 4}), Fill: pick, NoGrad: []int{0, 1}, Second: true,
			In: []graph.Type{ids(3, 17), ids(3, 17), f(3, 17), f(3, 17)}},
	)
}
