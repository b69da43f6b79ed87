package split

import (
	"github.com/gomem/gomem/graph"
)

// most bounds the parts of a region.
const most = 1 << 10

// region is nodes that are cut into parts together, at the same places.
type region struct {
	nodes []graph.NodeID // in order of creation once it has grown
	cuts  map[graph.NodeID]graph.Cut
	// A unit is the smallest fraction of every value that is cut at which all nodes'
	// rows begin; parts begin at multiples of step units, and have least at least.
	units, step, least int
	most               int              // parts
	segments           [][]graph.NodeID // nil: not known yet, see Survey.segments
}

// with is the region with one more node, or false if they cannot be cut at the
// same places. The region is then left as it is.
func (r *region) with(id graph.NodeID, c graph.Cut) (*region, bool) {
	out := &region{nodes: append(r.nodes, id), cuts: r.cuts}
	if out.units = gcd(r.units, c.Rows); out.units == r.units && len(r.nodes) > 0 {
		out.step, out.least = r.step, r.least
		out.limit(c)
	} else {
		out.step, out.least = 1, 1
		for _, c := range r.cuts {
			out.limit(c)
		}
		out.limit(c)
	}
	out.most = out.parts()
	return out, out.most > 1
}

// limit observes the limits of a node's cut.
func (r *region) limit(c graph.Cut) {
	rows := c.Rows / r.units
	step := c.Align / gcd(c.Align, rows)
	r.step = min(r.units, r.step/gcd(r.step, step)*step)
	r.least = max(r.least, (c.Least+rows-1)/rows)
}

// parts is the most parts into which the region can be cut.
func (r *region) parts() int {
	k := min(most, r.blocks(), r.units/max(r.step, r.least))
	for k > 1 && !r.allows(k) {
		k--
	}
	return k
}

// blocks is the number of steps, of which the last may be shorter.
func (r *region) blocks() int { return (r.units + r.step - 1) / r.step }

// allows reports whether none of k parts is too small.
func (r *region) allows(k int) bool {
	return r.blocks()/k*r.step >= r.least && r.units-r.begin(k-1, k) >= r.least
}

// begin is the unit at which a part of k begins; that of part k is the end.
func (r *region) begin(part, k int) int {
	return min(r.units, part*r.blocks()/k*r.step)
}

// rows are the rows of a node in a part of k.
func (r *region) rows(id graph.NodeID, part, k int) (lo, hi int) {
	rows := r.cuts[id].Rows / r.units
	return r.begin(part, k) * rows, r.begin(part+1, k) * rows
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
