package compile

import (
	"context"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/pass"
	"github.com/gomem/gomem/plan"
)

// Rung is what the ladder decides.
type Rung struct {
	Lookahead int  // partitions for which what is idle stays on the device
	Prefetch  int  // operations by which copies run ahead
	Unshared  bool // every reader of a variable on the host gets a copy of its own
}

// candidate is a plan on a rung.
type candidate struct {
	Rung
	plan    *plan.Plan
	program *pass.Program
}

// climb is a search on the ladder for the most relaxed plan that fits.
type climb struct {
	ctx     context.Context
	graph   *graph.Graph
	target  Target
	options Options
	first   *pass.Program // of the look-ahead that the options give
	tried   []*plan.Plan  // plans that did not fit
}

// best is the most relaxed plan that fits, or nil: under Auto the longest
// look-ahead, then for the given one the longest prefetch, and last the copies of
// variables that nobody shares.
func (c *climb) best() (*candidate, error) {
	if c.options.Policy == Auto {
		if found, err := c.longest(); found != nil || err != nil {
			return found, err
		}
		c.tried = nil
	}
	for _, r := range rungs(c.options) {
		found, err := c.try(r)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// longest searches for the longest look-ahead that fits, with the longest
// prefetch: halving it from all partitions, and then between the longest that
// fits and the shortest that does not. A longer look-ahead than the result may
// fit by luck of the packing, which is not monotone; no other is missed.
func (c *climb) longest() (*candidate, error) {
	var found *candidate
	fails := max(c.first.Parts(), c.options.Lookahead) * 2
	for k := fails / 2; found == nil && k > c.options.Lookahead; k /= 2 {
		var err error
		if found, err = c.try(Rung{Lookahead: k,
			Prefetch: autoAhead * c.options.Partition}); err != nil {
			return nil, err
		}
		if found == nil {
			fails = k
		}
	}
	if found == nil || found.Lookahead >= c.first.Parts() {
		return found, nil
	}
	for steps := 0; steps < refinements && fails-found.Lookahead > 1; steps++ {
		middle := (found.Lookahead + fails) / 2
		next, err := c.try(Rung{Lookahead: middle, Prefetch: autoAhead * c.options.Partition})
		if err != nil {
			return nil, err
		}
		if next == nil {
			fails = middle
		} else {
			found = next
		}
	}
	return found, nil
}

// autoAhead is how many partitions copies run ahead under Auto. One, as in the
// thesis, hides a copy behind about as many operations as there are copies to hide
// at the edges of large values, and stalls there.
const autoAhead = 2

// refinements bounds the search between two look-aheads of which one is half of
// the other: four halvings leave a sixteenth of the difference.
const refinements = 4

// try makes the plan of a rung. It is nil if it does not fit.
func (c *climb) try(r Rung) (*candidate, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	o, p := c.options, c.first
	if o.Lookahead != r.Lookahead {
		o.Lookahead = r.Lookahead
		var err error
		if p, _, err = decide(c.ctx, c.graph, c.target, o); err != nil {
			return nil, err
		}
	}
	made := lower(p, o, r)
	if !fits(made) {
		c.tried = append(c.tried, made)
		return nil, nil
	}
	return &candidate{r, made, p}, nil
}

// rungs lists what to try for a look-ahead, the most relaxed first.
func rungs(o Options) []Rung {
	var list []Rung
	for d := o.Partition; d > 0; d /= 4 {
		list = append(list, Rung{Lookahead: o.Lookahead, Prefetch: d})
	}
	list = append(list, Rung{Lookahead: o.Lookahead})
	if o.NoPlacement {
		return list // nothing is staged
	}
	return append(list, Rung{Lookahead: o.Lookahead, Unshared: true})
}
