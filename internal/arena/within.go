package arena

import (
	"cmp"
	"slices"
)

// PackWithin is [Arena.Pack], but where that does not keep to a limit in bytes it goes on, to
// the first packing whose peak does, or else for the effort given, and returns the best
// that it has found. Effort is how many pairs of blocks may be looked at beyond what
// Pack looks at, some ten million a second. The result depends on nothing else, and is
// never worse than Pack's.
func (a Arena) PackWithin(blocks []Block, limit, effort int64) Packing {
	best := a.Pack(blocks)
	if best.Peak <= limit || best.Peak <= a.Less(best.Load) {
		return best
	}
	_, pairs := a.measure(blocks, timeline(blocks))
	if pairs > effort || !a.searchable(blocks, pairs) {
		return best
	}
	base := a.packFixed(blocks)
	s := a.newStrip(blocks, pairs)
	h := &hunt{strip: s, limit: max(a.Down(limit-base), s.load), effort: effort}
	h.start(best.Offsets, base)
	if h.search(finest); h.rule != "" {
		offsets := slices.Clone(best.Offsets)
		for k, i := range s.ids {
			offsets[i] = base + h.at[k]
		}
		if p := a.peak(blocks, offsets); p < best.Peak {
			best.Offsets, best.Peak, best.Rule = offsets, p, h.rule
		}
	}
	return best
}

// hunt is a search for a packing of a strip within a limit.
type hunt struct {
	*strip
	limit  int64
	effort int64   // looks that are left
	at     []int64 // the best packing
	top    int64   // its highest end
	rule   string  // what has found it, or nothing if it is Pack's
}

// start takes over a packing above so many fixed bytes.
func (h *hunt) start(offsets []int64, base int64) {
	for _, i := range h.ids {
		h.at = append(h.at, offsets[i]-base)
	}
	h.top = (&placer{strip: h.strip, at: h.at}).top()
}

// done reports whether there is nothing to look for, or no effort left.
func (h *hunt) done() bool { return h.top <= h.limit || h.effort <= 0 }

func (h *hunt) found(at []int64, top int64, rule string) {
	if top < h.top {
		h.at, h.top, h.rule = at, top, rule
	}
}

// orderings are orders in which to place blocks, each as low as it goes.
var orderings = [...]struct {
	rule string
	less func(s *strip, a, b int32) int
}{
	{"area", func(s *strip, a, b int32) int { return cmp.Compare(s.area(b), s.area(a)) }},
	{"life", func(s *strip, a, b int32) int { return cmp.Compare(s.life(b), s.life(a)) }},
	{"start", func(s *strip, a, b int32) int { return cmp.Compare(a, b) }},
}

func (s *strip) life(k int32) int64 { return int64(s.to[k]-s.from[k]) + 1 }

func (s *strip) area(k int32) float64 { return float64(s.size[k]) * float64(s.life(k)) }

// search tries all that there is: the blocks of a grain and above first, without the small
// ones. Where these find room, what sticks out is little, and is mended by eviction; where
// they do not, there is little hope for all, and little is spent on it.
func (h *hunt) search(grain int64) {
	if tried, fit := h.coarse(grain); fit && !h.done() {
		h.spend(h.effort/2, h.evictions)
	} else if tried {
		h.effort /= 4
	}
	h.fine()
}

// spend does something with no more than so much of the effort.
func (h *hunt) spend(effort int64, do func()) {
	kept := h.effort - effort
	h.effort = effort
	do()
	h.effort = max(h.effort, 0) + kept
}

// fine tries all that there is with all blocks.
func (h *hunt) fine() {
	for _, o := range orderings {
		h.repair(o.rule, func(a, b int32) int { return o.less(h.strip, a, b) })
	}
	if len(h.ids) <= buildable {
		h.build()
	}
	h.evictions()
}

// coarsest and finest are what parts of the load a block has at least that is packed before
// the others. Between them, a grain is eight times as coarse as the next.
const coarsest, finest = 256, 2048

// coarse packs the large blocks alone, those of coarser grains first, and then puts the
// others into the gaps, the largest first. Most blocks are small, and meet most others, but
// have few bytes together: without them a look at all that meets a block is several times
// as cheap. As long as the small ones stick out, the large ones are packed below a limit
// that leaves them as much. It reports whether there is such a distinction, and whether the
// large blocks alone keep to the limit.
func (h *hunt) coarse(grain int64) (tried, fit bool) {
	large, small, blocks := h.parted(grain)
	if grain < coarsest || len(large) == 0 || len(small) < len(large)/4 {
		return false, false
	}
	_, pairs := h.arena.measure(blocks, timeline(blocks))
	sub := &hunt{strip: h.arena.newStrip(blocks, pairs), limit: h.limit, effort: h.effort / 4 * 3}
	sub.start(packedBySize(sub.strip), 0)
	h.effort -= sub.effort
	for look := func() { sub.search(grain / 8) }; ; look = sub.evictions {
		look()
		lower := max(sub.limit-h.beside(sub, large, small), sub.load)
		if h.done() || !sub.done() || sub.effort <= 0 || lower >= sub.limit {
			h.effort += max(sub.effort, 0)
			return true, sub.top <= h.limit
		}
		sub.limit = lower
	}
}

// parted is the blocks that have at least a part of the load, as such too, and the others,
// the largest first.
func (h *hunt) parted(part int64) (large, small []int32, blocks []Block) {
	for k := range h.ids {
		if h.size[k] < h.load/part {
			small = append(small, int32(k))
			continue
		}
		large = append(large, int32(k))
		blocks = append(blocks, Block{From: int(h.from[k]), To: int(h.to[k]), Bytes: h.size[k]})
	}
	slices.SortStableFunc(small, func(a, b int32) int { return cmp.Compare(h.size[b], h.size[a]) })
	return large, small, blocks
}

// beside puts the small blocks beside the large ones, which a hunt has packed, and returns
// by how much they stick out.
func (h *hunt) beside(sub *hunt, large, small []int32) (over int64) {
	p := newPlacer(h.strip)
	for n, i := range sub.ids {
		p.at[large[i]] = sub.at[n]
	}
	p.stack(small)
	h.effort -= p.looks
	top := p.top()
	h.found(p.at, top, "grain")
	return top - h.limit
}

// packedBySize is offsets of the blocks of a strip, by the caller's index, the largest
// placed first.
func packedBySize(s *strip) []int64 {
	order := make([]int32, len(s.ids))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(s.size[b], s.size[a]) })
	at := s.stacked(order)
	offsets := make([]int64, len(s.ids))
	for k, i := range s.ids {
		offsets[i] = at[k]
	}
	return offsets
}

// evictions tries eviction with each habit in turn. The limit that it aims at goes
// halfway from the best to the limit asked for whenever one is reached, and halfway
// back when none of the habits reaches it.
func (h *hunt) evictions() {
	slice := h.effort / 12
	goal := h.halfway(h.limit)
	for seed := 0; !h.done(); seed++ {
		e := newEvictor(h.strip, h.at, habits[seed%len(habits)], goal, uint64(seed))
		at, top := e.run(min(slice, h.effort))
		h.effort -= e.looks
		h.found(at, top, "eviction")
		switch {
		case len(e.waiting) == 0:
			goal = h.halfway(h.limit)
		case seed%len(habits) == len(habits)-1:
			slice += slice / 2
			if goal = h.halfway(goal); h.top-goal < h.load/256 {
				goal = h.limit
			}
		}
	}
}

// halfway is a limit halfway from another to the best, or the other if they are close.
func (h *hunt) halfway(limit int64) int64 {
	if h.top-limit < h.load/128 {
		return limit
	}
	return h.arena.Down(limit + (h.top-limit)/2)
}

// buildable is how many blocks are built from the ground up.
const buildable = 1000

// build builds from the ground up with each key, for an effort that grows, up to half
// of what there is.
func (h *hunt) build() {
	left := h.effort / 2
	h.effort -= left
	defer func() { h.effort += max(left, 0) }()
	for slice := int64(1) << 16; !h.done() && left > 0; slice *= 2 {
		for _, key := range keys {
			b := newBuilder(h.strip, h.limit, min(slice, left), key)
			v := b.run()
			if left -= b.looks; v == solved {
				h.found(b.at, (&placer{strip: h.strip, at: b.at}).top(), "building")
			}
			if v == failed {
				return // there is no packing within the limit
			}
			if h.done() || left <= 0 {
				break
			}
		}
	}
}

// repair places the blocks in an order and, a few times, moves those above the limit
// to its front.
func (h *hunt) repair(rule string, less func(a, b int32) int) {
	order := make([]int32, len(h.ids))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, less)
	for round := 0; round < rounds && !h.done(); round++ {
		p := &placer{strip: h.strip, at: h.stacked(order)}
		h.found(p.at, p.top(), rule)
		h.effort -= int64(2*len(h.before) + len(h.ids))
		slices.SortStableFunc(order, func(a, b int32) int { // high before low
			return cmp.Compare(p.above(b, h.limit), p.above(a, h.limit))
		})
	}
}

// above is 1 if block k reaches above a limit, else 0.
func (p *placer) above(k int32, limit int64) int {
	if p.at[k]+p.size[k] > limit {
		return 1
	}
	return 0
}
