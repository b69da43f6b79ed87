package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
)

// rule is how a node's operation divides; without factors it is computed whole.
type rule struct {
	graph.Rule
	divides []bool // by factor: whether parts of it make sense
}

// rules are those of nodes, nil for those that are not live, and leaves. Many nodes have
// the same operation and types: each such rule is made once.
func rules(g *graph.Graph, live []bool) []*rule {
	out := make([]*rule, g.Len())
	for _, n := range g.Nodes() {
		if live[n.ID] && !n.Leaf() {
			out[n.ID] = ruleOf(n)
		}
	}
	return out
}

func ruleOf(n *graph.Node) *rule {
	r := &rule{}
	s, ok := n.Op.(graph.Splitter)
	if ok && n.Kind == graph.KindUpdate {
		ok = n.Mutates > 0
	}
	if !ok {
		return r
	}
	if r.Rule, ok = s.Split(n.InTypes(), n.Out); !ok {
		return &rule{}
	}
	r.divides = make([]bool, len(r.Factors))
	for f := range r.Factors {
		r.divides[f] = r.sensible(n, f)
	}
	return r
}

// sensible reports whether a factor can be divided: it is the major one of every axis that
// it is on, on one axis of a value at most, on some axis at all, and results that do not
// have it are sums that can be added up.
func (r *rule) sensible(n *graph.Node, f int) bool {
	used := false
	for _, axes := range slices.Concat(r.In, r.Out) {
		once := false
		for _, list := range axes {
			i := slices.Index(list, f)
			if i > 0 || i == 0 && once {
				return false
			}
			once = once || i == 0
		}
		used = used || once
	}
	for i, t := range n.Out {
		if has(r.Out[i], f) {
			continue
		}
		if _, err := ops.Added().Infer([]graph.Type{t, t}); !r.Factors[f].Sum || err != nil {
			return false
		}
	}
	for i := range n.Mutates {
		used = used && has(r.In[i], f)
	}
	return used
}

// has reports whether a factor divides one of the axes.
func has(axes [][]int, f int) bool {
	return slices.ContainsFunc(axes, func(list []int) bool {
		return len(list) > 0 && list[0] == f
	})
}

// arrangement is what a node does that only arranges values along an axis: it takes one
// apart into equal parts, joins several, or takes elements lo to hi-1 of one.
type arrangement struct {
	kind   arranging
	axis   int
	lo, hi int
}

// arranging is a kind of arrangement.
type arranging uint8

const (
	notArranging arranging = iota
	splitting
	joining
	slicing
)

// arrangementOf is what a node arranges, if it does.
func (r *rule) arrangementOf(n *graph.Node) arrangement {
	if r.Along == 0 {
		return arrangement{}
	}
	axis := r.Along - 1
	if _, lo, hi, ok := ops.Span(n.Op); ok {
		return arrangement{slicing, axis, lo, hi}
	}
	switch {
	case len(n.In) > 1 && len(n.Out) == 1 && equalTypes(n.InTypes()):
		return arrangement{kind: joining, axis: axis}
	case len(n.In) == 1 && len(n.Out) > 1 && axis == 0 && equalTypes(n.Out):
		return arrangement{kind: splitting}
	}
	return arrangement{}
}

func equalTypes(types []graph.Type) bool {
	return !slices.ContainsFunc(types, func(t graph.Type) bool { return !t.Equal(types[0]) })
}
