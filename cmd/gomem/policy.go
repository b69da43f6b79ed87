package main

import "github.com/gomem/gomem/compile"

// baseline is the policy that all are compared with. It needs no budget, since it
// is there to show what a model takes without one.
const baseline = compile.Vanilla

// uncut says how the policies that cut no partitions make plans.
var uncut = map[compile.Policy]string{
	compile.Vanilla:  "everything on the device",
	compile.Grappler: "everything on the device but what is idle around the estimated peak",
}
