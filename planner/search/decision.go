package search

import (
	"slices"
	"time"
)

// action is what happens to a value between its uses.
type action uint8

const (
	keep      action = iota // it stays
	swap                    // it is away in every long gap; what is the host's comes again
	recompute               // it is dropped in its longest gap, and its operation executed again
	shun                    // it is away in every gap, however short
)

// home is where a group of variables is and is updated.
type home uint8

const (
	onHost   home = iota // streamed to those that read them; gradients move, updates run there
	resident             // on the device, between steps too
	written              // on the host; streamed to their update on the device too, and back
)

// state is one point of the search.
type state struct {
	act  []action // by value
	home []home   // by group
	// cut: recomputed values are away in all gaps longer than this thousandth of
	// the operations' time, instead of the longest only; 0: in that only.
	cut int64
	// slack: a gap in which a swapped value is away is longer than its copies by the
	// operations' time, shifted right by so much.
	slack int64
}

func (s *state) clone() *state {
	return &state{slices.Clone(s.act), slices.Clone(s.home), s.cut, s.slack}
}

// Decision is a plan's decisions, with what they come to under a budget.
type Decision struct {
	state  *state
	budget Budget
	spare  []int64 // by operation: what it leaves free of that while it runs; nil: nothing
	time   int64
	moved  int64 // bytes that are copied, each value's rounded up
	peak   int64
	host   int64
	// bytes of the values that operations compute, by what happens to them
	swapped, recomputed int64
	homes               []bool
}

// Time is the simulated time of a step.
func (d *Decision) Time() time.Duration { return time.Duration(d.time) }

// Moved is how many bytes a step copies to the device and away from it, each value rounded up to
// the arena's alignment.
func (d *Decision) Moved() int64 { return d.moved }

// Peak is the most bytes of the device that are taken at once, each value rounded
// up to the arena's alignment.
func (d *Decision) Peak() int64 { return d.peak }

// Budget is the budget that the decision keeps to: that which was asked for, or a
// smaller one if packing loses some bytes.
func (d *Decision) Budget() Budget { return d.budget }

// Resident says which variables and constants are on the device, by node.
func (d *Decision) Resident() []bool { return slices.Clone(d.homes) }
