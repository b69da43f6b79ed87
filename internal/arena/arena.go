package arena

import (
	"cmp"
	"math"
	"slices"

	"github.com/gomem/gomem/plan/space"
)

// Arena is where blocks are packed. Its alignment is what their addresses are multiples of.
type Arena struct{ space.Align }

// Of is an arena of an alignment.
func Of(a space.Align) Arena { return Arena{a} }

// Block is a rectangle to be placed: Bytes bytes during times From to To, both
// included.
type Block struct {
	From, To int
	Bytes    int64
	Fixed    bool // live throughout, placed first
}

// Packing is where the blocks are.
type Packing struct {
	Offsets []int64
	Peak    int64  // the largest end of a block
	Load    int64  // the most bytes live at once, rounded up: no packing is lower
	Rule    string // the rule that found it
}

// rounds is how often blocks are placed in an order and the order is repaired.
const rounds = 4

// maxPairs bounds the pairs of blocks looked at in all rounds.
const maxPairs = 40_000_000

// slack reports whether a better packing would be worth looking for.
func (p Packing) slack() bool { return p.Peak > p.Load+p.Load/100 }

// Pack places the blocks. If all together have more bytes than can be counted,
// nothing is placed, and the peak is the largest number there is.
func (a Arena) Pack(blocks []Block) Packing {
	if !a.countable(blocks) {
		return Packing{Offsets: make([]int64, len(blocks)), Peak: math.MaxInt64,
			Load: math.MaxInt64, Rule: "none"}
	}
	base := a.packFixed(blocks)
	events := timeline(blocks)
	load, pairs := a.measure(blocks, events)
	best := Packing{Offsets: a.byTime(blocks, events, base), Load: base + load, Rule: "time"}
	best.Peak = a.peak(blocks, best.Offsets)
	if best.slack() && pairs <= maxPairs {
		place := a.placing(blocks, base, pairs)
		order := bySize(blocks)
		for round := int64(1); round <= rounds && best.slack() && round*pairs <= maxPairs; round++ {
			offsets := place(order)
			if p := a.peak(blocks, offsets); p < best.Peak {
				best.Offsets, best.Peak, best.Rule = offsets, p, "size"
			}
			order = highFirst(blocks, order, offsets, best.Load)
		}
	}
	a.placeFixed(blocks, best.Offsets)
	return best
}

// placeFixed gives the fixed blocks their offsets.
func (a Arena) placeFixed(blocks []Block, offsets []int64) {
	off := int64(0)
	for i := range blocks {
		if blocks[i].Fixed {
			offsets[i] = off
			off += a.Up(blocks[i].Bytes)
		}
	}
}

// countable reports whether the sum of all blocks' bytes is a number, so that no
// address can overflow.
func (a Arena) countable(blocks []Block) bool {
	room := a.Down(math.MaxInt64)
	for _, b := range blocks {
		if b.Bytes > room {
			return false
		}
		room -= a.Up(b.Bytes)
	}
	return true
}

// packFixed is the address after the fixed blocks.
func (a Arena) packFixed(blocks []Block) int64 {
	var end int64
	for _, b := range blocks {
		if b.Fixed {
			end += a.Up(b.Bytes)
		}
	}
	return end
}

func (a Arena) peak(blocks []Block, offsets []int64) int64 {
	var p, fixed int64
	for i, b := range blocks {
		if b.Fixed {
			p = max(p, fixed+b.Bytes)
			fixed += a.Up(b.Bytes)
		} else {
			p = max(p, offsets[i]+b.Bytes)
		}
	}
	return p
}

// event is the start or the end of a block's life.
type event struct {
	time  int
	start bool
	block int
}

// timeline lists the starts and ends of the moving blocks in order of time. A
// block that ends at time t is still live for one that starts at t, so at one time
// the starts come first.
func timeline(blocks []Block) []event {
	events := make([]event, 0, 2*len(blocks))
	for i, b := range blocks {
		if !b.Fixed {
			events = append(events, event{b.From, true, i}, event{b.To, false, i})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		switch {
		case a.time != b.time:
			return cmp.Compare(a.time, b.time)
		case a.start != b.start && a.start:
			return -1
		case a.start != b.start:
			return 1
		default:
			return cmp.Compare(a.block, b.block)
		}
	})
	return events
}

// measure finds the largest load and how many pairs of blocks meet.
func (a Arena) measure(blocks []Block, events []event) (load, pairs int64) {
	var bytes, live int64
	for _, e := range events {
		if !e.start {
			bytes -= a.Up(blocks[e.block].Bytes)
			live--
			continue
		}
		bytes += a.Up(blocks[e.block].Bytes)
		pairs += live
		live++
		load = max(load, bytes)
	}
	return load, pairs
}

// byTime replays the blocks' lives on a best-fit free list.
func (a Arena) byTime(blocks []Block, events []event, base int64) []int64 {
	offsets := make([]int64, len(blocks))
	free := newFreeList(base)
	for _, e := range events {
		size := a.Up(blocks[e.block].Bytes)
		if e.start {
			offsets[e.block] = free.take(size)
		} else {
			free.give(offsets[e.block], size)
		}
	}
	return offsets
}

// bySize lists the moving blocks, the largest first and then the earliest.
func bySize(blocks []Block) []int {
	order := make([]int, 0, len(blocks))
	for i, b := range blocks {
		if !b.Fixed {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(blocks[b].Bytes, blocks[a].Bytes),
			cmp.Compare(blocks[a].From, blocks[b].From))
	})
	return order
}

// placing is how blocks are placed in an order, each as low as it can.
func (a Arena) placing(blocks []Block, base, pairs int64) func(order []int) []int64 {
	s := a.sectioned(blocks)
	if pairs <= thin*int64(len(s.ids)) && a.searchable(blocks, pairs) {
		s.list(pairs)
	}
	return func(order []int) []int64 { return s.inOrder(order, len(blocks), base) }
}

// highFirst moves the blocks that reach above the load to the front.
func highFirst(blocks []Block, order []int, offsets []int64, load int64) []int {
	var high, others []int
	for _, i := range order {
		if offsets[i]+blocks[i].Bytes > load {
			high = append(high, i)
		} else {
			others = append(others, i)
		}
	}
	return append(high, others...)
}

// span is a range of addresses.
type span struct{ lo, hi int64 }
