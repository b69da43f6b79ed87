package strads

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDraws: numbers are drawn as often as their weights say, and those of weight 0 never.
func TestDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 5, 64, 65} {
		tree, weights, total := newSumTree(n), make([]float64, n), 0.0
		for i := range weights {
			tree.set(int32(i), 1e300) // what was there before leaves nothing
			weights[i] = float64(rng.IntN(3))
		}
		weights[n-1] = 1e-3
		for i, w := range weights {
			tree.set(int32(i), w)
			total += w
		}
		const draws = 40000
		got := make([]int, n)
		for range draws {
			got[tree.find(rng.Float64())]++
		}
		for i, w := range weights {
			want := draws * w / total
			if w == 0 && got[i] > 0 || math.Abs(float64(got[i])-want) > 5*math.Sqrt(want)+5 {
				t.Errorf("of %d, %d with weight %g of %g was drawn %d times", n, i, w, total,
					got[i])
			}
		}
		if x := tree.find(math.Nextafter(1, 0)); weights[x] == 0 {
			t.Errorf("of %d, the end leads to %d, whose weight is 0", n, x)
		}
	}
}

// TestCandidates: candidates are live, different, the same for the same seed, and leave what they
// are drawn by as it was. Who changes much is drawn.
func TestCandidates(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		a := newScheduler(Options{Uniform: uniform, Candidates: 10, Seed: 5}, 100)
		b := newScheduler(Options{Uniform: uniform, Candidates: 10, Seed: 5}, 100)
		live := []int32{}
		for j := int32(0); j < 100; j += 3 {
			live = append(live, j)
		}
		fast := 0
		for _, s := range []*scheduler{a, b} {
			s.moved(1, 9, false) // not live
			s.keep(append([]int32{1}, live...), 0)
			s.keep(live, 0)
			s.moved(33, 5, false)
		}
		total := a.rate.total()
		for range 200 {
			c := a.candidates()
			if !slices.Equal(c, b.candidates()) {
				t.Fatal("two schedulers of one seed differ")
			}
			sorted := slices.Clone(c)
			slices.Sort(sorted)
			if len(slices.Compact(sorted)) != 10 || slices.ContainsFunc(c, func(j int32) bool {
				return j%3 > 0
			}) {
				t.Fatalf("candidates %v", c)
			}
			if slices.Contains(c, 33) {
				fast++
			}
		}
		if a.rate.total() != total || uniform == (fast > 150) {
			t.Errorf("weights %g were %g; the fast one was drawn %d times of 200, uniform: %v",
				a.rate.total(), total, fast, uniform)
		}
	}
}

// TestBlocks: no two candidates in different blocks depend on each other, each is in one block, and
// the independent set has none that does. Those that stay 0 depend on nobody.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := newScheduler(Options{Kappa: 0.5}, 12)
		square := slices.Repeat([]float64{4}, 12)
		var c []int32
		for j := range int32(12) {
			c = append(c, j)
			s.staying[j] = rng.IntN(4) == 0
		}
		for i, j := range c {
			for _, k := range c[:i] {
				s.pairs[pair(j, k)] = map[bool]float64{true: -2}[rng.IntN(8) == 0]
			}
		}
		all := s.blocks(c, square)
		if got := slices.Sorted(slices.Values(slices.Concat(all...))); !slices.Equal(got, c) {
			t.Fatalf("blocks %v", all)
		}
		for i, x := range all {
			if rest := slices.Concat(all[:i]...); crosses(s, x, rest, square) {
				t.Fatalf("blocks %v of what depends", all)
			}
			for at := range x[1:] { // no block is two
				if !crosses(s, x[:at+1], x[at+1:], square) {
					t.Fatalf("block %v falls apart", x)
				}
			}
			if s.staying[x[0]] && len(x) > 1 {
				t.Fatalf("%d stays 0, and is in block %v", x[0], x)
			}
		}
		s.Policy = Independent
		set := slices.Concat(s.blocks(c, square)...)
		for i, j := range set {
			if crosses(s, []int32{j}, set[:i], square) {
				t.Fatalf("set %v of what depends", set)
			}
		}
		for _, j := range c { // none was dropped that need not be
			if !slices.Contains(set, j) && !crosses(s, []int32{j}, set, square) {
				t.Fatalf("set %v has no %d", set, j)
			}
		}
	}
}

func crosses(s *scheduler, a, b []int32, square []float64) bool {
	return slices.ContainsFunc(a, func(j int32) bool {
		return slices.ContainsFunc(b, func(k int32) bool { return s.depend(j, k, square) })
	})
}

// TestPack: each block is with one worker, and the most that one has is within a third of the best
// packing's (Graham), which all packings are tried for.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		workers := 1 + rng.IntN(3)
		var blocks [][]int32
		total := 0
		for i := range 6 {
			blocks = append(blocks, slices.Repeat([]int32{int32(i)}, 1+rng.IntN(6)))
			total += len(blocks[i])
		}
		bins, load := pack(blocks, workers)
		n := 0
		for w, bin := range bins {
			sum := 0
			for _, b := range bin {
				n += len(b)
				sum += work(b)
			}
			if sum != load[w] {
				t.Fatalf("work %d of worker %d, said to be %d", sum, w, load[w])
			}
		}
		best := lightest(blocks, make([]int, workers))
		if most := slices.Max(load); n != total || 3*most > 4*best {
			t.Fatalf("%v to %d workers: %v, at best %d", blocks, workers, load, best)
		}
	}
}

// lightest is the least heaviest load of all packings.
func lightest(blocks [][]int32, load []int) int {
	if len(blocks) == 0 {
		return slices.Max(load)
	}
	best := math.MaxInt
	for w := range load {
		load[w] += work(blocks[0])
		best = min(best, lightest(blocks[1:], load))
		load[w] -= work(blocks[0])
	}
	return best
}
