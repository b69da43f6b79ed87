package collective

import (
	"fmt"
	"slices"
)

// Via is the way that an exchange goes.
type Via uint8

// The ways.
const (
	Hybrid   Via = iota // what moves the fewest bytes: Ring or Servers
	Ring                // all-reduce: a ring, or by doubling if it is small
	Servers             // dense push and pull to the owners of blocks: the baseline
	Gathered            // all-gather: every node brings its own part of the value
)

var vias = [...]string{"hybrid", "ring", "ps", "gather"}

// String is the word for it.
func (v Via) String() string { return vias[v] }

// ParseVia reads what String prints; "" is Hybrid.
func ParseVia(s string) (Via, error) {
	if s == "" {
		return Hybrid, nil
	}
	i := slices.Index(vias[:], s)
	if i < 0 {
		return 0, fmt.Errorf("collective: there is no way %q to exchange: want one of %q", s, vias)
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
	jk, p, v := int64(rows)*int64(cols), int64(workers), int64(servers)
	return Traffic{
		Servers: 4 * 2 * jk * (p + v - 2) / v,
		Ring:    4 * 4 * jk * (p - 1) / p,
		Factors: 4 * 2 * int64(samples) * (p - 1) * int64(rows+cols),
	}
}

// Choose is the way of the fewest bytes: Gathered, which means that the factors are
// exchanged in place of their product; Ring; or Servers. A tie goes to Ring.
func Choose(rows, cols, samples, workers, servers int) Via {
	t := TrafficOf(rows, cols, samples, workers, servers)
	switch {
	case samples > 0 && t.Factors < min(t.Ring, t.Servers):
		return Gathered
	case t.Servers < t.Ring:
		return Servers
	}
	return Ring
}
