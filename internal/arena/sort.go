package arena

import "slices"

// fewKeys is how many keys are sorted by comparing them. More are sorted by digits,
// which is several times as fast; nearly all the time of packing goes into sorting.
const fewKeys = 48

// digit is how many bits of an offset are looked at in one round.
const digit = 8

// sortKeys sorts keys whose indices are in order, so that it is enough to go by their
// offsets. It returns the sorted keys and room for the next call, which trade places.
func sortKeys(keys, spare []uint64) (sorted, room []uint64) {
	if len(keys) <= fewKeys {
		slices.Sort(keys)
		return keys, spare
	}
	all := uint64(0)
	for _, k := range keys {
		all |= k
	}
	spare = sized(spare, len(keys))
	for shift := indexBits; all>>shift != 0; shift += digit {
		var ends [1 << digit]int32
		for _, k := range keys {
			ends[uint8(k>>shift)]++
		}
		if int(ends[uint8(keys[0]>>shift)]) == len(keys) {
			continue // they are all alike in this digit
		}
		sum := int32(0)
		for i, n := range ends {
			ends[i] = sum
			sum += n
		}
		for _, k := range keys {
			at := &ends[uint8(k>>shift)]
			spare[*at] = k
			*at++
		}
		keys, spare = spare, keys
	}
	return keys, spare[:cap(spare)]
}

// sized is a slice of so many keys in the memory of another, if that has enough.
func sized(s []uint64, n int) []uint64 {
	if cap(s) < n {
		return make([]uint64, n, n+n/2)
	}
	return s[:n]
}
