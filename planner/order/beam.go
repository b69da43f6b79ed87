package order

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// Width is how many partial orders of a stretch are kept by default: with eight times
// as many no model's peak falls by a per cent more.
const Width = 8

// stretch is the number of operations that are rearranged together.
const stretch = 64

// Beam is the order of least peak among the others, improved by a beam search of a
// width: that many partial orders of a stretch are gone on with. Its peak is never
// above the peaks of the others.
func Beam(width int) program.Pass {
	return as("beam", func(p *program.Program, a *Account) []graph.NodeID {
		order := byCreation(p, a)
		peak := a.Peak(order)
		for _, find := range []func(*program.Program, *Account) []graph.NodeID{bySize, byPeak} {
			if other := find(p, a); a.Peak(other) < peak {
				order, peak = other, a.Peak(other)
			}
		}
		improve(p, a, order, stretch, max(width, 1))
		return order
	})
}

// improve rearranges an order, stretch by stretch. Stretches overlap by half, so that
// in the end an operation may be farther from where it was than a stretch is long.
func improve(p *program.Program, a *Account, order []graph.NodeID, size, width int) {
	s := a.begin()
	w := newWindow(p, a)
	for from := 0; from < len(order); from += max(size/2, 1) {
		nodes := order[from:min(from+size, len(order))]
		w.open(s, nodes)
		if better := w.search(width); better != nil {
			copy(nodes, better)
		}
		w.close()
		for _, id := range nodes[:min(max(size/2, 1), len(nodes))] {
			s.run(id)
		}
	}
}
