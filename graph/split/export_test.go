package split

import (
	"slices"

	"github.com/gomem/gomem/graph"
)

// Floors is what becomes of every region if it is cut into so many parts: into how many
// it is, and what its neediest operation needs.
func (s *Survey) Floors(parts int) (counts []int, needs []int64, err error) {
	floors, err := s.floors(slices.Repeat([]int{parts}, len(s.regions)))
	for _, f := range floors {
		counts, needs = append(counts, f.parts), append(needs, f.need)
	}
	return counts, needs, err
}

// Segments are those of a region.
func (s *Survey) Segments(region int) [][]graph.NodeID { return s.segments(int32(region)) }

// SegmentsBySearch are the segments of a region by their definition: every node between is
// asked whether it needs something whole.
func (s *Survey) SegmentsBySearch(region int) (out [][]graph.NodeID) {
	r, number, first := s.regions[region], int32(region), graph.NodeID(0)
	clear(s.after)
	for id := r.nodes[0]; id <= r.nodes[len(r.nodes)-1]; id++ {
		if !s.live[id] {
			continue
		}
		needs := len(out) > 0 && s.needsWhole(number, id, first)
		switch {
		case s.regionOf[id] != number && needs:
			s.after[id] = first + 1
		case s.regionOf[id] != number:
		case len(out) == 0 || needs:
			out, first = append(out, nil), id
			fallthrough
		default:
			out[len(out)-1] = append(out[len(out)-1], id)
		}
	}
	return out
}
