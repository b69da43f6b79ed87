package chaos_test

import (
	"math"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

func waitKinds() []kind {
	return []kind{
		{name: "wait removed", apply: onStep(waits, func(m mutant, _ int, s *plan.Step) bool {
			k := m.pick(len(s.Wait))
			s.Wait = slices.Concat(s.Wait[:k], s.Wait[k+1:]) // nil if there is none left
			return true
		})},
		{name: "waits all removed", apply: onStep(waits, func(_ mutant, _ int, s *plan.Step) bool {
			s.Wait = nil
			return true
		})},
		{name: "wait moved", apply: onStep(waits, func(m mutant, _ int, s *plan.Step) bool {
			s.Wait = slices.Clone(s.Wait)
			s.Wait[m.pick(len(s.Wait))] += []int{-3, -2, -1, 1, 2, 3}[m.pick(6)]
			return true
		})},
		{name: "wait doubled", apply: onStep(waits, func(m mutant, _ int, s *plan.Step) bool {
			s.Wait = append(slices.Clone(s.Wait), s.Wait[m.pick(len(s.Wait))])
			slices.Sort(s.Wait)
			return true
		})},
		{name: "wait added", apply: onStep(anyStep, func(m mutant, i int, s *plan.Step) bool {
			s.Wait = append(slices.Clone(s.Wait), m.pick(i+2))
			slices.Sort(s.Wait)
			return true
		})},
	}
}

func orderKinds() []kind {
	return []kind{
		{name: "order swapped", apply: func(m mutant) bool {
			order := identity(len(m.Steps))
			i := m.pick(len(order) - 1)
			order[i], order[i+1] = order[i+1], order[i]
			m.renumber(order)
			return true
		}},
		{name: "step moved", apply: func(m mutant) bool {
			order := identity(len(m.Steps))
			from, to := m.pick(len(order)), m.pick(len(order))
			order = slices.Insert(slices.Delete(order, from, from+1), min(to, len(order)-1), from)
			m.renumber(order)
			return from != to
		}},
		{name: "step dropped", apply: func(m mutant) bool {
			m.drop(m.pick(len(m.Steps)))
			return true
		}},
		{name: "step repeated", apply: func(m mutant) bool {
			m.Steps = append(m.Steps, m.Steps[m.pick(len(m.Steps))])
			for i := range m.Slots {
				if m.Slots[i].To == len(m.Steps)-2 || m.pick(4) == 0 {
					m.Slots[i].To = len(m.Steps) - 1
				}
			}
			return true
		}},
		{name: "stream", apply: onStep(anyStep, func(m mutant, _ int, s *plan.Step) bool {
			old := s.Stream
			s.Stream = plan.StreamID(m.pick(len(m.Streams) + 1))
			return s.Stream != old
		})},
		{name: "part", apply: onStep(anyStep, func(m mutant, _ int, s *plan.Step) bool {
			s.Part += []int{-2, -1, 1, 2}[m.pick(4)]
			return true
		})},
		{name: "node", apply: onStep(anyStep, func(m mutant, _ int, s *plan.Step) bool {
			s.Node += graph.NodeID(1 - 2*m.pick(2))
			if m.pick(2) == 0 && s.Node >= 0 && int(s.Node) < m.graph.Len() {
				s.Name = m.graph.Node(s.Node).Name
			}
			return true
		})},
		{name: "name", apply: onStep(anyStep, func(_ mutant, _ int, s *plan.Step) bool {
			s.Name += "'"
			return true
		})},
		{name: "action dropped", apply: onStep(anyStep, func(_ mutant, _ int, s *plan.Step) bool {
			s.Do = nil
			return true
		})},
	}
}

func slotKinds() []kind {
	offset := func(by ...int64) func(mutant) bool {
		return onSlot(anySlot, func(m mutant, s *plan.Slot) { s.Off += by[m.pick(len(by))] })
	}
	return []kind{
		{name: "offset by 1", apply: offset(1, -1)},
		{name: "offset by 3", apply: offset(3, -3)},
		{name: "offset by 64", apply: offset(64, -64)},
		{name: "offset by far", apply: offset(64*7, -64*7, 4096, math.MaxInt64, -math.MaxInt64,
			math.MaxInt64&^63)},
		{name: "offset onto another slot", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Off = m.Slots[m.pick(len(m.Slots))].Off
		})},
		{name: "offset by a slot", apply: onSlot(anySlot, func(_ mutant, s *plan.Slot) {
			s.Off += (s.Bytes + 63) &^ 63
		})},
		{name: "slot size", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Bytes += []int64{-64, -4, -1, 1, 4, 64, math.MaxInt64 - s.Bytes}[m.pick(7)]
		})},
		{name: "slot size and type", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Bytes += []int64{-64, -4, -1, 1, 4, 64}[m.pick(6)]
			s.Type = tensor.Of(tensor.U8, int(max(s.Bytes, 1)))
		})},
		{name: "slot type", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Type = []graph.Type{{}, tensor.Of(tensor.U8, int(s.Bytes)),
				tensor.Of(tensor.I32, int(s.Bytes/4))}[m.pick(3)]
		})},
		{name: "slot name", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Value = m.Slots[m.pick(len(m.Slots))].Value
		})},
		{name: "life ends sooner", apply: onSlot(moving, func(m mutant, s *plan.Slot) {
			s.To -= 1 + m.pick(3)
		})},
		{name: "life ends later", apply: onSlot(moving, func(m mutant, s *plan.Slot) {
			s.To += 1 + m.pick(6)
		})},
		{name: "life starts sooner", apply: onSlot(moving, func(m mutant, s *plan.Slot) {
			s.From -= 1 + m.pick(6)
		})},
		{name: "life starts later", apply: onSlot(moving, func(m mutant, s *plan.Slot) {
			s.From += 1 + m.pick(3)
		})},
		{name: "life of a fixed slot", apply: onSlot(func(s *plan.Slot) bool { return s.Fixed },
			func(m mutant, s *plan.Slot) { s.From, s.To = m.pick(2), s.To-m.pick(2) })},
		{name: "fixed", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Fixed = !s.Fixed
			if s.Fixed {
				s.From, s.To = 0, len(m.Steps)-1
			}
		})},
		{name: "slot's space", apply: onSlot(anySlot, func(m mutant, s *plan.Slot) {
			s.Space = space.ID((int(s.Space) + 1 + m.pick(2)) % 3)
		})},
		{name: "slots exchanged", apply: func(m mutant) bool {
			return swap(m, m.Slots, func(s *plan.Slot) *plan.Slot { return s })
		}},
	}
}

func copyKinds() []kind {
	return []kind{
		{name: "copy length", apply: onCopy(func(m mutant, _ int, do *plan.Copy) bool {
			do.Bytes += []int64{-64, -4, -1, 1, 4, 64, math.MaxInt64 - do.Bytes, -do.Bytes,
				-2 * do.Bytes}[m.pick(9)]
			return true
		})},
		{name: "copy direction", apply: onCopy(func(_ mutant, _ int, do *plan.Copy) bool {
			do.Src, do.Dst = do.Dst, do.Src
			return true
		})},
		{name: "copy's source", apply: onCopy(func(m mutant, _ int, do *plan.Copy) bool {
			old := do.Src.Slot
			do.Src.Slot = m.other(old, m.pick(3) > 0)
			return do.Src.Slot != old
		})},
		{name: "copy's destination", apply: onCopy(func(m mutant, _ int, do *plan.Copy) bool {
			old := do.Dst.Slot
			do.Dst.Slot = m.other(old, m.pick(3) > 0)
			return do.Dst.Slot != old
		})},
		{name: "copy's offsets", apply: onCopy(func(m mutant, _ int, do *plan.Copy) bool {
			by := []int64{-64, -4, -1, 1, 3, 4, 64, math.MaxInt64}[m.pick(8)]
			if m.pick(2) == 0 {
				do.Src.Off += by
			} else {
				do.Dst.Off += by
			}
			return true
		})},
		{name: "copy's reason", apply: onCopy(func(m mutant, _ int, do *plan.Copy) bool {
			old := do.Why
			do.Why = space.Reason(m.pick(9))
			return do.Why != old
		})},
		{name: "copy's idleness", apply: onCopy(func(m mutant, _ int, do *plan.Copy) bool {
			do.Idle += 1 - 3*m.pick(2)
			return true
		})},
		{name: "copy bypassed", apply: onCopy(func(m mutant, i int, do *plan.Copy) bool {
			for k := range m.Steps {
				if l, ok := m.Steps[k].Do.(plan.Launch); ok {
					l.In = slices.Clone(l.In)
					for j, r := range l.In {
						if r.Slot == do.Dst.Slot {
							l.In[j] = plan.Ref{Slot: do.Src.Slot, Off: do.Src.Off + r.Off}
						}
					}
					m.Steps[k].Do = l
				}
			}
			m.drop(i)
			m.fix()
			return true
		})},
		{name: "copy deleted", apply: func(m mutant) bool {
			i := m.step(func(s *plan.Step) bool { _, ok := s.Do.(plan.Copy); return ok })
			if i >= 0 {
				m.drop(i)
			}
			return i >= 0
		}},
	}
}

func launchKinds() []kind {
	ref := func(refs func(do *plan.Launch) []plan.Ref, in, out int,
		change func(m mutant, r *plan.Ref)) func(mutant) bool {
		return onLaunch(in, out, func(m mutant, do *plan.Launch) bool {
			list := refs(do)
			r := &list[m.pick(len(list))]
			old := *r
			change(m, r)
			return *r != old
		})
	}
	operands := func(do *plan.Launch) []plan.Ref { return do.In }
	results := func(do *plan.Launch) []plan.Ref { return do.Out }
	toSlot := func(m mutant, r *plan.Ref) { r.Slot = m.other(r.Slot, m.pick(3) > 0) }
	toOffset := func(m mutant, r *plan.Ref) {
		r.Off += []int64{-64, -4, -1, 1, 3, 4, 64, math.MaxInt64}[m.pick(8)]
	}
	return []kind{
		{name: "operands swapped", apply: onLaunch(2, 0, func(m mutant, do *plan.Launch) bool {
			return swap(m, do.In, func(r *plan.Ref) *plan.Ref { return r })
		})},
		{name: "operand's slot", apply: ref(operands, 1, 0, toSlot)},
		{name: "operand's offset", apply: ref(operands, 1, 0, toOffset)},
		{name: "operand dropped", apply: onLaunch(1, 0, func(_ mutant, do *plan.Launch) bool {
			do.In = do.In[1:]
			return true
		})},
		{name: "results swapped", apply: onLaunch(0, 2, func(m mutant, do *plan.Launch) bool {
			return swap(m, do.Out, func(r *plan.Ref) *plan.Ref { return r })
		})},
		{name: "result's slot", apply: ref(results, 0, 1, toSlot)},
		{name: "result's offset", apply: ref(results, 0, 1, toOffset)},
		{name: "result over an operand", apply: inPlaced},
		{name: "operation", apply: onLaunch(0, 0, func(_ mutant, do *plan.Launch) bool {
			do.Op += "s"
			return true
		})},
		{name: "mutates", apply: onLaunch(0, 0, func(m mutant, do *plan.Launch) bool {
			do.Mutates += 1 - 2*m.pick(2)
			return true
		})},
		{name: "scratch moved", apply: onScratch(func(m mutant, do *plan.Launch) bool {
			old := do.Scratch
			do.Scratch = m.other(old, m.pick(2) == 0)
			return do.Scratch != old
		})},
		{name: "scratch onto a slot", apply: onScratch(func(m mutant, do *plan.Launch) bool {
			s := &m.Slots[do.Scratch]
			old := s.Off
			s.Off = m.Slots[m.pick(len(m.Slots))].Off
			m.fix()
			return s.Off != old
		})},
		{name: "scratch dropped", apply: onScratch(func(_ mutant, do *plan.Launch) bool {
			do.Scratch = plan.NoSlot
			return true
		})},
		{name: "scratch added", apply: onLaunch(0, 0, func(m mutant, do *plan.Launch) bool {
			old := do.Scratch
			do.Scratch = plan.SlotID(m.pick(len(m.Slots)))
			return do.Scratch != old
		})},
	}
}

// inPlaced makes a launch write its result where one of its operands is, and all
// that comes later find it there.
func inPlaced(m mutant) bool {
	var from, to plan.SlotID
	if !onLaunch(1, 1, func(m mutant, do *plan.Launch) bool {
		k := m.pick(len(do.In))
		from, to = do.Out[0].Slot, do.In[k].Slot
		do.Out[0] = do.In[k]
		return from != to
	})(m) {
		return false
	}
	for i := range m.Steps {
		switch do := m.Steps[i].Do.(type) {
		case plan.Copy:
			if do.Src.Slot == from {
				do.Src.Slot = to
			}
			m.Steps[i].Do = do
		case plan.Launch:
			do.In = slices.Clone(do.In)
			for k := range do.In {
				if do.In[k].Slot == from {
					do.In[k].Slot = to
				}
			}
			m.Steps[i].Do = do
		}
	}
	m.Slots[to].To = max(m.Slots[to].To, m.Slots[from].To)
	return true
}

func headerKinds() []kind {
	return []kind{
		{name: "title", harmless: true, apply: func(m mutant) bool {
			m.Title += " "
			return true
		}},
		{name: "digest", apply: func(m mutant) bool {
			m.Digest = "sha256:" + m.Digest
			return true
		}},
		{name: "parts", apply: func(m mutant) bool {
			m.Parts += []int{-1, 1, math.MaxInt32, -m.Parts, -2 * m.Parts}[m.pick(5)]
			return true
		}},
		{name: "peak", apply: func(m mutant) bool {
			m.Spaces[m.pick(2)].Bytes += int64(1 - 2*m.pick(2))
			return true
		}},
		{name: "window", apply: func(m mutant) bool {
			m.Window += []int{-3, -2, -1, 1}[m.pick(4)]
			return true
		}},
		{name: "alignment", apply: func(m mutant) bool {
			m.Spaces[m.pick(2)].Align = []int64{-64, 0, 48, 128, 4096}[m.pick(5)]
			return true
		}},
		{name: "budget", apply: func(m mutant) bool {
			s := &m.Spaces[m.pick(2)]
			s.Budget = s.Bytes + []int64{-1, 0, -s.Bytes, -2 * s.Bytes}[m.pick(4)]
			return true
		}},
		{name: "spaces", apply: func(m mutant) bool {
			switch m.pick(3) {
			case 0:
				m.Spaces = append(m.Spaces, m.Spaces[1])
			case 1:
				m.Spaces = m.Spaces[:1]
			default:
				m.Spaces[0], m.Spaces[1] = m.Spaces[1], m.Spaces[0]
			}
			return true
		}},
		{name: "space's name", apply: func(m mutant) bool {
			m.Spaces[m.pick(2)].Name = "disk"
			return true
		}},
		{name: "engine", apply: func(m mutant) bool {
			s := &m.Streams[m.pick(len(m.Streams))]
			old := s.Engine
			s.Engine = space.Copier(space.ID(m.pick(3)), space.ID(m.pick(3)))
			return s.Engine != old
		}},
		{name: "stream's name", harmless: true, apply: func(m mutant) bool {
			return swap(m, m.Streams, func(s *plan.Stream) *string { return &s.Name })
		}},
		{name: "stream's name taken", apply: func(m mutant) bool {
			m.Streams[0].Name = m.Streams[1].Name
			return true
		}},
		{name: "streams", apply: func(m mutant) bool {
			if m.pick(2) == 0 {
				m.Streams = m.Streams[:m.pick(len(m.Streams))]
			} else {
				m.Streams = append(m.Streams, plan.Stream{Name: "more", Engine: space.Compute})
			}
			return true
		}},
	}
}

func bindingKinds() []kind {
	return []kind{
		{name: "binding names", apply: func(m mutant) bool {
			return swap(m, *bindings(m), func(b *plan.Binding) *string { return &b.Name })
		}},
		{name: "binding nodes", apply: func(m mutant) bool {
			return swap(m, *bindings(m), func(b *plan.Binding) *graph.NodeID { return &b.Node })
		}},
		{name: "binding slots", apply: func(m mutant) bool {
			return swap(m, *bindings(m), func(b *plan.Binding) *plan.SlotID { return &b.Slot })
		}},
		{name: "binding order", apply: func(m mutant) bool {
			return swap(m, *bindings(m), func(b *plan.Binding) *plan.Binding { return b })
		}},
		{name: "binding slot", apply: func(m mutant) bool {
			list := *bindings(m)
			b := &list[m.pick(len(list))]
			old := b.Slot
			b.Slot = plan.SlotID(m.pick(len(m.Slots)+2) - 1)
			return b.Slot != old
		}},
		{name: "binding dropped", apply: func(m mutant) bool {
			list := bindings(m)
			i := m.pick(len(*list))
			*list = slices.Delete(*list, i, i+1)
			return true
		}},
		{name: "binding doubled", apply: func(m mutant) bool {
			list := bindings(m)
			i := m.pick(len(*list))
			*list = slices.Insert(*list, i, (*list)[i])
			return true
		}},
		{name: "variable in two slots", apply: func(m mutant) bool {
			i := m.pick(len(m.Variables))
			b := m.Variables[i]
			if b.Slot < 0 || int(b.Slot) >= len(m.Slots) ||
				int(m.Slots[b.Slot].Space) >= len(m.Spaces) {
				return false
			}
			s := m.Slots[b.Slot]
			s.Off = (m.Spaces[s.Space].Bytes + 63) &^ 63
			m.Slots = append(m.Slots, s)
			m.fix()
			b.Slot = plan.SlotID(len(m.Slots) - 1)
			m.Variables = slices.Insert(m.Variables, i+m.pick(2), b)
			return true
		}},
		{name: "fetch slot", apply: onFetch(func(m mutant, f *plan.Fetch) {
			f.Ref.Slot = plan.SlotID(m.pick(len(m.Slots)+2) - 1)
		})},
		{name: "fetch offset", apply: onFetch(func(m mutant, f *plan.Fetch) {
			f.Ref.Off += []int64{-4, -1, 1, 4, 64, math.MaxInt64}[m.pick(6)]
		})},
		{name: "fetch type", apply: onFetch(func(m mutant, f *plan.Fetch) {
			huge := tensor.Of(tensor.F32, 1<<40)
			f.Type = []graph.Type{{}, huge, tensor.Of(tensor.U8, 1)}[m.pick(3)]
		})},
		{name: "fetch name", apply: onFetch(func(m mutant, f *plan.Fetch) { f.Value += "'" })},
		{name: "fetches swapped", apply: func(m mutant) bool {
			return swap(m, m.Fetches, func(f *plan.Fetch) *plan.Fetch { return f })
		}},
		{name: "fetch dropped", apply: func(m mutant) bool {
			m.Fetches = m.Fetches[1:]
			return true
		}},
		{name: "fetch doubled", apply: func(m mutant) bool {
			m.Fetches = append(m.Fetches, m.Fetches[0])
			return true
		}},
	}
}

func onFetch(change func(m mutant, f *plan.Fetch)) func(mutant) bool {
	return func(m mutant) bool {
		f := &m.Fetches[m.pick(len(m.Fetches))]
		old := *f
		change(m, f)
		return old.Ref != f.Ref || old.Value != f.Value || old.Type.String() != f.Type.String()
	}
}
