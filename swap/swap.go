// Package swap decides when values leave the device (J. Wei, thesis 2019,
// section 6.3.2).
//
// The look-ahead rule: partitions run in a known order, so a value that none of
// the next K partitions needs goes out to the host after it was made, and comes
// back shortly before its next user. Here the rule is applied to every interval
// between two uses of a value, not only to the one after its producer: a value
// read in the forward pass, long after in the backward pass, and once more
// near its end is away twice. Values are immutable, so it is copied out once.
//
// Values smaller than MinBytes stay: the copies would cost more than the bytes
// are worth.
//
// What it does not do: look at the budget, the bandwidth or the time that a
// copy takes. When exactly the copies run is lowering's business.
package swap

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// MinBytes is the size below which a value is never swapped.
const MinBytes = 256

// LookAhead fills Away by the look-ahead rule with K = lookahead partitions.
func LookAhead(lookahead int) program.Pass {
	return program.Pass{Name: "swap", Run: func(p *program.Program) error {
		if lookahead < 1 {
			return fmt.Errorf("look-ahead %d is less than one partition", lookahead)
		}
		p.Away = make([][]program.Gap, p.Values())
		uses := p.Uses()
		for _, n := range p.Graph.Nodes() {
			if !p.Live[n.ID] || !swappable(n) {
				continue
			}
			for i, t := range n.Out {
				if v := p.ValueIndex(n.Value(i)); t.Bytes() >= MinBytes {
					p.Away[v] = gaps(p, uses[v], lookahead)
				}
			}
		}
		return nil
	}}
}

// swappable are results of operations and inputs; variables and constants are
// placement's.
func swappable(n *graph.Node) bool {
	return n.Kind == graph.KindInput || n.Kind == graph.KindCompute && n.Executes()
}

// gaps lists the intervals between uses on the device that span more than k partitions.
func gaps(p *program.Program, uses []int32, k int) []program.Gap {
	var out []program.Gap
	last := int32(-1)
	for _, u := range uses {
		if p.Place[p.Order[u]] != space.Device {
			continue
		}
		if last >= 0 && int(p.Part[p.Order[u]]-p.Part[p.Order[last]]) > k {
			out = append(out, program.Gap{After: last, Before: u})
		}
		last = u
	}
	return out
}
