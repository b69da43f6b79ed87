package calibrate

import (
	"cmp"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// want is a node whose operation is to be timed.
type want struct {
	signature string
	node      *graph.Node
	at        int // in the step
	nth       int // among the nodes of its signature, from 0
	of        int // how many there are
}

func signature(n *graph.Node) string { return machine.Signature(n) }

// missing lists the nodes whose signatures are not known, or not to be trusted, and whose
// operands are not too large.
func (m *Machine) missing(nodes []*graph.Node) []want {
	var todo []want
	count := map[string]int{}
	for i, n := range nodes {
		if !n.Executes() || m.target.needs(n) > m.options.Bytes {
			continue
		}
		sig := signature(n)
		if s, ok := m.known.Samples[sig]; !ok || !s.settled() {
			todo = append(todo, want{signature: sig, node: n, at: i, nth: count[sig]})
			count[sig]++
		}
	}
	for i := range todo {
		todo[i].of = count[todo[i].signature]
	}
	return todo
}

// choose takes the nodes that are expected to be timed within the limits, in the order
// of the step, in parts that fit the memory: all; or else as many of each signature as
// leaves them in one part, a power of two; or else one of each signature, and if even
// these are too many, the most important.
func (m *Machine) choose(nodes []*graph.Node, todo []want) [][]want {
	price := m.Local().For("", nil)
	cost := func(w want) float64 {
		// also once for the data and once to touch the memory
		return (rounds + 2) * price.Time(w.node, space.Device).Seconds()
	}
	limit := m.options.Limit.Seconds()
	best := m.important(todo, cost, limit)
	for most := 2; len(best) > 0; most *= 2 {
		var more []want
		var seconds float64
		for _, w := range todo {
			if w.nth < most {
				more = append(more, w)
				seconds += float64(cost(w))
			}
		}
		if len(more) <= len(best) || seconds > limit || !m.fits(nodes, more) {
			break
		}
		best = more
	}
	return m.parts(best)
}

// fits reports whether nodes have room at once.
func (m *Machine) fits(nodes []*graph.Node, some []want) bool {
	r, u := newRoom(m.target, nil, m.options.Bytes), newUses(nodes, some)
	for _, w := range some {
		if r.seat(&trial{want: w}, u) != nil {
			return false
		}
	}
	return true
}

// important is one node of each signature, as far as there is time: of every operation
// one first, then those that occur often.
func (m *Machine) important(todo []want, cost func(want) float64, limit float64) []want {
	seen := map[string]bool{}
	var first, rest []want
	todo = slices.DeleteFunc(slices.Clone(todo), func(w want) bool { return w.nth > 0 })
	slices.SortStableFunc(todo, func(a, b want) int { return cmp.Compare(b.of, a.of) })
	for _, w := range todo {
		if op := w.node.OpName(); !seen[op] {
			first, seen[op] = append(first, w), true
		} else {
			rest = append(rest, w)
		}
	}
	var chosen []want
	for _, w := range append(first, rest...) {
		if c := cost(w); c <= limit {
			limit -= c
			chosen = append(chosen, w)
		}
	}
	slices.SortFunc(chosen, func(a, b want) int { return cmp.Compare(a.at, b.at) })
	return chosen
}

// parts cuts what does not fit the memory at once.
func (m *Machine) parts(some []want) [][]want {
	var parts [][]want
	var bytes int64
	for _, w := range some {
		n := m.target.needs(w.node)
		if len(parts) == 0 || bytes+n > m.options.Bytes {
			parts, bytes = append(parts, nil), 0
		}
		bytes += n
		last := &parts[len(parts)-1]
		*last = append(*last, w)
	}
	return parts
}
