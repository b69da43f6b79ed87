package arena

// Ring places the blocks below a limit in bytes so that addresses are taken again as late as
// can be: in order of time, each in the first gap that is large enough after the one before,
// and from the ground again when the limit is reached. It reports whether all found room.
//
// Who is given an address waits for those that had it, and in the lowest packing these have
// only just ended. Where there is more memory than what is live, that wait need not be.
func (a Arena) Ring(blocks []Block, limit int64) (Packing, bool) {
	if !a.countable(blocks) {
		return Packing{}, false
	}
	base := a.packFixed(blocks)
	events := timeline(blocks)
	load, _ := a.measure(blocks, events)
	p := Packing{Offsets: make([]int64, len(blocks)), Load: base + load, Rule: "ring"}
	limit = a.Down(limit)
	if p.Load > limit {
		return p, false
	}
	free := newFreeList(base)
	if base < limit {
		free.insert(span{base, limit})
	}
	at := base
	for _, e := range events {
		size := a.Up(blocks[e.block].Bytes)
		switch {
		case size == 0:
			continue
		case !e.start:
			free.give(p.Offsets[e.block], size)
			continue
		}
		off, ok := free.after(at, size)
		if !ok {
			return p, false
		}
		p.Offsets[e.block], at = off, off+size
	}
	a.placeFixed(blocks, p.Offsets)
	p.Peak = a.peak(blocks, p.Offsets)
	return p, true
}
