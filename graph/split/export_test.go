package split

import "slices"

// Floors is what becomes of every region if it is cut into so many parts: into how many
// it is, and what its neediest operation needs.
func (s *Survey) Floors(parts int) (counts []int, needs []int64, err error) {
	floors, err := s.floors(slices.Repeat([]int{parts}, len(s.regions)))
	for _, f := range floors {
		counts, needs = append(counts, f.parts), append(needs, f.need)
	}
	return counts, needs, err
}
