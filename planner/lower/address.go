package lower

import (
	"slices"

	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/plan/space"
)

// Effort is how many pairs of blocks Pack looks at for addresses that keep to a budget, where that
// is worth some tenths of a second: what packing loses a search would have to give up, which takes
// longer.
const Effort = 20_000_000

// Draft is the effort for a draft.
const Draft = Effort / 40

// Press packs the device's slots once more, for a limit in bytes, with an effort as [Sketch.Pack]
// has. It is the sketch with these addresses, or nil if they are no lower than its own.
func (k *Sketch) Press(limit, effort int64) *Sketch {
	c := k.Clone()
	c.Need[space.Device] = c.packSpace(space.Device, limit, effort)
	if c.Need[space.Device] < k.Need[space.Device] {
		return c
	}
	return nil
}

// Clone is a sketch with addresses of its own.
func (k *Sketch) Clone() *Sketch {
	c := *k
	c.slots = slices.Clone(k.slots)
	return &c
}

// Ring spreads the addresses of every space over so many times what is there at once, as far as
// the budgets go, which must suffice for that: whoever takes an address then waits for steps that
// are long done. It reports whether all slots have one; if not, the sketch is of no use.
func (k *Sketch) Ring(budgets Need, room int64) bool {
	for id, load := range k.Load {
		limit := budgets[id]
		if load <= limit/room {
			limit = load * room
		}
		ids, blocks := blocksOf(k.slots, space.ID(id))
		packing, ok := arena.Of(k.align).Ring(blocks, limit)
		if !ok {
			return false
		}
		for n, i := range ids {
			k.slots[i].Off = packing.Offsets[n]
		}
		k.Need[id] = packing.Peak
	}
	k.packed = true
	return true
}

// Lift moves a slot of a space up so that the space takes so many bytes, or hardly more, but no
// more than a limit, and reports whether it could. Variables stay where they are, since other plans
// have them there, too.
func (k *Sketch) Lift(id space.ID, bytes, limit int64) bool {
	for i := range k.slots {
		s := &k.slots[i]
		if s.Space != id || s.Fixed || s.Bytes == 0 || s.Bytes > bytes {
			continue
		}
		at := k.align.Up(bytes - s.Bytes)
		if end := at + s.Bytes; end <= limit && k.free(i, at) {
			s.Off, k.Need[id] = at, end
			return true
		}
	}
	return false
}

// LiftTop moves the highest variable of a space up in all plans that share it, so that the space
// takes so many bytes in each, or hardly more, but no more than a limit. It reports whether it
// could; if not, nothing is moved.
func LiftTop(plans []*Sketch, id space.ID, bytes, limit int64) bool {
	tops := make([]int, len(plans))
	var end int64
	for n, k := range plans {
		top := k.top(id)
		if top < 0 {
			return false
		}
		s, first := k.slots[top], plans[0].slots[tops[0]]
		if n > 0 && (s.Off != first.Off || s.Bytes != first.Bytes) {
			return false
		}
		at := k.align.Up(bytes - s.Bytes)
		end = at + s.Bytes
		if s.Bytes > bytes || end > limit || at < s.Off || !k.above(id, at, top) {
			return false
		}
		tops[n] = top
	}
	for n, k := range plans {
		s := &k.slots[tops[n]]
		s.Off, k.Need[id] = end-s.Bytes, end
	}
	return true
}

// top is the highest variable of a space, -1 if there is none.
func (k *Sketch) top(id space.ID) int {
	top := -1
	for i := range k.slots {
		s := &k.slots[i]
		if s.Space == id && s.Fixed && s.Bytes > 0 && (top < 0 || s.Off > k.slots[top].Off) {
			top = i
		}
	}
	return top
}

// above reports whether an address is above all other slots of a space.
func (k *Sketch) above(id space.ID, at int64, but int) bool {
	for i := range k.slots {
		if s := &k.slots[i]; i != but && s.Space == id && s.Off+s.Bytes > at {
			return false
		}
	}
	return true
}

// free reports whether a slot could be at an address, which is no lower than its own: of no
// other, at the same time, are there bytes beside its own.
func (k *Sketch) free(i int, at int64) bool {
	s := &k.slots[i]
	for n := range k.slots {
		o := &k.slots[n]
		if n == i || o.Space != s.Space || o.Off+o.Bytes <= at {
			continue
		}
		if o.Fixed || o.From <= s.To && s.From <= o.To {
			return false
		}
	}
	return true
}
