package candidates

import (
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/planner/order"
	"github.com/gomem/gomem/planner/program"
)

// passes is the pass list of a candidate, in order. precedence documents why.
func passes(w Candidate) []program.Pass {
	o := w.options
	if w.Segments > 0 {
		return []program.Pass{program.DeadCode(), order.Creation()}
	}
	cut := partition.Pass
	if w.Bounded {
		cut = partition.Bounded
	}
	return append([]program.Pass{
		program.DeadCode(),
		cut(o.Strategy, o.Partition),
		placement.Pass(!o.NoPlacement),
	}, o.Policy.rules().swaps(w)...)
}

// precedence says which pass must come before which, and why. A test checks the list
// against it; it changes nothing.
var precedence = []struct{ before, after, why string }{
	{"deadcode", "partition", "a dead operation would take up a place in a partition"},
	{"partition", "swap", "idleness is measured in partitions between uses"},
	{"deadcode", "placement", "a dead reader would keep part of an update on the device"},
	{"placement", "swap", "a use on the host is not a use of the device's copy"},
}
