package arena

import (
	"math/bits"
	"slices"
)

// fewKeys is how many keys are sorted by comparing them. More are put into about as many bins
// first, which is several times as fast; nearly all the time of packing goes into sorting.
const fewKeys = 24

// mostBins is how many bins there are at most, as a power of two.
const mostBins = 11

// crowded is how many keys of a bin are sorted by themselves; fewer are mended where they are.
const crowded = 16

// sorter sorts keys, with memory for the next time.
type sorter struct {
	spare []uint64
	ends  [1 << mostBins]int32 // by bin
}

// sort sorts keys. It returns them in the memory of the ones before, which trades places with them.
func (s *sorter) sort(keys []uint64) []uint64 {
	if len(keys) <= fewKeys {
		insert(keys)
		return keys
	}
	least, most := keys[0], keys[0]
	for _, k := range keys {
		least, most = min(least, k), max(most, k)
	}
	shift := max(0, bits.Len64(most-least)-min(bits.Len(uint(len(keys))), mostBins))
	ends := s.ends[:(most-least)>>shift+1]
	clear(ends)
	for _, k := range keys {
		ends[(k-least)>>shift]++
	}
	sum, full := int32(0), false
	for i, n := range ends {
		ends[i], full = sum, full || n > crowded
		sum += n
	}
	sorted := sized(s.spare, len(keys))
	for _, k := range keys {
		at := &ends[(k-least)>>shift]
		sorted[*at] = k
		*at++
	}
	s.spare = keys[:cap(keys)]
	if full {
		s.uncrowd(ends, sorted)
	}
	insert(sorted)
	return sorted
}

// uncrowd sorts the keys of those bins that have many.
func (s *sorter) uncrowd(ends []int32, keys []uint64) {
	first := int32(0)
	for _, end := range ends {
		if end-first > crowded {
			slices.Sort(keys[first:end])
		}
		first = end
	}
}

// insert sorts keys of which each is near its place.
func insert(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		k, j := keys[i], i
		for ; j > 0 && keys[j-1] > k; j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = k
	}
}

// sized is a slice of so many keys in the memory of another, if that has enough.
func sized(s []uint64, n int) []uint64 {
	if cap(s) < n {
		return make([]uint64, n, n+n/2)
	}
	return s[:n]
}
