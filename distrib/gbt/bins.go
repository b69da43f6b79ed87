package gbt

import (
	"slices"
	"sort"
)

// MaxBins is how many bins a feature has at most.
const MaxBins = 255

// maxDrawn is of how many samples quantiles are taken at most: as many as that, evenly spaced.
const maxDrawn = 200_000

// Data is samples of numbers, and their labels: of class 0 or 1, or numbers.
type Data struct {
	Rows, Cols int
	// Column writes feature j of all samples. Numbers are finite.
	Column func(j int, to []float32)
	Label  []float64
}

// limits are the last values of a feature's bins but one, ascending: a value is in the first bin
// whose limit is no less, or in the one behind them. x is sorted.
func limits(x []float32) []float32 {
	x = drawn(x)
	slices.Sort(x)
	distinct := slices.Compact(slices.Clone(x))
	if len(distinct) <= MaxBins {
		cuts := distinct[:len(distinct)-1]
		for i := range cuts {
			cuts[i] = between(distinct[i], distinct[i+1])
		}
		return cuts
	}
	cuts := make([]float32, MaxBins-1)
	for i := range cuts {
		at, rest := len(x)*(i+1)/MaxBins, len(x)*(i+1)%MaxBins
		if cuts[i] = x[at]; rest == 0 { // the quantile is any number between two
			cuts[i] = between(x[at-1], x[at])
		}
	}
	return slices.Compact(cuts)
}

// drawn are some of many numbers, as a copy.
func drawn(x []float32) []float32 {
	some := make([]float32, min(len(x), maxDrawn))
	for i := range some {
		some[i] = x[i*len(x)/len(some)]
	}
	return some
}

// between is the middle of two numbers, and less than the greater one if they differ.
func between(a, b float32) float32 {
	if m := float32((float64(a) + float64(b)) / 2); m < b {
		return m
	}
	return a
}

// quantise makes numbers the bins that they are in.
func quantise(x, limits []float32) []uint8 {
	bins := make([]uint8, len(x))
	for i, v := range x {
		bins[i] = uint8(sort.Search(len(limits), func(k int) bool { return limits[k] >= v }))
	}
	return bins
}
