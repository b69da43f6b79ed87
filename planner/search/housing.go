package search

import (
	"cmp"
	"slices"
)

// Housing is where variables and constants are, by node, if the largest groups of them are on the
// device, up to some parts of the bytes of all: for problems of one graph, which agree on it.
// What is updated on the host stays there, and what is read there; so less may be on the device.
func Housing(problems []*Problem, parts, of int64) []bool {
	pr := problems[0]
	here := pr.largest(parts, of)
	for moved := true; moved; { // a group that stays may keep others
		moved = false
		for _, x := range problems {
			for g := range here {
				if here[g] && x.groups[g].keptBy(here) {
					here[g], moved = false, true
				}
			}
		}
	}
	homes := make([]bool, pr.program.Graph.Len())
	for _, l := range pr.leaves {
		homes[l.node.ID] = here[l.group]
	}
	return homes
}

// keptBy reports whether a group must be on the host if those are that are not on the device.
func (g *group) keptBy(here []bool) bool {
	return g.hosted || slices.ContainsFunc(g.readers, func(r int32) bool {
		return int(r) >= len(here) || !here[r]
	})
}

// largest are the largest groups of leaves, up to some parts of the bytes of all.
func (pr *Problem) largest(parts, of int64) []bool {
	var order []int
	var total int64
	for g := range pr.groups {
		if len(pr.groups[g].leaves) > 0 { // the others are no part of the graph
			order = append(order, g)
			total += pr.groups[g].bytes
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(pr.groups[b].bytes, pr.groups[a].bytes)
	})
	here := make([]bool, len(order))
	limit := total / of * parts
	if parts == of {
		limit = total
	}
	for _, g := range order {
		if bytes := pr.groups[g].bytes; bytes <= limit {
			here[g] = true
			limit -= bytes
		}
	}
	return here
}
