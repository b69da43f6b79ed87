package arena

import (
	"slices"

	"github.com/gomem/gomem/plan/space"
)

// placer knows where the blocks of a strip are, and finds room for one more.
type placer struct {
	*strip
	at     []int64  // by block: its offset, or out
	near   []int32  // the placed blocks that meet the block in question
	los    []uint64 // their offsets, sorted, as keys
	sorter sorter
	looks  int64 // pairs of blocks looked at, by all
}

// out is the offset of a block that is not placed.
const out = -1

// A key is an offset in units of [space.Line] and, below it, an index into near, so that
// offsets are sorted as plain numbers.
const indexBits = 20

// searchable bounds the bytes of all blocks, their number and the pairs that meet: by
// the bits of a key, and by the memory for the lists of a strip.
const (
	searchableBytes  = int64(space.Line) << (63 - indexBits)
	searchableBlocks = 1 << indexBits
	searchablePairs  = 1 << 24
)

// searchable reports whether blocks of which so many pairs meet are few and small enough
// for a strip and its keys.
func (a Arena) searchable(blocks []Block, pairs int64) bool {
	var sum int64
	for _, b := range blocks {
		if sum += a.Up(min(b.Bytes, searchableBytes)); sum >= searchableBytes {
			return false
		}
	}
	return len(blocks) <= searchableBlocks && pairs <= searchablePairs
}

func offsetOf(key uint64) int64 { return int64(key>>indexBits) * int64(space.Line) }

// meet is the placed block that a key is of.
func (p *placer) meet(key uint64) int32 { return p.near[key&(1<<indexBits-1)] }

func newPlacer(s *strip) *placer {
	return &placer{strip: s, at: slices.Repeat([]int64{out}, len(s.size))}
}

// gather finds the placed blocks that meet block k.
func (p *placer) gather(k int32) {
	p.near, p.los = p.near[:0], p.los[:0]
	for _, j := range p.earlier(k) {
		p.note(j)
	}
	for j, end := k+1, p.later(k); j < end; j++ {
		p.note(j)
	}
	p.los = p.sorter.sort(p.los)
	p.looks += p.degree(k) + 1
}

func (p *placer) note(j int32) {
	if at := p.at[j]; at >= 0 {
		p.los = append(p.los, uint64(at/int64(space.Line))<<indexBits|uint64(len(p.near)))
		p.near = append(p.near, j)
	}
}

// lowest is the least offset at which block k fits among those gathered.
func (p *placer) lowest(k int32) int64 {
	var at int64
	for _, key := range p.los {
		lo := offsetOf(key)
		if lo-at >= p.size[k] {
			break
		}
		at = max(at, lo+p.size[p.meet(key)])
	}
	return at
}

// tightest is where the smallest gap begins, among those gathered and below a limit,
// that block k fits in, or out.
func (p *placer) tightest(k int32, limit int64) int64 {
	size, least := p.size[k], limit+1
	best, at := int64(out), int64(0)
	for _, key := range p.los {
		lo := offsetOf(key)
		if room := lo - at; room >= size && room < least {
			best, least = at, room
		}
		at = max(at, lo+p.size[p.meet(key)])
	}
	if room := limit - at; room >= size && room < least {
		best = at
	}
	return best
}

// stack places the blocks of an order that are out, each as low as it goes.
func (p *placer) stack(order []int32) {
	for _, k := range order {
		if p.at[k] == out {
			p.gather(k)
			p.at[k] = p.lowest(k)
		}
	}
}

// top is the highest end of a block.
func (p *placer) top() int64 {
	var high int64
	for k, at := range p.at {
		high = max(high, at+p.size[k])
	}
	return high
}

// inOrder places blocks of the caller's, which has so many, one after the other, each
// as low as it can from a base on.
func (s *strip) inOrder(order []int, blocks int, base int64) []int64 {
	where := slices.Repeat([]int32{out}, blocks)
	for k, i := range s.ids {
		where[i] = int32(k)
	}
	var own []int32
	for _, i := range order {
		if k := where[i]; k != out {
			own = append(own, k)
		}
	}
	at := s.stacked(own)
	offsets := slices.Repeat([]int64{base}, blocks)
	for k, i := range s.ids {
		offsets[i] += at[k]
	}
	return offsets
}

// thin is how many others a block meets, on average, up to which a look at all of them takes
// no longer than a shelf.
const thin = 128

// stacked is the offsets of all blocks, placed in an order, each as low as it goes. With a
// placer and with a shelf they are the same.
func (s *strip) stacked(order []int32) []int64 {
	if s.head != nil && len(s.before) <= thin*len(s.size) {
		p := newPlacer(s)
		p.stack(order)
		return p.at
	}
	at, shelf := make([]int64, len(s.size)), newShelf(len(s.starts)-1)
	for _, k := range order {
		at[k] = shelf.place(int(s.from[k]), int(s.to[k]), s.size[k])
	}
	return at
}
