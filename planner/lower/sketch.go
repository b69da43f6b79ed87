package lower

import (
	"math"
	"sync"

	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// Sketch is the slots of a schedule: all that it takes to know what a plan needs and how
// long a step is, without making the plan. Before it is packed, what it says are bounds:
// no packing needs less than the load, and no plan is faster than its steps with no wait
// for an address.
type Sketch struct {
	schedule *program.Schedule
	align    space.Align
	of       []plan.SlotID // by stay
	slots    []plan.Slot   // without names and types
	Load     Need          // what any packing needs at least
	Need     Need          // the peaks, once there are addresses
	packed   bool
}

// Of makes the slots of a program's schedule. A stay has bytes of its own or takes over
// those of an earlier one.
func Of(p *program.Program) *Sketch {
	s := p.Schedule
	k := &Sketch{schedule: s, align: p.Graph.Align(), of: make([]plan.SlotID, len(s.Stays)),
		slots: make([]plan.Slot, 0, len(s.Stays))}
	for i := range s.Stays {
		y := &s.Stays[i]
		if y.Over == program.NoStay {
			k.of[i] = plan.SlotID(len(k.slots))
			k.slots = append(k.slots, plan.Slot{Space: y.Space, Bytes: y.Bytes,
				From: int(y.From), To: int(y.To), Fixed: y.Fixed})
			continue
		}
		k.of[i] = k.of[y.Over]
		slot := &k.slots[k.of[i]]
		slot.To = max(slot.To, int(y.To))
	}
	for id := range k.Load {
		k.Load[id] = k.atOnce(space.ID(id))
	}
	return k
}

// Copied is how many bytes a step copies to the device and away from it.
func (k *Sketch) Copied() int64 {
	var sum int64
	for i := range k.schedule.Events {
		e := &k.schedule.Events[i]
		switch k.schedule.Streams[e.Stream].Engine {
		case space.CopyIn, space.CopyOut:
			_, bytes := common(k.schedule, e)
			sum += bytes
		}
	}
	return sum
}

// atOnce is the least that a space can need: the most bytes at once, each slot's rounded up
// but the highest one's. It is more than there is if it cannot be counted.
func (k *Sketch) atOnce(id space.ID) int64 {
	change := make([]int64, len(k.schedule.Events)+1)
	fixed, room := int64(0), k.align.Down(math.MaxInt64)
	for i := range k.slots {
		s := &k.slots[i]
		if s.Space != id {
			continue
		}
		if s.Bytes > room {
			return math.MaxInt64
		}
		bytes := k.align.Up(s.Bytes)
		if room -= bytes; s.Fixed {
			fixed += bytes
			continue
		}
		change[s.From] += bytes
		change[s.To+1] -= bytes
	}
	var now, most int64
	for _, c := range change {
		now += c
		most = max(most, now)
	}
	return k.align.Less(fixed + most)
}

// Apart is what the slots of a space take side by side, which no packing needs more than. It
// is more than there is if it cannot be counted.
func (k *Sketch) Apart(id space.ID) int64 {
	var sum int64
	for i := range k.slots {
		if s := &k.slots[i]; s.Space == id {
			if s.Bytes > math.MaxInt64-int64(k.align)-sum {
				return math.MaxInt64
			}
			sum += k.align.Up(s.Bytes)
		}
	}
	return sum
}

// Pack fixes the addresses of all spaces at once. Effort is how much is done for a packing
// within the budgets; without any, addresses do not depend on them.
func (k *Sketch) Pack(budgets Need, effort int64) {
	var spaces sync.WaitGroup
	for id := range k.Need {
		spaces.Go(func() {
			k.Need[id] = k.packSpace(space.ID(id), budgets[id], effort)
		})
	}
	spaces.Wait()
	k.packed = true
}

// Lowest is the peak of a space that nobody gives a budget, in bytes. It is the space's if the
// sketch is packed without effort, and all that one need know of a space to say so.
func (k *Sketch) Lowest(id space.ID) int64 { return k.packSpace(id, 0, 0) }

// packSpace fixes the addresses of a space and returns its peak. Where a schedule fills
// its budget it is worth looking for a packing that keeps to it.
func (k *Sketch) packSpace(id space.ID, budget, effort int64) int64 {
	ids, blocks := blocksOf(k.slots, id)
	var packing arena.Packing
	if effort == 0 {
		packing = arena.Of(k.align).Pack(blocks)
	} else {
		packing = arena.Of(k.align).PackWithin(blocks, budget, effort)
	}
	for n, i := range ids {
		k.slots[i].Off = packing.Offsets[n]
	}
	return packing.Peak
}

// blocksOf is the slots of a space, by number and to be packed.
func blocksOf(slots []plan.Slot, id space.ID) (ids []int, blocks []arena.Block) {
	for i := range slots {
		if s := &slots[i]; s.Space == id { // others write the offsets of other spaces
			ids = append(ids, i)
			blocks = append(blocks, arena.Block{From: s.From, To: s.To, Bytes: s.Bytes,
				Fixed: s.Fixed})
		}
	}
	return ids, blocks
}
