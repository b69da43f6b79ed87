package search

import (
	"math"

	"github.com/gomem/gomem/graph"
)

// Levels is how many ways there are to cut the forward pass into segments.
const Levels = 2

// Whole is the level at which nothing is cut, and all stays on the device that is computed there.
const Whole = Levels + 1

// Segmented is a decision that needs little of the host: the forward pass is cut into
// segments, and of what the backward pass reads only the values that cross from one
// segment to the next are kept, on the host. Everything else is computed again, segment by
// segment, just before it is needed. Variables are on the device as homes say, by node, and
// else on the host, as all are of nil. Level 1 has about as many segments as balance what they
// keep on the host and what one of them computes again on the device; each further level has
// four times as many, but for [Whole]. It depends on no budget: it takes of the device what its
// neediest position does. An operation of one result runs at most twice.
func (pr *Problem) Segmented(level int, homes []bool) *Decision {
	s := &state{act: make([]action, len(pr.values)), home: make([]home, len(pr.groups)), slack: 62}
	if level < Whole {
		pr.segment(s, pr.cutsOf(level))
	}
	if homes == nil {
		homes = make([]bool, pr.program.Graph.Len())
	}
	for g := range pr.groups {
		if x := &pr.groups[g]; len(x.leaves) > 0 && homes[pr.leaves[x.leaves[0]].node.ID] {
			s.home[g] = resident
		}
	}
	e := newEvaluator(pr, Budget{never, never})
	e.force(homes)
	e.build(s)
	e.budget.Device = e.peak
	e.evaluate(s)
	return e.decision(s)
}

// span is from where a value is made to where the forward pass reads it for the last time,
// by operation.
type span struct {
	made, last int32
	needed     int32 // the last operation of another pass that reads it, or 0
}

// spans are those of the values that the forward pass makes; made is -1 for others.
func (pr *Problem) spans() []span {
	list := make([]span, len(pr.values))
	for v := range list {
		list[v].made = -1
	}
	for i := range pr.ops {
		o := &pr.ops[i]
		forward := o.node.Phase == graph.Forward
		for _, v := range o.in {
			if p := &list[v]; p.made >= 0 && forward {
				p.last = int32(i)
			} else if p.made >= 0 {
				p.needed = int32(i)
			}
		}
		for _, v := range o.out {
			if forward {
				list[v] = span{made: int32(i), last: int32(i)}
			}
		}
	}
	return list
}

// cutsOf are the operations after which segments of a level end, in order. They are
// where the fewest bytes cross, each in its part of the saved bytes.
func (pr *Problem) cutsOf(level int) []int32 {
	crossing, saved := make([]int64, len(pr.ops)+1), make([]int64, len(pr.ops)+1)
	for v, p := range pr.spans() {
		if p.made < 0 {
			continue
		}
		crossing[p.made] += pr.values[v].bytes
		crossing[p.last] -= pr.values[v].bytes
		if p.needed > 0 {
			saved[p.made+1] += pr.values[v].bytes
		}
	}
	var sum, places int64
	for i := range pr.ops {
		saved[i+1] += saved[i]
		if i > 0 {
			crossing[i] += crossing[i-1]
		}
		if crossing[i] > 0 {
			sum += crossing[i]
			places++
		}
	}
	all := saved[len(pr.ops)]
	if places == 0 || all == 0 {
		return nil
	}
	count := int64(math.Sqrt(float64(all) / (float64(sum) / float64(places))))
	return cheapest(crossing, saved, count<<(2*(level-1)))
}

// cheapest are so many places less one, in order, each where the fewest bytes cross of
// those at which about the next part of the saved bytes has been made.
func cheapest(crossing, saved []int64, count int64) []int32 {
	all := saved[len(saved)-1]
	var cuts []int32
	at := int32(0)
	for k := int64(1); k < count; k++ {
		low, high := all/(2*count)*(2*k-1), all/(2*count)*(2*k+1)
		best := int32(-1)
		for ; int(at) < len(crossing)-1 && saved[at+1] < high; at++ {
			if saved[at+1] >= low && crossing[at] > 0 &&
				(best < 0 || crossing[at] < crossing[best]) {
				best = at
			}
		}
		if best >= 0 {
			cuts = append(cuts, best)
		}
	}
	return cuts
}

// segment fills the actions: what crosses a cut is swapped, and what cannot be computed
// again; what lies within a segment is computed again, except in the last one, which the
// backward pass begins with.
func (pr *Problem) segment(s *state, cuts []int32) {
	next := make([]int32, len(pr.ops)+1) // by operation: the first cut from it on
	k := len(cuts)
	for i := int32(len(pr.ops)); i >= 0; i-- {
		for k > 0 && cuts[k-1] >= i {
			k--
		}
		if next[i] = never32; k < len(cuts) {
			next[i] = cuts[k]
		}
	}
	for v := range s.act {
		s.act[v] = swap
	}
	for v, p := range pr.spans() {
		if p.made >= 0 && next[p.made] < never32 && next[p.made] >= p.last && pr.repeatable(p) &&
			!pr.minor(int32(v)) {
			s.act[v] = recompute
		}
	}
}

// minor reports whether a value is a small part of what its operation makes, such as the
// mean beside what is normalised. To compute it again where it is needed, which may be
// elsewhere than the rest, costs more than its few bytes.
func (pr *Problem) minor(v int32) bool {
	var most int64
	for _, w := range pr.ops[pr.values[v].producer].out {
		most = max(most, pr.values[w].bytes)
	}
	return pr.values[v].bytes < most/minorPart
}

// minorPart is the part of the largest result below which a result is minor.
const minorPart = 64

// never32 is an operation that there is not.
const never32 = math.MaxInt32

// repeatable reports whether an operation may be executed again until its results are read
// for the last time.
func (pr *Problem) repeatable(p span) bool {
	limit := pr.ops[p.made].limit
	return limit > p.made && limit >= p.needed
}
