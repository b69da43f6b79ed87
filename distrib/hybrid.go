package distrib

import "fmt"

// Way is how a weight's updates can be exchanged in a clock.
type Way uint8

// The ways.
const (
	ByServers Way = iota // dense, to parameter servers and back
	ByRing               // dense, all-reduce along a ring
	ByFactors            // the factors of the sum, broadcast
	ways
)

// String is a few letters, "ring".
func (w Way) String() string {
	return [...]string{"ps", "ring", "factors", "?"}[min(w, ways)]
}

// Traffic is how many numbers a worker sends and receives in a clock for a weight of
// J x K, whose update is the sum of S outer products, of P workers with V servers among
// them (Poseidon's and the Petuum survey's formulas).
func (w Way) Traffic(j, k, s, p, v int) float64 {
	weight, pairs := float64(float64(j)*float64(k)), float64(float64(s)*float64(j+k))
	switch w {
	case ByRing:
		return 4 * weight * float64(p-1) / float64(p)
	case ByFactors:
		return 2 * pairs * float64(p-1)
	}
	return 2 * weight * float64(p+v-2) / float64(v)
}

// PickByBytes is the way with the least traffic, of equal ones the first. S == 0 says that
// the update has no factors: of biases, norms and tables.
func PickByBytes(j, k, s, p, v int) Way {
	best := ByServers
	for w := ByRing; w < ways; w++ {
		if w == ByFactors && s == 0 {
			continue
		}
		if w.Traffic(j, k, s, p, v) < best.Traffic(j, k, s, p, v) {
			best = w
		}
	}
	return best
}

// Hybrid gives every parameter the plan of its way, by bytes: samples says how many outer
// products the update of a parameter is, in a clock of one worker, 0 if it has no factors.
// Parameters of one way share a plan. All are in step, so that the ways mix.
func Hybrid(ps []*Param, v View, samples func(*Param) int, sum Reduce) error {
	workers, servers := len(inRole(v, "worker")), len(inRole(v, "server"))
	if workers == 0 || servers == 0 {
		return fmt.Errorf("a hybrid of %d workers and %d servers", workers, servers)
	}
	plans := [ways]*Plan{
		ByServers: {Topology: &Shards{}, Consistency: BSP{}},
		ByRing:    {Topology: &Local{}, Every: []Periodic{Sum(1, sum)}},
		ByFactors: {Topology: &All{}, Consistency: BSP{}},
	}
	for _, p := range ps {
		way := ByServers // of rows of a kind, which are not added up otherwise
		if p.Kind == nil {
			way = PickByBytes(p.Rows, p.Cols, samples(p), workers, servers)
		}
		p.Sync = plans[way]
	}
	return nil
}
