package command

import (
	"cmp"

	"github.com/gomem/gomem/planner"
)

// byDefault is the policy of a command line that leaves the plan to gomem.
const byDefault = planner.Auto

// policy is the policy that the flags ask for: the one that is named; else, with a
// flag that says how to cut partitions, the thesis', of which that is a part; else the
// default.
func (f planFlags) policy() planner.Policy {
	implied := byDefault
	if f.Partition > 0 || f.Strategy != "" || f.Lookahead > 0 {
		implied = planner.Thesis
	}
	return cmp.Or(planner.Policy(f.Policy), implied)
}

// baseline is the policy that all are compared with. It needs no budget, since it
// is there to show what a model takes without one.
const baseline = planner.Vanilla

// uncut says how the policies that cut no partitions make plans.
var uncut = map[planner.Policy]string{
	planner.Vanilla:  "everything on the device",
	planner.Grappler: "everything on the device but what is idle around the estimated peak",
}
