package search

import (
	"cmp"
	"context"
	"math/bits"
	"sort"
)

// start is where a descent begins, and the prices that it goes by.
type start struct {
	link     float64 // what a nanosecond of a copy costs
	weights  float64 // what one of a copy of weights costs
	cut      int64   // state.cut
	slack    int64   // state.slack
	part     int64   // of what is missing, this part is decided about at a time: 1 is all
	streamed bool    // all variables begin on the host, not on the device
	device   bool    // those with small states are updated on the device
	reruns   bool    // values may be recomputed
	swaps    bool    // values may be swapped
	fine     bool    // small values and variables count too
	harsh    bool    // values may be away in every gap
}

// descent takes the bytes over the budget away from a state, the cheapest first.
type descent struct {
	*evaluator
	start
	ctx    context.Context
	state  *state
	pinned []bool // by group: it stays on the device
	most   int    // evaluations, after which it gives up
	over   []int64
	list   []candidate
	first  []int32 // a heap of the list
	closed []int32 // the values of all candidates' closures
	id     int32   // of the closure that is worked out
	stamp  []int32 // by value: the latest closure that it is in
	ran    []int32 // by operation, likewise
	taken  []bool  // by value: something has been decided in this round
	stack  []int32
}

// candidate is a value or group that could be away, and what must be decided
// with it: values closed[from:to] are recomputed too.
type candidate struct {
	value, group int32
	act          action
	worth        float64 // bytes·share of the time over budget, by cost
	bytes        int64
	from, to     int32
}

// minimum bytes, as parts of the scale, below which values are kept, and
// variables on the device, unless there is no other way.
const (
	smallValue = 18 // a shift
	smallGroup = 14
)

func (d *descent) floor(shift int) int64 {
	if d.fine {
		return 1
	}
	return d.scale >> shift
}

// rounds bounds the rounds of a descent: each takes a part of the excess or more.
const rounds = 4000

// descend makes the state fit the budget; it reports whether it could.
func (d *descent) descend() bool {
	for range rounds {
		d.build(d.state)
		if d.peak <= d.budget.Device {
			return true
		}
		if d.count >= d.most || d.ctx.Err() != nil {
			return false
		}
		d.candidates()
		if len(d.list) == 0 {
			if d.harsh {
				return false
			}
			d.fine, d.harsh = true, d.fine
			continue
		}
		d.apply()
	}
	return false
}

// candidates lists all that could be away at the peak.
func (d *descent) candidates() {
	d.list, d.closed = d.list[:0], d.closed[:0]
	d.over = sized(d.over, len(d.seq)+1)
	d.over[0] = 0
	for p := range d.seq {
		d.over[p+1] = d.over[p]
		if d.load[p] > d.budget.Device {
			d.over[p+1] += d.ops[d.seq[p]].time
		}
	}
	for v := range d.values {
		d.consider(int32(v), d.key[d.peakAt])
	}
	for g := range d.groups {
		d.evict(int32(g))
	}
}

// before reports whether a candidate is taken before another: if it is worth more, or
// else in an order that is the same every time.
func (a *candidate) before(b *candidate) bool {
	if a.worth != b.worth {
		return a.worth > b.worth
	}
	return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(spread(a.group), spread(b.group)),
		cmp.Compare(a.act, b.act)) < 0
}

// heap puts the first of the candidates first, and each before the two at twice its place.
// Few of them are taken, so that sorting all would be most of a descent's time.
func (d *descent) heap() {
	d.first = sized(d.first, len(d.list))
	for i := range d.first {
		d.first[i] = int32(i)
	}
	for i := len(d.first)/2 - 1; i >= 0; i-- {
		d.sink(i)
	}
}

// sink moves what is at a place down to where it belongs.
func (d *descent) sink(i int) {
	x := d.first[i]
	for {
		c := 2*i + 1
		if c >= len(d.first) {
			break
		}
		if c+1 < len(d.first) && d.list[d.first[c+1]].before(&d.list[d.first[c]]) {
			c++
		}
		if !d.list[d.first[c]].before(&d.list[x]) {
			break
		}
		d.first[i] = d.first[c]
		i = c
	}
	d.first[i] = x
}

// pop takes the first of the candidates that are left.
func (d *descent) pop() *candidate {
	top, last := d.first[0], len(d.first)-1
	d.first[0] = d.first[last]
	if d.first = d.first[:last]; last > 0 {
		d.sink(0)
	}
	return &d.list[top]
}

// spread orders groups that are worth the same such that the first of them are all
// over the graph: copies that are needed at the same time wait for one another.
func spread(group int32) uint32 { return bits.Reverse32(uint32(group)) }

// consider adds what can be done about a value whose absence would cover a key.
func (d *descent) consider(v int32, key int64) {
	va, u := &d.values[v], d.uses[v]
	act := d.state.act[v]
	if len(u) < 2 || act == shun || act == swap && !d.harsh ||
		va.bytes < d.floor(smallValue) || u[0] > key ||
		u[len(u)-1] < key || va.leaf >= 0 && d.atHome[va.leaf] {
		return
	}
	j := sort.Search(len(u), func(i int) bool { return u[i] >= key })
	if j == 0 || u[j] == key {
		return
	}
	a, b := d.position(u[j-1]), d.position(u[j])
	if b <= a+1 {
		return
	}
	share := float64(d.over[b]-d.over[a+1]) / float64(d.over[len(d.seq)]+1)
	gain := float64(va.bytes) * share
	if d.harsh && (d.swaps || va.bound()) {
		d.propose(candidate{value: v, group: -1, act: shun, bytes: va.bytes}, gain,
			float64(8*(va.in+va.out)))
	}
	if act == recompute {
		if operation(u[j]) != va.producer && d.swaps {
			d.propose(candidate{value: v, group: -1, act: swap, bytes: va.bytes}, gain,
				3*(d.link+0.05)*float64(va.in))
		}
		return
	}
	if act == keep && (d.swaps || va.bound()) && d.long(d.state, va, a+1, b) {
		d.propose(candidate{value: v, group: -1, act: swap, bytes: va.bytes}, gain,
			(d.link+0.02)*float64(va.in))
	}
	d.rerunning(v, u, j, gain)
}

// rerunning proposes to execute a value's operation again at the end of the gap
// that ends with use j, if that is one in which it would be away.
func (d *descent) rerunning(v int32, u []int64, j int, gain float64) {
	va := &d.values[v]
	if !d.reruns || va.bound() || d.state.act[v] != keep {
		return
	}
	b := anchor(u[j])
	limit := d.ops[va.producer].limit
	if b > limit || d.longest(u, limit) != j-1 && !d.alsoCut(d.state, anchor(u[j-1]), b) {
		return
	}
	from := int32(len(d.closed))
	if cost, ok := d.closure(v, u[j]); ok {
		d.propose(candidate{value: v, group: -1, act: recompute, bytes: va.bytes, from: from,
			to: int32(len(d.closed))}, gain, cost)
	} else {
		d.closed = d.closed[:from]
	}
}

// propose adds a candidate. A tenth of a microsecond is added to every cost, so
// that what costs nothing is not worth everything.
func (d *descent) propose(c candidate, gain, cost float64) {
	c.worth = gain / (float64(cost) + 100)
	d.list = append(d.list, c)
}

// longChain is how many operations are executed again for one value at most.
const longChain = 24

// closure works out what else must be executed again for a value before a key:
// operands that are dead by then and not small, and what made them. Their values
// are appended to closed.
func (d *descent) closure(v int32, key int64) (cost float64, ok bool) {
	d.id++
	id := d.id
	d.stack = append(d.stack[:0], v)
	chain := 0
	for len(d.stack) > 0 {
		x := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		p := d.values[x].producer
		if d.ran[p] == id {
			continue
		}
		d.ran[p] = id
		o := &d.ops[p]
		if chain++; chain > longChain || anchor(key) > o.limit {
			return 0, false
		}
		cost += float64(o.time)
		for _, w := range o.in {
			cost += d.operandCost(w)
			if d.deadBy(w, key) && d.values[w].bytes*16 >= d.values[v].bytes && d.stamp[w] != id {
				d.stamp[w] = id
				d.closed = append(d.closed, w)
				d.stack = append(d.stack, w)
			}
		}
	}
	return cost, true
}

// operandCost is what it costs to have an operand from the host once more.
func (d *descent) operandCost(w int32) float64 {
	va := &d.values[w]
	if !va.bound() || va.leaf >= 0 && d.atHome[va.leaf] {
		return 0
	}
	return d.link / 2 * float64(va.in)
}

// deadBy reports whether nobody needs a computed value any more at a key, although
// it is kept.
func (d *descent) deadBy(w int32, key int64) bool {
	u := d.uses[w]
	return !d.values[w].bound() && d.state.act[w] == keep && u[len(u)-1] < key
}

// evict proposes to move a group to the host.
func (d *descent) evict(g int32) {
	gr := &d.groups[g]
	if d.state.home[g] != resident || d.pinned[g] || gr.bytes < d.floor(smallGroup) {
		return
	}
	cost := 3 * (d.weights + 0.02) * float64(gr.in)
	if len(gr.updates) == 0 {
		cost /= 2
	}
	if gr.dead {
		cost = 0
	}
	d.propose(candidate{value: -1, group: g, bytes: gr.bytes}, float64(gr.bytes), cost)
}

// streamedHome is where a group's update runs once its variables are on the host.
func (pr *Problem) streamedHome(g int32, device bool) home {
	if device && pr.groups[g].light {
		return written
	}
	return onHost
}

// apply decides for the most worthy candidates, until a part of the excess is covered.
func (d *descent) apply() {
	excess := (d.peak - d.budget.Device + d.part - 1) / d.part
	clear(d.taken)
	for d.heap(); len(d.first) > 0; {
		c := d.pop()
		switch {
		case c.group >= 0:
			d.state.home[c.group] = d.streamedHome(c.group, d.device)
		case d.taken[c.value]:
			continue
		default:
			d.taken[c.value] = true
			d.state.act[c.value] = c.act
			for _, w := range d.closed[c.from:c.to] {
				if !d.taken[w] {
					d.taken[w] = true
					d.state.act[w] = recompute
				}
			}
		}
		if excess -= c.bytes; excess <= 0 {
			return
		}
	}
}
