package distrib

import "math/bits"

// circulant is a partial topology in which every worker sends to those at the same
// distances from it. Updates are handed on, along the shortest ways, so that they come to
// all; what two have in common of their ways is merged.
type circulant struct{ peers }

func (g *circulant) neighbours(dst []NodeID, self NodeID, offsets []int) []NodeID {
	at, ok := g.index(self)
	if !ok {
		return dst
	}
	for _, d := range offsets {
		dst = append(dst, g.ids[(at+d)%len(g.ids)])
	}
	return dst
}

// Exponential is the sparse topology of choice: worker i sends to i+1, i+2, i+4 and so on.
// The farthest of n is as many hops away as n has binary digits, at most.
type Exponential struct{ circulant }

// Dests are the neighbours, the farthest first.
func (g *Exponential) Dests(dst []NodeID, self NodeID, _ Ref, _ Clock) []NodeID {
	return g.neighbours(dst, self, powersOfTwo(len(g.ids)))
}

func powersOfTwo(n int) (offsets []int) {
	for d := bits.Len(uint(max(n, 1) - 1)); d > 0; d-- {
		offsets = append(offsets, 1<<(d-1))
	}
	return offsets
}

// Halton is the topology of Petuum's survey: of N workers, worker i sends to those at
// floor(N*h) from it, for the first log2(N) numbers h of van der Corput's sequence: 1/2,
// 1/4, 3/4, 1/8 and so on. By itself that does not connect 17 of the sizes 3 to 128, among
// them all powers of two from 8 on, whose distances are even but for small ones; so the
// next worker is always there too. Its ways are longer than those of [Exponential]: 9 hops
// where that has 6, of 64 workers, and 16 where that has 7, of 128.
type Halton struct{ circulant }

// Dests are the neighbours.
func (g *Halton) Dests(dst []NodeID, self NodeID, _ Ref, _ Clock) []NodeID {
	offsets := haltonOffsets(len(g.ids))
	if len(g.ids) > 1 {
		offsets = appendNew(offsets, 1)
	}
	return g.neighbours(dst, self, offsets)
}

// haltonOffsets are the survey's distances.
func haltonOffsets(n int) (offsets []int) {
	for k := 1; k < bits.Len(uint(n)); k++ {
		// The k-th number is k with its digits reversed behind the point.
		reversed := uint64(bits.Reverse32(uint32(k)))
		if d := int(uint64(n) * reversed >> 32); d > 0 {
			offsets = appendNew(offsets, d)
		}
	}
	return offsets
}

func appendNew(offsets []int, d int) []int {
	for _, have := range offsets {
		if have == d {
			return offsets
		}
	}
	return append(offsets, d)
}

// Ring sends to the next worker only, which hands on: least connections, longest ways.
type Ring struct{ circulant }

// Dests is the next worker.
func (g *Ring) Dests(dst []NodeID, self NodeID, _ Ref, _ Clock) []NodeID {
	if len(g.ids) < 2 {
		return dst
	}
	return g.neighbours(dst, self, []int{1})
}
