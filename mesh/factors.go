package mesh

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// candidate is a factor of a node by which an operand or result is divided along an axis of
// the mesh.
type candidate struct{ m, factor int }

// factors is, by factor of a node's rule, 1 + the axis of the mesh along which it is
// divided; nil if none is. If several could be divided along one axis with several processes,
// that one is for which they send the fewest bytes, as far as is known; of those that are
// equal the first, where operands come before results. Of an update only the variables that
// it writes count.
func (p *Propagation) factors(n *graph.Node, results bool) []int8 {
	if len(p.rules[n.ID].Factors) == 0 {
		return nil
	}
	var along []int8
	var used [maxAxes]bool
	var buffer [8]candidate
	list := p.candidates(buffer[:0], n, results)
	for i, c := range list {
		if used[c.m] || along != nil && along[c.factor] != 0 {
			continue
		}
		if along == nil {
			along = make([]int8, len(p.rules[n.ID].Factors))
		}
		best := c.factor
		if p.spec.Mesh.Cluster[c.m] > 1 {
			best = p.cheapest(n, list[i:], along)
		}
		along[best], used[c.m] = int8(c.m+1), true
	}
	return along
}

// candidates appends those of a node to a list.
func (p *Propagation) candidates(list []candidate, n *graph.Node, results bool) []candidate {
	r := p.rules[n.ID]
	add := func(v graph.Value, axes [][]int) {
		for j, a := range p.Of(v).Axis {
			if a == 0 || len(axes[j]) == 0 || p.at[n.ID][a-1] > 0 {
				continue
			}
			m, f := int(a-1), axes[j][0]
			size := p.spec.Mesh.Size(m)
			if r.divides[f] && r.Factors[f].Size >= size && r.Factors[f].Size%size == 0 {
				list = append(list, candidate{m, f})
			}
		}
	}
	in := n.In
	if n.Kind == graph.KindUpdate {
		in = in[:n.Mutates]
	}
	for i, v := range in {
		add(v, r.In[i])
	}
	for i := range n.Out {
		if results {
			add(n.Value(i), r.Out[i])
		}
	}
	return list
}

// cheapest is the factor that costs the fewest bytes of those that can be divided along the
// axis of the first candidate.
func (p *Propagation) cheapest(n *graph.Node, list []candidate, along []int8) int {
	best, m := list[0].factor, list[0].m
	least := int64(-1)
	for _, c := range list[1:] {
		if c.m != m || c.factor == best || along[c.factor] != 0 {
			continue
		}
		if least < 0 {
			least = p.sent(n, candidate{m, best})
		}
		if sent := p.sent(n, c); sent < least {
			best, least = c.factor, sent
		}
	}
	return best
}

// sent is how many bytes a process sends so that a node's operands are divided as a candidate
// says, and what comes of it is as it is wanted, if that is known.
func (p *Propagation) sent(n *graph.Node, c candidate) (sum int64) {
	r := p.rules[n.ID]
	for i, v := range n.In {
		have := p.now(v)
		bytes, _ := p.cost(v.Type(), have, have.along(c, r.In[i]))
		sum += bytes
	}
	for i := range n.Out {
		v, want := n.Value(i), p.now(n.Value(i))
		have := want.along(c, r.Out[i])
		if have.part[c.m] = !has(r.Out[i], c.factor); !have.part[c.m] && !p.Of(v).uses(c.m) {
			continue // wanted in any way
		}
		bytes, _ := p.cost(v.Type(), have, want)
		sum += bytes
	}
	return sum
}

// now is where a value is, as far as is known.
func (p *Propagation) now(v graph.Value) spread {
	return spread{axis: p.Of(v).Axis, place: p.processes(p.Of(v).At)}
}

// along is where a value is whose axes are those of a rule, and divided along an axis of the
// mesh as a candidate says.
func (s spread) along(c candidate, axes [][]int) spread {
	s.axis = slices.Clone(s.axis)
	for j, a := range s.axis {
		if int(a) == c.m+1 {
			s.axis[j] = 0
		}
	}
	s.place[c.m] = 0
	for j, list := range axes {
		if len(list) > 0 && list[0] == c.factor {
			s.axis[j] = int8(c.m + 1)
		}
	}
	return s
}
