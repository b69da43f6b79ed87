package swap

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// AroundPeak fills Away as TensorFlow 1's Grappler memory optimizer does, which
// the thesis compares with (section 6.4.7): it estimates the device's memory in
// the course of the step by adding up live values, and if that exceeds the budget,
// picks values that are live at the peak and idle around it, those idle for the
// longest and largest first, until enough would be out. The estimate knows of no
// workspaces, no copies under way and no gaps between addresses, and what is
// picked is judged by the peak at hand; so both the forecast and the remedy can be
// wrong, which is what the comparison is about.
func AroundPeak(budget int64) program.Pass {
	return program.Pass{Name: "swap-around-peak", Run: func(p *program.Program) error {
		p.Away = make([][]program.Gap, p.Values())
		e := newEstimate(p)
		for range attempts {
			at, bytes := e.peak()
			p.Estimate = bytes
			if bytes <= budget {
				return nil
			}
			e.relieve(at, bytes-budget)
		}
		_, p.Estimate = e.peak()
		return nil
	}}
}

// attempts is how often the optimizer runs over a graph by default.
const attempts = 2

// estimate is what is thought to be live, by position.
type estimate struct {
	p     *program.Program
	delta []int64 // by position: how many more bytes are live than at the one before
	spans []span
}

// span is a value that can be swapped, with its uses on the device.
type span struct {
	value graph.Value
	uses  []int32
}

// deviceUses leaves out the uses by nodes that run on the host.
func deviceUses(p *program.Program, uses []int32) []int32 {
	var out []int32
	for _, u := range uses {
		if p.Place[p.Order[u]] == space.Device {
			out = append(out, u)
		}
	}
	return out
}

func newEstimate(p *program.Program) *estimate {
	e := &estimate{p: p, delta: make([]int64, len(p.Order)+1)}
	uses := p.Uses()
	for _, n := range p.Graph.Nodes() {
		if !p.Live[n.ID] && n.Kind != graph.KindVariable && n.Kind != graph.KindConstant {
			continue
		}
		for i, t := range n.Out {
			v := n.Value(i)
			at := deviceUses(p, uses[p.ValueIndex(v)])
			switch {
			case p.Place[n.ID] == space.Device && n.Leaf():
				e.add(0, int32(len(p.Order))-1, t.Bytes())
			case swappable(n) && len(at) > 0:
				e.add(at[0], at[len(at)-1], t.Bytes())
				e.spans = append(e.spans, span{v, at})
			}
		}
	}
	return e
}

// add puts bytes into the positions from first to last.
func (e *estimate) add(first, last int32, bytes int64) {
	e.delta[first] += bytes
	e.delta[last+1] -= bytes
}

// peak is the position with the most bytes.
func (e *estimate) peak() (at int32, bytes int64) {
	var live int64
	for i, d := range e.delta {
		if live += d; live > bytes {
			at, bytes = int32(i), live
		}
	}
	return at, bytes
}

// relieve puts values that are idle at a position away until so many bytes are
// gone from it, or nothing is left to put away.
func (e *estimate) relieve(at int32, excess int64) {
	var idle []choice
	for _, s := range e.spans {
		i, used := slices.BinarySearch(s.uses, at)
		if !used && i > 0 && i < len(s.uses) && s.value.Type().Bytes() >= MinBytes {
			idle = append(idle, choice{s, program.Gap{After: s.uses[i-1], Before: s.uses[i]}})
		}
	}
	slices.SortStableFunc(idle, func(a, b choice) int { return compareWeights(b, a) })
	for _, c := range idle {
		if excess <= 0 {
			return
		}
		bytes := c.value.Type().Bytes()
		if e.away(c.value, c.gap) {
			e.add(c.gap.After+1, c.gap.Before-1, -bytes)
			excess -= bytes
		}
	}
}

// choice is a value that may be put away, and when.
type choice struct {
	span
	gap program.Gap
}

// compareWeights compares bytes times positions, which 64 bits may not hold.
func compareWeights(a, b choice) int {
	aHigh, aLow := a.weight()
	bHigh, bLow := b.weight()
	return cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow))
}

func (c choice) weight() (high, low uint64) {
	return bits.Mul64(uint64(c.gap.Before-c.gap.After), uint64(c.value.Type().Bytes()))
}

// away records an absence in order, unless it is there already.
func (e *estimate) away(v graph.Value, g program.Gap) bool {
	i := e.p.ValueIndex(v)
	at, found := slices.BinarySearchFunc(e.p.Away[i], g, func(a, b program.Gap) int {
		return cmp.Compare(a.After, b.After)
	})
	if !found {
		e.p.Away[i] = slices.Insert(e.p.Away[i], at, g)
	}
	return !found
}
