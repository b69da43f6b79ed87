package arena

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/plan/space"
)

// evictor searches for a packing below a limit. All blocks that are placed are below
// it and do not overlap; the others wait. One after the other is placed, and where
// there is no room for it, those in its way are evicted.
type evictor struct {
	placer
	habit
	limit   int64
	waiting []int32
	bytes   int64    // of the blocks that wait
	worth   []int64  // by block: what it costs to evict it, to begin with
	price   []int64  // by block: what it costs by now
	his     []uint64 // the ends of the blocks gathered, sorted, as keys
	rng     *rand.Rand
}

// newEvictor begins with a packing without the blocks that are above the limit.
func newEvictor(s *strip, at []int64, h habit, limit int64, seed uint64) *evictor {
	e := &evictor{placer: placer{strip: s, at: slices.Clone(at)}, habit: h, limit: limit,
		rng: rand.New(rand.NewPCG(seed, 0))}
	for k := range at {
		e.worth = append(e.worth, 1+int64(h.root(s, int32(k))))
	}
	e.price = slices.Clone(e.worth)
	for k, at := range e.at {
		if at+s.size[k] > limit {
			e.evict(int32(k))
		}
	}
	return e
}

// habit is how an evictor goes about it.
type habit struct {
	root func(s *strip, k int32) float64 // what it costs to evict a block
	few  int                             // how many that wait are compared, or 0 for all
}

// habits are a few that each solve what the others do not.
var habits = [...]habit{
	{func(s *strip, k int32) float64 { return math.Sqrt(s.area(k) / float64(space.Line)) }, 4},
	{func(s *strip, k int32) float64 { return float64(s.life(k)) }, 0},
	{func(s *strip, k int32) float64 { return float64(s.degree(k)) }, 4},
}

func (e *evictor) evict(k int32) {
	e.at[k] = out
	e.waiting = append(e.waiting, k)
	e.bytes += e.size[k]
}

// choose takes the dearest of the blocks that wait, or of a few of them.
func (e *evictor) choose() int32 {
	best := -1
	for i := range cmp.Or(e.few, len(e.waiting)) {
		if e.few > 0 {
			i = e.rng.IntN(len(e.waiting))
		}
		if best < 0 || e.price[e.waiting[i]] > e.price[e.waiting[best]] {
			best = i
		}
	}
	e.looks += int64(len(e.waiting)) / 8
	k, last := e.waiting[best], len(e.waiting)-1
	e.waiting[best] = e.waiting[last]
	e.waiting = e.waiting[:last]
	e.bytes -= e.size[k]
	return k
}

// step places one block that waits. A block evicted becomes dearer by a quarter of its
// worth, so that no two evict each other for ever.
func (e *evictor) step() {
	k := e.choose()
	e.gather(k)
	at := e.tightest(k, e.limit)
	if at == out {
		at = e.cheapest(k)
		for _, j := range e.near {
			if e.at[j] < at+e.size[k] && e.at[j]+e.size[j] > at {
				e.evict(j)
				e.price[j] += 1 + e.worth[j]/4
			}
		}
	}
	e.at[k] = at
}

// cheapest is the offset at which the blocks in the way of block k are the cheapest.
// The lowest such offset is 0 or the end of a block, so the sum of the prices is
// followed upwards: a block is in the way from where k's end reaches its offset to
// where k's offset reaches its end.
func (e *evictor) cheapest(k int32) int64 {
	e.his = e.his[:0]
	for n, j := range e.near {
		e.his = append(e.his, uint64((e.at[j]+e.size[j])/int64(space.Line))<<indexBits|uint64(n))
	}
	e.his = e.sorter.sort(e.his)
	best, least, ties := int64(0), int64(math.MaxInt64), 0
	var cost, at int64
	for in, gone := 0, 0; at+e.size[k] <= e.limit; at = offsetOf(e.his[gone]) {
		for ; in < len(e.los) && offsetOf(e.los[in]) < at+e.size[k]; in++ {
			cost += e.price[e.meet(e.los[in])]
		}
		for ; gone < len(e.his) && offsetOf(e.his[gone]) <= at; gone++ {
			cost -= e.price[e.meet(e.his[gone])]
		}
		switch {
		case cost < least:
			best, least, ties = at, cost, 1
		case cost == least:
			if ties++; e.rng.IntN(ties) == 0 {
				best = at
			}
		}
		if gone == len(e.his) {
			break
		}
	}
	return best
}

// run places blocks until none waits or so many looks have been taken, and returns the
// lowest packing it has come by: whenever much less waits than ever before, what waits
// is stacked on top.
func (e *evictor) run(looks int64) (at []int64, top int64) {
	top, least := math.MaxInt64, int64(math.MaxInt64)
	for {
		if len(e.waiting) == 0 || e.bytes < least-least/8 {
			least = e.bytes
			p := placer{strip: e.strip, at: slices.Clone(e.at)}
			p.stack(e.waiting)
			if t := p.top(); t < top {
				at, top = p.at, t
			}
			e.looks += p.looks
		}
		if len(e.waiting) == 0 || e.looks >= looks {
			return at, top
		}
		e.step()
	}
}
