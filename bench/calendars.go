package main

import (
	"fmt"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// calendars counts what packing loses of the device: the bytes of a plan over the most that
// its slots have at once. Plans of the planner's rivals are none of these: their addresses are
// spread over what room there is (package planner).
type calendars struct {
	all, dense int
	rivals     int
	worst      float64
	of         string // whose that is
}

// most is what a packing that is dense takes of its load.
const most = 1.02

// add counts a plan.
func (c *calendars) add(r *planner.Result, of string) {
	if r.Order == "" {
		c.rivals++
		return
	}
	ratio := float64(r.Plan.Spaces[space.Device].Bytes) / float64(load(r.Plan, space.Device))
	c.all++
	if ratio <= most {
		c.dense++
	}
	if ratio > c.worst {
		c.worst, c.of = ratio, of
	}
}

// String is the count in a sentence.
func (c *calendars) String() string {
	return fmt.Sprintf("Of %d plans of the planner's own, %d take at most %.2f of the most bytes "+
		"that they have at once; the loosest takes %.3f (%s). The addresses of %d more, its "+
		"rivals', are spread over what room there is.", c.all, c.dense, most, c.worst, c.of,
		c.rivals)
}

// load is the most bytes that the slots of a space have at once, each rounded up to the space's
// alignment.
func load(p *plan.Plan, of space.ID) int64 {
	change := make([]int64, len(p.Steps)+1)
	var fixed, now, top int64
	align := p.Spaces[of].Align
	for _, s := range p.Slots {
		bytes := (s.Bytes + align - 1) / align * align
		switch {
		case s.Space != of:
		case s.Fixed:
			fixed += bytes
		default:
			change[s.From] += bytes
			change[s.To+1] -= bytes
		}
	}
	for _, c := range change {
		now += c
		top = max(top, now)
	}
	return fixed + top
}
