package distrib

import (
	"fmt"
	"math/rand/v2"
)

// RandomMulticast is Orpheus' (section 3.2.2): in each clock a worker sends to Q others, drawn
// anew. An update is not handed on, so it must reach each of the others in time some other way: the
// node keeps an entry for every one of them, sends all that is pending to those who are
// drawn, and to others what is due.
type RandomMulticast struct {
	Q    int // 4 if 0
	Seed uint64
	// Lossy has those who are not drawn in a clock never get its updates, as the paper has it.
	// What replicas so differ by is for a [Periodic] such as [Average] to even out.
	Lossy bool
	peers
}

// Loses reports whether who is not drawn goes without.
func (m *RandomMulticast) Loses() bool { return m.Lossy }

// Drawn tells the node that Dests are another choice in each clock.
func (m *RandomMulticast) Drawn() bool { return true }

// Dests are the nodes drawn for a clock: the same for all parameters, so that few messages
// carry much.
func (m *RandomMulticast) Dests(dst []NodeID, self NodeID, _ Ref, c Clock) []NodeID {
	q := several(m.Q)
	from := len(dst)
	dst = (&All{m.peers}).Dests(dst, self, Ref{}, c)
	rest := dst[from:]
	rng := rand.New(rand.NewPCG(m.Seed, mix(mix(uint64(c))^uint64(uint32(self)))))
	for i := range min(q, len(rest)) {
		j := i + rng.IntN(len(rest)-i)
		rest[i], rest[j] = rest[j], rest[i]
	}
	return dst[:from+min(q, len(rest))]
}

// TurnMulticast is a multicast to compare with [RandomMulticast] (Orpheus, section 5.3): a worker
// sends to the next Q others in each clock, in a circular order.
type TurnMulticast struct {
	Q     int  // 4 if 0
	Lossy bool // as RandomMulticast's
	circulant
}

// Loses reports whether those whose turn it is not go without.
func (m *TurnMulticast) Loses() bool { return m.Lossy }

// Drawn tells the node that Dests are another choice in each clock.
func (m *TurnMulticast) Drawn() bool { return true }

// Dests are those whose turn it is.
func (m *TurnMulticast) Dests(dst []NodeID, self NodeID, _ Ref, c Clock) []NodeID {
	others := len(m.ids) - 1
	var offsets []int
	for i := range min(several(m.Q), others) {
		offsets = append(offsets, 1+int((uint64(c)*uint64(several(m.Q))+uint64(i))%uint64(others)))
	}
	return m.neighbours(dst, self, offsets)
}

// FixedMulticast is another one: a worker sends to the same Q others in every clock, the next ones
// in a circle, so that all receive from as many. The others go without.
type FixedMulticast struct {
	Q int // 4 if 0
	circulant
}

// Loses is true.
func (m *FixedMulticast) Loses() bool { return true }

// Drawn has the node count what the others go without.
func (m *FixedMulticast) Drawn() bool { return true }

// Dests are the next ones.
func (m *FixedMulticast) Dests(dst []NodeID, self NodeID, _ Ref, _ Clock) []NodeID {
	var offsets []int
	for i := range min(several(m.Q), len(m.ids)-1) {
		offsets = append(offsets, 1+i)
	}
	return m.neighbours(dst, self, offsets)
}

// several is how many nodes a multicast goes to.
func several(q int) int {
	if q == 0 {
		return 4
	}
	return q
}

// The names of ways to choose whom a multicast goes to.
const (
	byChance = "random"
	byTurns  = "turns"
	byPlace  = "fixed"
)

// multicast is the topology of the options' receivers. Of what is lost, who is not drawn goes
// without.
func (o SchemeOptions) multicast(lossy bool) (Topology, error) {
	switch {
	case o.Receivers == "" || o.Receivers == byChance:
		return &RandomMulticast{Q: o.Multicast, Seed: o.Seed, Lossy: lossy}, nil
	case o.Receivers == byTurns:
		return &TurnMulticast{Q: o.Multicast, Lossy: lossy}, nil
	case o.Receivers != byPlace:
		return nil, fmt.Errorf("no receivers %.60q: there are %s, %s and %s", o.Receivers, byChance,
			byTurns, byPlace)
	case !lossy:
		return nil, fmt.Errorf("receivers %s: the others would never have an update: that is for "+
			"scheme lossy", byPlace)
	}
	return &FixedMulticast{Q: o.Multicast}, nil
}
