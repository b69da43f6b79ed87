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
	c.Need[space.Device] = packSpace(c.slots, space.Device, limit, effort)
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
		packing, ok := arena.Ring(blocks, limit)
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
		at := Rounded(bytes - s.Bytes)
		if end := at + s.Bytes; end <= limit && k.free(i, at) {
			s.Off, k.Need[id] = at, end
			return true
		}
	}
	return false
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

// Rounded is how many bytes of a space so many take.
func Rounded(bytes int64) int64 { return (bytes + arena.Align - 1) &^ (arena.Align - 1) }
