package arena

import (
	"cmp"
	"math"
	"slices"
)

// builder searches for a packing below a limit from the ground up, exhaustively if it
// may: each block comes to rest as low as those before it allow, and no block is lower
// than the one before it. Every packing can be let down to one of this form.
type builder struct {
	*strip
	limit int64
	at    []int64 // by block: its offset, or out
	low   []int64 // by block: where it would come to rest
	floor []int64 // by section: what waits cannot come to rest below it
	rest  []int64 // by section: the bytes that wait
	cross []int32 // by section: how many that wait reach into the next one
	in    [][]int32
	trail []former
	level [][]candidate // by depth: room for candidates
	key   func(a, b candidate) int
	looks int64
	stop  int64 // of looks
}

// former is what low (of a block) or floor (of a section, as its complement) was.
type former struct {
	of  int32
	was int64
}

// candidate is a block that waits.
type candidate struct {
	low         int64
	rank        int // in the order of its component
	k           int32
	total, area float64
	life        int64
}

// verdict is how a search ended.
type verdict int

const (
	failed verdict = iota
	solved
	spent
)

// keys are orders in which blocks that rest equally low are tried: in the fullest
// section, longest or of the largest area first. A search sorts by them all the time, so that
// what does not decide is not compared.
var keys = [...]func(a, b candidate) int{
	func(a, b candidate) int {
		switch {
		case a.life != b.life:
			return cmp.Compare(b.life, a.life)
		case a.area != b.area:
			return cmp.Compare(b.area, a.area)
		}
		return cmp.Compare(b.total, a.total)
	},
	func(a, b candidate) int {
		switch {
		case a.total != b.total:
			return cmp.Compare(b.total, a.total)
		case a.area != b.area:
			return cmp.Compare(b.area, a.area)
		}
		return cmp.Compare(b.life, a.life)
	},
	func(a, b candidate) int {
		switch {
		case a.total != b.total:
			return cmp.Compare(b.total, a.total)
		case a.life != b.life:
			return cmp.Compare(b.life, a.life)
		}
		return cmp.Compare(b.area, a.area)
	},
}

func newBuilder(s *strip, limit, stop int64, key func(a, b candidate) int) *builder {
	n, sections := len(s.size), len(s.starts)-1
	b := &builder{strip: s, limit: limit, at: slices.Repeat([]int64{out}, n),
		low: make([]int64, n), floor: make([]int64, sections), rest: make([]int64, sections),
		cross: make([]int32, sections), in: make([][]int32, sections), key: key, stop: stop}
	for k := range int32(n) {
		for t := s.from[k]; t <= s.to[k]; t++ {
			b.in[t] = append(b.in[t], k)
		}
		b.wait(k, 1)
	}
	return b
}

// wait enters block k with what waits, or with a sign of -1 takes it out.
func (b *builder) wait(k int32, sign int64) {
	for t := b.from[k]; t <= b.to[k]; t++ {
		b.rest[t] += sign * b.size[k]
		if t < b.to[k] {
			b.cross[t] += int32(sign)
		}
	}
}

// run searches for a place for all blocks.
func (b *builder) run() verdict {
	all := make([]int32, len(b.size))
	for k := range all {
		all[k] = int32(k)
	}
	return b.apart(all, 0)
}

// apart solves the components of some blocks, in order of their starts, that do not
// meet, one after the other. If one fails, those before it are undone.
func (b *builder) apart(blocks []int32, depth int) verdict {
	mark := len(b.trail)
	for first := 0; first < len(blocks); {
		n, end := first, b.from[blocks[first]]
		for ; n < len(blocks) && b.from[blocks[n]] <= end; n++ {
			end = max(end, b.to[blocks[n]])
		}
		v := b.component(blocks[first:n], depth)
		if v == failed {
			for _, k := range blocks[:first] {
				b.undo(k, mark)
			}
		}
		if v != solved {
			return v
		}
		first = n
	}
	return solved
}

// component solves blocks that hang together.
func (b *builder) component(blocks []int32, depth int) verdict {
	order := make([]candidate, len(blocks))
	for n, k := range blocks {
		most := slices.Max(b.rest[b.from[k] : b.to[k]+1])
		order[n] = candidate{k: k, total: float64(most), area: b.area(k), life: b.life(k)}
	}
	slices.SortFunc(order, func(x, y candidate) int {
		if c := b.key(x, y); c != 0 {
			return c
		}
		return cmp.Compare(x.k, y.k)
	})
	for n := range order {
		order[n].rank = n
	}
	first, last := b.from[blocks[0]], b.from[blocks[0]]
	for _, k := range blocks {
		last = max(last, b.to[k])
	}
	return b.descend(order, candidate{}, first, last, depth)
}

// descend places one more of a component's blocks, in a range of sections, none below
// the one placed last.
func (b *builder) descend(blocks []candidate, above candidate, first, last int32,
	depth int) verdict {
	if b.looks += int64(len(blocks)); b.looks >= b.stop {
		return spent
	}
	next, height := b.candidates(blocks, depth)
	if len(next) == 0 {
		return solved
	}
	for _, c := range next {
		if c.low >= height {
			break // another would fit below it
		}
		if c.low < above.low || c.low == above.low && c.rank < above.rank {
			continue
		}
		mark := len(b.trail)
		free := b.place(c.k)
		if b.fits(c.low, first, last) {
			if v := b.further(next, c, first, last, depth+1); v != failed {
				return v
			}
		}
		b.undo(c.k, mark)
		if free {
			break // nothing depends on it: the others fail without it
		}
	}
	return failed
}

// candidates lists the blocks that wait, the lowest first, and finds the least height
// that one of them would reach.
func (b *builder) candidates(blocks []candidate, depth int) ([]candidate, int64) {
	if depth == len(b.level) {
		b.level = append(b.level, nil)
	}
	next, height := b.level[depth][:0], int64(math.MaxInt64)
	for _, c := range blocks {
		if b.at[c.k] == out {
			c.low = b.low[c.k]
			next = append(next, c)
			height = min(height, c.low+b.size[c.k])
		}
	}
	b.level[depth] = next
	slices.SortFunc(next, func(x, y candidate) int {
		if x.low != y.low {
			return cmp.Compare(x.low, y.low)
		}
		return cmp.Compare(x.rank, y.rank)
	})
	return next, height
}

// further goes on after c has been placed: with what is left, or with each component
// of it if it has fallen apart.
func (b *builder) further(blocks []candidate, c candidate, first, last int32,
	depth int) verdict {
	whole := true
	for t := b.from[c.k]; whole && t < b.to[c.k]; t++ {
		whole = b.cross[t] > 0
	}
	if whole {
		return b.descend(blocks, c, first, last, depth)
	}
	var left []int32
	for _, x := range blocks {
		if b.at[x.k] == out {
			left = append(left, x.k)
		}
	}
	slices.Sort(left)
	return b.apart(left, depth)
}

// place puts a block to where it comes to rest, and raises what waits above it. It
// reports whether nothing that waits meets it.
func (b *builder) place(k int32) (free bool) {
	b.at[k] = b.low[k]
	b.wait(k, -1)
	top, first, last := b.at[k]+b.size[k], b.from[k], b.to[k]
	for t := first; t <= last; t++ {
		b.raise(t, top)
	}
	free = true
	lift := func(j int32) {
		if b.at[j] != out {
			return
		}
		if free = false; b.low[j] < top {
			b.trail = append(b.trail, former{j, b.low[j]})
			b.low[j] = top
			first, last = min(first, b.from[j]), max(last, b.to[j])
		}
	}
	for _, j := range b.earlier(k) {
		lift(j)
	}
	for j, end := k+1, b.later(k); j < end; j++ {
		lift(j)
	}
	b.looks += b.degree(k)
	b.settle(first, last)
	return free
}

// settle raises the floors of a range of sections to what comes to rest lowest there.
func (b *builder) settle(first, last int32) {
	for t := first; t <= last; t++ {
		least := int64(math.MaxInt64)
		for _, j := range b.in[t] {
			if b.at[j] == out {
				least = min(least, b.low[j])
			}
		}
		b.looks += int64(len(b.in[t])) / 4
		if least < math.MaxInt64 {
			b.raise(t, least)
		}
	}
}

func (b *builder) raise(section int32, floor int64) {
	if b.floor[section] < floor {
		b.trail = append(b.trail, former{^section, b.floor[section]})
		b.floor[section] = floor
	}
}

// undo takes a block away, and back what has changed since there was so much trail.
func (b *builder) undo(k int32, mark int) {
	for n := len(b.trail) - 1; n >= mark; n-- {
		if f := b.trail[n]; f.of >= 0 {
			b.low[f.of] = f.was
		} else {
			b.floor[^f.of] = f.was
		}
	}
	b.trail = b.trail[:mark]
	b.at[k] = out
	b.wait(k, 1)
}

// fits reports whether what waits in a range of sections has room below the limit, none
// of it below an offset.
func (b *builder) fits(offset int64, first, last int32) bool {
	for t := first; t <= last; t++ {
		floor := b.floor[t]
		if b.rest[t] > 0 {
			floor = max(floor, offset)
		}
		if floor+b.rest[t] > b.limit {
			return false
		}
	}
	return true
}
