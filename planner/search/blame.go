package search

import (
	"math/rand/v2"
	"sort"
)

// blame is how much of a step is due to what is decided of values: their executions again, and
// what the device waits for their copies. To change that is worth more than to change anything.
type blame struct {
	of     []float64 // by value, in nanoseconds
	values []int32   // those that have some
	sums   []float64 // of it, up to each
	turn   []int32   // by stay: when its copy to the device has its turn
	drains []drain
}

// drain is a copy to the host.
type drain struct {
	begin, end int64
	value      int32
}

// queue is how far back copies are blamed that others wait for.
const queue = 64

// draw is a value that is to blame, the more often the more it is.
func (b *blame) draw(rng *rand.Rand) int32 {
	last := len(b.sums) - 1
	return b.values[min(sort.SearchFloat64s(b.sums, rng.Float64()*b.sums[last]), last)]
}

// assign works out the blame of what was evaluated last.
func (b *blame) assign(e *evaluator, s *state) {
	b.of = zeroed(b.of, len(e.values))
	b.turn = sized(b.turn, len(e.stays))
	for k, j := range e.arrivals {
		b.turn[j] = int32(k)
	}
	b.listDrains(e)
	before := int64(0)
	for p := range int32(len(e.seq)) {
		if e.begin[p] > before {
			b.stall(e, p, float64(e.begin[p]-before))
		}
		if before = e.end[p]; !e.repeated(p) {
			continue
		}
		o := &e.ops[e.seq[p]]
		for _, v := range o.out {
			if s.act[v] == recompute {
				b.of[v] += float64(o.time)
			}
		}
	}
	b.values, b.sums = b.values[:0], b.sums[:0]
	sum := 0.0
	for v, x := range b.of {
		if x > 0 {
			sum += x
			b.values, b.sums = append(b.values, int32(v)), append(b.sums, sum)
		}
	}
}

// listDrains lists the copies of values to the host, in order.
func (b *blame) listDrains(e *evaluator) {
	b.drains = b.drains[:0]
	for p := range int32(len(e.seq)) {
		if e.repeated(p) {
			continue
		}
		for _, v := range e.ops[e.seq[p]].out {
			if e.gone[v] {
				b.drains = append(b.drains, drain{e.outEnd[v] - e.values[v].out, e.outEnd[v], v})
			}
		}
	}
}

// stall blames the copies that an execution waits for, and those that these wait for.
func (b *blame) stall(e *evaluator, p int32, time float64) {
	for j := e.waiting.head[p]; j >= 0; j = e.waiting.next[j] {
		if e.copyEnd[j] == e.begin[p] {
			b.arrivals(e, int(b.turn[j]), time)
			return
		}
	}
	k := sort.Search(len(b.drains), func(k int) bool { return b.drains[k].end >= e.begin[p] })
	if k == len(b.drains) || b.drains[k].end != e.begin[p] {
		return
	}
	first := k
	for first > 0 && k-first < queue && b.drains[first-1].end == b.drains[first].begin {
		first--
	}
	all := float64(b.drains[k].end - b.drains[first].begin)
	for _, d := range b.drains[first : k+1] {
		b.of[d.value] += time * float64(d.end-d.begin) / all
	}
}

// arrivals blames a copy to the device and those right before it.
func (b *blame) arrivals(e *evaluator, k int, time float64) {
	first := k
	for first > 0 && k-first < queue &&
		e.copyEnd[e.arrivals[first-1]] == e.copyIn[e.arrivals[first]] {
		first--
	}
	all := float64(e.copyEnd[e.arrivals[k]] - e.copyIn[e.arrivals[first]])
	for _, j := range e.arrivals[first : k+1] {
		b.of[e.stays[j].value] += time * float64(e.copyEnd[j]-e.copyIn[j]) / all
	}
}
