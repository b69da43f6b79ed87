package chaos_test

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// disk is a third space of variants, and load and store its engines.
const disk = space.Host + 1

var load, store = space.Copier(disk, space.Host), space.Copier(space.Host, disk)

// deepen gives the plan a disk, if it has none.
func (m mutant) deepen() {
	if len(m.Spaces) > int(disk) {
		return
	}
	m.Spaces = append(m.Spaces, plan.Space{Name: "disk", Budget: 1 << 40, Align: 64})
	m.Streams = append(m.Streams, plan.Stream{Name: "load", Engine: load},
		plan.Stream{Name: "store", Engine: store})
}

// toDisk moves a variable or constant from the host to the disk: it is in host memory
// for one step at a time, and goes back if the step writes it.
func (m mutant) toDisk() {
	b := m.Variables[m.pick(len(m.Variables))]
	home := &m.Slots[b.Slot]
	if home.Space != space.Host || m.graph.Node(b.Node).Shared != nil {
		return
	}
	m.deepen()
	home.Space = disk
	bytes, v := home.Bytes, m.graph.Node(b.Node).Value(0)
	var steps []plan.Step
	for _, s := range m.Steps {
		touched, written := m.touches(s.Do, b.Slot)
		if !touched {
			steps = append(steps, s)
			continue
		}
		near := m.newSlot(space.Host, v, bytes)
		s.Do = redirected(s.Do, map[plan.SlotID]plan.SlotID{b.Slot: near})
		if c, ok := s.Do.(plan.Copy); !ok || c.Why != space.WriteBack {
			steps = append(steps, m.between(v, s.Part, load, b.Slot, near, space.Stage))
		}
		steps = append(steps, s)
		if written {
			steps = append(steps, m.between(v, s.Part, store, near, b.Slot, space.WriteBack))
		}
	}
	m.Steps = steps
}

// touches reports whether an action touches a slot, and writes it.
func (m mutant) touches(do plan.Action, id plan.SlotID) (touched, written bool) {
	plan.Each(do, func(slot plan.SlotID, write bool) {
		touched, written = touched || slot == id, written || slot == id && write
	})
	return touched, written
}

// between is a copy of all of a slot to another.
func (m mutant) between(v graph.Value, part int, e space.Engine, from, to plan.SlotID,
	why space.Reason) plan.Step {
	return plan.Step{Node: v.Node.ID, Name: v.Node.Name, Part: part, Stream: m.stream(e),
		Do: plan.Copy{Src: plan.Ref{Slot: from}, Dst: plan.Ref{Slot: to},
			Bytes: m.Slots[from].Bytes, Why: why}}
}

// byDisk has a value that was swapped out go on to the disk, and come back before it
// is swapped in.
func (m mutant) byDisk() {
	out := m.step(func(s *plan.Step) bool {
		do, ok := s.Do.(plan.Copy)
		return ok && (do.Why == space.SwapOut || do.Why == space.Gradient) &&
			m.Slots[do.Dst.Slot].Space == space.Host
	})
	if out < 0 {
		return
	}
	host := m.Steps[out].Do.(plan.Copy).Dst.Slot
	var readers []int
	for i := out + 1; i < len(m.Steps); i++ {
		touched, written := m.touches(m.Steps[i].Do, host)
		if written {
			break
		}
		if touched {
			readers = append(readers, i)
		}
	}
	n := m.graph.Node(m.Steps[out].Node)
	v := n.Value(0)
	for i := range n.Out {
		if n.Value(i).String() == m.Slots[host].Value {
			v = n.Value(i)
		}
	}
	if len(readers) == 0 || v.String() != m.Slots[host].Value {
		return
	}
	m.deepen()
	bytes := m.Slots[host].Bytes
	far, near := m.newSlot(disk, v, bytes), m.newSlot(space.Host, v, bytes)
	at := readers[m.pick(len(readers))]
	m.Steps[at].Do = redirected(m.Steps[at].Do, map[plan.SlotID]plan.SlotID{host: near})
	back := m.between(v, m.Steps[at].Part, load, far, near, space.SwapIn)
	away := m.between(v, m.Steps[out].Part, store, host, far, space.SwapOut)
	m.Steps = slices.Insert(m.Steps, at, back)
	m.Steps = slices.Insert(m.Steps, out+1, away)
}
