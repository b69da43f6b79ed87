package planner

import (
	"slices"
	"time"

	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/plan/space"
)

// spread gives what was drawn addresses of which a step takes less than a limit, or is nil. In
// the lowest packing whoever takes an address waits for those that had it just before; where the
// budgets are larger than what is there at once, addresses are left alone for a while, which may
// take twice the memory, or more, and no time.
func (j *job) spread(f *found, limit time.Duration) *found {
	k, budgets := f.sketch, budgets(f.options)
	least := k.time(j.prices)
	if least >= limit {
		return nil
	}
	var best *found
	take := func() {
		if t := k.time(j.prices); k.need.within(budgets) && t < limit {
			spread := *f
			spread.sketch, spread.time = k.clone(), t
			best, limit = &spread, t
		}
	}
	for room := int64(2); room <= mostRoom && limit > least && k.ring(budgets, room); room *= 2 {
		take()
	}
	if limit > least {
		j.pack(f)
		take()
	}
	return best
}

// mostRoom is how many times what is there at once addresses are spread over.
const mostRoom = 8

// clone is a sketch with addresses of its own.
func (k *sketch) clone() *sketch {
	c := *k
	c.slots = slices.Clone(k.slots)
	return &c
}

// ring spreads the addresses of every space over so many times what is there at once, as far as
// the budgets go. It reports whether all slots have one; what is there at once is within them.
func (k *sketch) ring(budgets need, room int64) bool {
	for id, load := range k.load {
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
		k.need[id] = packing.Peak
	}
	k.packed = true
	return true
}
