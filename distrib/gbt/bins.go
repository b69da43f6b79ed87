package gbt

import (
	"math"
	"slices"
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
// whose limit is no less, or in the one behind them.
func limits(x []float32) []float32 {
	x = ascending(drawn(x))
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

// ascending are finite numbers in order, by three passes over 11 bits of each: comparing them would
// take several times as long.
func ascending(x []float32) []float32 {
	const digit, all = 11, 1<<11 - 1
	keys, to := make([]uint32, len(x)), make([]uint32, len(x))
	for i, v := range x {
		b := math.Float32bits(v + 0) // there is one zero
		keys[i] = b ^ (uint32(int32(b)>>31) | 1<<31)
	}
	for shift := 0; shift < 32; shift += digit {
		var at [all + 2]int
		for _, k := range keys {
			at[k>>shift&all+1]++
		}
		for d := range all {
			at[d+1] += at[d]
		}
		for _, k := range keys {
			d := k >> shift & all
			to[at[d]] = k
			at[d]++
		}
		keys, to = to, keys
	}
	for i, k := range keys {
		x[i] = math.Float32frombits(k ^ (^uint32(int32(k)>>31) | 1<<31))
	}
	return x
}

// quantise makes numbers the bins that they are in. There are no branches in a search, which a
// processor would have to guess.
func quantise(x, limits []float32) []uint8 {
	var padded [MaxBins]float32
	for i := copy(padded[:], limits); i < len(padded); i++ {
		padded[i] = float32(math.Inf(1))
	}
	bins := make([]uint8, len(x))
	for i, v := range x {
		bin := 0
		for step := (MaxBins + 1) / 2; step > 0; step /= 2 {
			if padded[bin+step-1] < v {
				bin += step
			}
		}
		bins[i] = uint8(bin)
	}
	return bins
}
