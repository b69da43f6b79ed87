package collective

import (
	"fmt"
	"slices"
)

// Via is the way that an exchange goes.
type Via uint8

// The ways.
const (
	Hybrid        Via = iota // of dense values what moves the fewest bytes: Ring or Servers
	Ring                     // all-reduce: a ring, or by doubling if it is small
	Servers                  // dense push and pull to the owners of blocks: the baseline
	Gathered                 // all-gather: every node brings its own part of the value
	Scattered                // reduce-scatter: every node has its block of the sum, in its place
	Swapped                  // all-to-all: block i goes to rank i; one comes in its place
	Copied                   // broadcast of Root's value
	Permuted                 // to each rank that of the one whose To it is, or zeros
	GatheredSome             // Gathered, of rows that ranks have to do with: see [AllGatherSome]
	ScatteredSome            // Scattered, of such rows: see [ReduceScatterSome]
	SwappedSome              // Swapped, of the first rows of blocks: see [AllToAllSome]
)

var vias = [...]string{"hybrid", "ring", "ps", "gather", "scatter", "swap", "copy", "permute",
	"gather-some", "scatter-some", "swap-some"}

// divides reports whether a value has a block for every rank.
func (v Via) divides() bool {
	return v == Gathered || v == Scattered || v == Swapped || v == SwappedSome || v.some()
}

// some reports whether it is of some rows of a value.
func (v Via) some() bool { return v == GatheredSome || v == ScatteredSome }

// moves reports whether a way adds nothing up.
func (v Via) moves() bool {
	return v == Gathered || v == Swapped || v == Copied || v == Permuted || v == GatheredSome ||
		v == SwappedSome
}

// String is the word for it.
func (v Via) String() string { return vias[v] }

// ParseVia reads what String prints of a way that values of one shape take; "" is Hybrid.
func ParseVia(s string) (Via, error) {
	if s == "" {
		return Hybrid, nil
	}
	ways := vias[:Gathered+1]
	i := slices.Index(ways, s)
	if i < 0 {
		return 0, fmt.Errorf("collective: there is no way %.60q to exchange: want one of %q", s,
			ways)
	}
	return Via(i), nil
}

// Traffic is how many bytes a worker sends and receives for a gradient of one clock, by
// the ways there are (Zhang et al., Poseidon, 2017).
type Traffic struct{ Servers, Ring, Factors int64 }

// TrafficOf is that for the gradient of a weight of rows x cols, in float32, which is a
// sum of samples products of a column and a row (0: of none), among so many workers, of
// which the first servers own blocks.
func TrafficOf(rows, cols, samples, workers, servers int) Traffic {
	return trafficOf(4*int64(rows)*int64(cols), 4*int64(samples)*int64(rows+cols), workers, servers)
}

// trafficOf is that of a gradient of so many bytes, whose factors have so many on a worker.
func trafficOf(gradient, factors int64, workers, servers int) Traffic {
	p, v := int64(workers), int64(servers)
	return Traffic{
		Servers: 2 * gradient * (p + v - 2) / v,
		Ring:    4 * gradient * (p - 1) / p,
		Factors: 2 * factors * (p - 1),
	}
}

// Choose is the way of the fewest bytes: Gathered, which means that the factors are
// exchanged in place of their product; Ring; or Servers. A tie goes to Ring.
func Choose(rows, cols, samples, workers, servers int) Via {
	return choose(TrafficOf(rows, cols, samples, workers, servers), samples > 0)
}

func choose(t Traffic, factored bool) Via {
	switch {
	case factored && t.Factors < min(t.Ring, t.Servers):
		return Gathered
	case t.Servers < t.Ring:
		return Servers
	}
	return Ring
}

// Fewest chooses, among so many workers who all own blocks, the way of the fewest bytes for
// every gradient whose factors are known, as [Choose] does.
type Fewest struct{ Workers int }

// Factors reports whether factors of so many bytes a worker are exchanged for a gradient of
// so many. Factors of no bytes are those that others have sent already.
func (f Fewest) Factors(gradient, factors int64) bool {
	return choose(trafficOf(gradient, factors, f.Workers, f.Workers), true) == Gathered
}
