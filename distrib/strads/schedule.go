package strads

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Policy is what becomes of candidates that depend on each other.
type Policy uint8

// The policies.
const (
	// Blocks has those that depend on each other, also by others, updated one after the other by
	// one worker.
	Blocks Policy = iota
	// Independent keeps those candidates that depend on no earlier one, and drops the others.
	Independent
	// Unchecked updates all at the same time, as Shotgun does, which may not converge.
	Unchecked
)

var policies = []string{"blocks", "independent", "unchecked"}

// String is its name.
func (p Policy) String() string { return policies[p] }

// ParsePolicy is the policy of a name.
func ParsePolicy(name string) (Policy, error) {
	if i := slices.Index(policies, name); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("schedule %q: want one of %q", name, policies)
}

// Options say how coefficients are scheduled. The zero value of each is the plain choice.
type Options struct {
	Policy     Policy
	Uniform    bool    // no coefficient is drawn rather than another
	Candidates int     // of a round; 0: 64
	Kappa      float64 // the correlation from which on two columns depend on each other; 0: 0.1
	Seed       uint64
}

func (o Options) check() error {
	if o.Candidates < 0 || !(o.Kappa >= 0) || o.Kappa > 1 {
		return fmt.Errorf("strads: %d candidates a round, correlation %g: want more than 0, and "+
			"from 0 to 1", o.Candidates, o.Kappa)
	}
	if int(o.Policy) >= len(policies) {
		return errors.New("strads: no such policy")
	}
	return nil
}

// scheduler says which coefficients are updated next. Those of all workers say the same.
type scheduler struct {
	Options
	rng     *rand.Rand
	rate    *sumTree // squares of how far coefficients have moved last, by what that changes
	pool    []int32
	staying []bool // 0, and it was at its last update
	pairs   map[[2]int32]float64
}

// explored is the part of candidates that is drawn without a preference: epsilon, which the paper
// does not give, as a part of all squares, so that it is small at the end, too.
const explored = 0.1

// mostPairs is how many products of columns are kept.
const mostPairs = 1 << 21

func newScheduler(o Options, features int) *scheduler {
	o.Candidates, o.Kappa = cmp.Or(o.Candidates, 64), cmp.Or(o.Kappa, 0.1)
	return &scheduler{Options: o,
		rate: newSumTree(features), staying: make([]bool, features),
		pairs: map[[2]int32]float64{}}
}

// keep has it draw from these coefficients alone, in a way of the epoch's own.
func (s *scheduler) keep(live []int32, epoch int) {
	s.rng = rand.New(rand.NewPCG(s.Seed, uint64(epoch)))
	for _, j := range s.pool {
		if _, ok := slices.BinarySearch(live, j); !ok {
			s.rate.set(j, 0)
		}
	}
	s.pool = slices.Clone(live)
}

// moved notes how far a coefficient has moved, times the length of its column, and whether it was
// 0 and is.
func (s *scheduler) moved(j int32, far float64, staying bool) {
	s.rate.set(j, float64(far*far))
	s.staying[j] = staying
}

// candidates are different coefficients, as they are drawn.
func (s *scheduler) candidates() []int32 {
	n := min(s.Candidates, len(s.pool))
	if 2*n > len(s.pool) && s.Uniform {
		return s.shuffled(n)
	}
	drawn, rates := make([]int32, 0, n), make([]float64, 0, n)
	taken := map[int32]bool{}
	for len(drawn) < n {
		j := s.draw()
		if taken[j] {
			continue
		}
		taken[j] = true
		drawn, rates = append(drawn, j), append(rates, s.rate.weight(j))
		s.rate.set(j, 0)
	}
	for i, j := range drawn {
		s.rate.set(j, rates[i])
	}
	return drawn
}

// draw is any coefficient that is live, or by how fast it changes.
func (s *scheduler) draw() int32 {
	if !s.Uniform && s.rate.total() > 0 && s.rng.Float64() >= explored {
		return s.rate.find(s.rng.Float64())
	}
	return s.pool[s.rng.IntN(len(s.pool))]
}

// shuffled are n of all live coefficients.
func (s *scheduler) shuffled(n int) []int32 {
	all := slices.Clone(s.pool)
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// pair is two coefficients in order.
func pair(j, k int32) [2]int32 { return [2]int32{min(j, k), max(j, k)} }

// unknown are the pairs of candidates whose products are not known; it forgets all that are, if
// they are too many.
func (s *scheduler) unknown(c []int32) (pairs [][2]int32) {
	if len(s.pairs)+len(c)*len(c) > mostPairs {
		clear(s.pairs)
	}
	for i, j := range c {
		for _, k := range c[:i] {
			if _, ok := s.pairs[pair(j, k)]; !ok {
				pairs = append(pairs, pair(j, k))
			}
		}
	}
	return pairs
}

// depend reports whether two coefficients may not be updated at the same time: their columns are
// correlated, and neither is 0 and stays so.
func (s *scheduler) depend(j, k int32, square []float64) bool {
	if s.staying[j] || s.staying[k] {
		return false
	}
	return math.Abs(s.pairs[pair(j, k)]) >= float64(s.Kappa*math.Sqrt(square[j]*square[k]))
}

// blocks are candidates of which those of different blocks are updated at the same time, and those
// of a block one after the other.
func (s *scheduler) blocks(c []int32, square []float64) [][]int32 {
	switch s.Policy {
	case Blocks:
		return components(c, func(j, k int32) bool { return s.depend(j, k, square) })
	case Independent:
		var set [][]int32
		for _, j := range c {
			on := func(k []int32) bool { return s.depend(j, k[0], square) }
			if !slices.ContainsFunc(set, on) {
				set = append(set, []int32{j})
			}
		}
		return set
	}
	var all [][]int32
	for _, j := range c {
		all = append(all, []int32{j})
	}
	return all
}

// components are the connected components of a graph, in the order of their first members.
func components(c []int32, adjacent func(j, k int32) bool) (all [][]int32) {
	rest := slices.Clone(c)
	for len(rest) > 0 {
		block := rest[:1:1]
		rest = rest[1:]
		for i := 0; i < len(block); i++ {
			var others []int32
			for _, k := range rest {
				if adjacent(block[i], k) {
					block = append(block, k)
				} else {
					others = append(others, k)
				}
			}
			rest = others
		}
		all = append(all, block)
	}
	return all
}

// work is what a block takes: each update changes the gradients of all others.
func work(block []int32) int { return len(block) * len(block) }

// pack gives blocks to workers, the largest first, each to who has the least so far (Graham's
// LPT). It returns the blocks of each, and the work.
func pack(blocks [][]int32, workers int) (bins [][][]int32, load []int) {
	order := slices.Clone(blocks)
	slices.SortStableFunc(order, func(a, b []int32) int { return cmp.Compare(len(b), len(a)) })
	bins, load = make([][][]int32, workers), make([]int, workers)
	for _, block := range order {
		least := 0
		for w := range load {
			if load[w] < load[least] {
				least = w
			}
		}
		bins[least] = append(bins[least], block)
		load[least] += work(block)
	}
	return bins, load
}
