package orion

// Uniform is a number from 0 to below 1, drawn by a seed and an index: whoever draws it, and in
// whatever order, has the same.
func Uniform(seed, index uint64) float64 {
	return float64(mix(mix(seed)^index)>>11) / (1 << 53)
}
