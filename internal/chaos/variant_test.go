package chaos_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/arena"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// variant is a plan with decisions that few policies take: values are computed
// again, variables updated on the device and written back, and some of it all is on a
// disk. It keeps every promise, as p does.
func (s subject) variant(t *testing.T, p *plan.Plan, rng *rand.Rand) *plan.Plan {
	t.Helper()
	m := mutant{clone(p), s.graph, rng}
	for range 1 + rng.IntN(3) {
		m.recompute()
		m.writeBack()
		if rng.IntN(2) == 0 {
			m.toDisk()
			m.byDisk()
		}
	}
	m.settle()
	if err := s.verify(m.Plan); err != nil {
		t.Fatalf("%s %s: a variant: %v", s.name, p.Title, err)
	}
	for seed := range uint64(schedules) {
		if wrong := s.run(m.Plan, seed); wrong != "" {
			t.Fatalf("%s %s: order %d of a variant: %s", s.name, p.Title, seed, wrong)
		}
	}
	return m.Plan
}

// recompute runs a pure operation once more, with results of its own for all that
// comes later.
func (m mutant) recompute() {
	i := m.step(func(s *plan.Step) bool {
		do, ok := s.Do.(plan.Launch)
		return ok && do.Mutates == 0 && !slices.ContainsFunc(do.Out, func(r plan.Ref) bool {
			return slices.Contains(do.In, r)
		})
	})
	if i < 0 || i == len(m.Steps)-1 {
		return
	}
	s := m.Steps[i]
	do, n := s.Do.(plan.Launch), m.graph.Node(s.Node)
	at := i + 1 + m.pick(m.unchanged(i, do)-i)
	moved := map[plan.SlotID]plan.SlotID{}
	out := make([]plan.Ref, len(do.Out))
	for k, r := range do.Out {
		moved[r.Slot] = m.newSlot(m.Slots[r.Slot].Space, n.Value(k), n.Out[k].Bytes())
		out[k].Slot = moved[r.Slot]
	}
	for k := at; k < len(m.Steps); k++ {
		m.Steps[k].Do = redirected(m.Steps[k].Do, moved)
	}
	for k := range m.Fetches {
		if to, ok := moved[m.Fetches[k].Ref.Slot]; ok {
			m.Fetches[k].Ref.Slot = to
		}
	}
	do.Out = out
	if do.Scratch != plan.NoSlot {
		m.Slots = append(m.Slots, m.Slots[do.Scratch])
		do.Scratch = plan.SlotID(len(m.Slots) - 1)
	}
	s.Do, s.Part = do, m.Steps[at-1].Part
	m.Steps = slices.Insert(m.Steps, at, s)
}

// unchanged is the first step after a launch that writes one of its operands or
// results, or their number minus one.
func (m mutant) unchanged(i int, do plan.Launch) int {
	holds := map[plan.SlotID]bool{}
	for _, r := range slices.Concat(do.In, do.Out) {
		holds[r.Slot] = true
	}
	for k := i + 1; k < len(m.Steps); k++ {
		changes := false
		plan.Each(m.Steps[k].Do, func(id plan.SlotID, write bool) {
			changes = changes || write && holds[id]
		})
		if changes {
			return k
		}
	}
	return len(m.Steps) - 1
}

// redirected is an action in other slots.
func redirected(do plan.Action, moved map[plan.SlotID]plan.SlotID) plan.Action {
	to := func(r plan.Ref) plan.Ref {
		if id, ok := moved[r.Slot]; ok {
			r.Slot = id
		}
		return r
	}
	switch do := do.(type) {
	case plan.Copy:
		do.Src, do.Dst = to(do.Src), to(do.Dst)
		return do
	case plan.Launch:
		do.In, do.Out = slices.Clone(do.In), slices.Clone(do.Out)
		for k, r := range do.In {
			do.In[k] = to(r)
		}
		for k, r := range do.Out {
			do.Out[k] = to(r)
		}
		return do
	case plan.Send:
		do.In, do.Out = slices.Clone(do.In), to(do.Out)
		for k, r := range do.In {
			do.In[k] = to(r)
		}
		return do
	case plan.Await:
		do.At = to(do.At)
		return do
	}
	return do
}

// newSlot is a slot for so many bytes of a value; settle gives it a life and an
// address.
func (m mutant) newSlot(in space.ID, v graph.Value, bytes int64) plan.SlotID {
	t := v.Type()
	if bytes != t.Bytes() {
		t = tensor.Of(tensor.U8, int(bytes))
	}
	m.Slots = append(m.Slots, plan.Slot{Space: in, Bytes: bytes, Value: v.String(), Type: t})
	return plan.SlotID(len(m.Slots) - 1)
}

// writeBack moves an update from the host to the device, with all that it reads,
// and writes what it has written back.
func (m mutant) writeBack() {
	i := m.step(func(s *plan.Step) bool {
		do, ok := s.Do.(plan.Launch)
		return ok && do.Mutates > 0 && m.Streams[s.Stream].Engine == space.HostCompute
	})
	if i < 0 {
		return
	}
	s := m.Steps[i]
	do, n := s.Do.(plan.Launch), m.graph.Node(s.Node)
	before, after := []plan.Step{}, []plan.Step{}
	in := make([]plan.Ref, len(do.In))
	for k, src := range do.In {
		root, _ := n.In[k].Resolve()
		c := plan.Copy{Src: src, Bytes: n.In[k].Type().Bytes(), Why: inwards(root.Node.Kind)}
		c.Dst.Slot = m.newSlot(space.Device, root, c.Bytes)
		in[k] = c.Dst
		step := plan.Step{Node: root.Node.ID, Name: root.Node.Name, Part: s.Part,
			Stream: m.stream(space.CopyIn), Do: c}
		before = append(before, step)
		if k < do.Mutates {
			c.Src, c.Dst, c.Why = c.Dst, c.Src, space.WriteBack
			step.Stream, step.Do = m.stream(space.CopyOut), c
			after = append(after, step)
		}
	}
	do.In = in
	if do.Scratch != plan.NoSlot {
		m.Slots[do.Scratch].Space = space.Device
	}
	s.Do, s.Stream = do, m.stream(space.Compute)
	m.Steps = slices.Concat(m.Steps[:i], before, []plan.Step{s}, after, m.Steps[i+1:])
}

// inwards is why a value of a node of a kind is copied to the device.
func inwards(k graph.Kind) space.Reason {
	switch k {
	case graph.KindInput:
		return space.Feed
	case graph.KindCompute:
		return space.SwapIn
	}
	return space.Stage
}

// stream is the first stream of an engine.
func (m mutant) stream(e space.Engine) plan.StreamID {
	return plan.StreamID(slices.IndexFunc(m.Streams, func(s plan.Stream) bool {
		return s.Engine == e
	}))
}

// settle gives the slots the lives that the steps demand, then addresses, and the
// steps the waits that the addresses demand. What another mutation has spoilt
// stays so.
func (m mutant) settle() {
	if !m.sound() {
		return
	}
	m.live()
	if slices.ContainsFunc(m.Slots, func(s plan.Slot) bool { return s.To < s.From }) {
		return // a slot that no step is left of
	}
	for id := range m.Spaces {
		var ids []int
		var blocks []arena.Block
		for i, s := range m.Slots {
			if int(s.Space) == id {
				ids = append(ids, i)
				blocks = append(blocks, arena.Block{From: s.From, To: s.To, Bytes: s.Bytes,
					Fixed: s.Fixed})
			}
		}
		packing := arena.Of(space.Line).Pack(blocks)
		for k, i := range ids {
			m.Slots[i].Off = packing.Offsets[k]
		}
		m.Spaces[id].Bytes = packing.Peak
		m.Spaces[id].Budget = max(m.Spaces[id].Budget, packing.Peak)
	}
	m.await()
}

// sound reports whether all numbers are of things that there are.
func (m mutant) sound() bool {
	ok := true
	slot := func(id plan.SlotID) { ok = ok && id >= 0 && int(id) < len(m.Slots) }
	for _, s := range m.Slots {
		ok = ok && int(s.Space) < len(m.Spaces) && s.Bytes >= 0
	}
	for _, s := range m.Steps {
		ok = ok && int(s.Stream) < len(m.Streams)
		plan.Each(s.Do, func(id plan.SlotID, _ bool) { slot(id) })
	}
	for _, b := range slices.Concat(m.Feeds, m.Variables) {
		slot(b.Slot)
	}
	for _, f := range m.Fetches {
		slot(f.Ref.Slot)
	}
	return ok
}

func (m mutant) live() {
	last := len(m.Steps) - 1
	for i := range m.Slots {
		s := &m.Slots[i]
		s.From, s.To = math.MaxInt, 0
		if s.Fixed {
			s.From, s.To = 0, last
		}
	}
	for i, s := range m.Steps {
		plan.Each(s.Do, func(id plan.SlotID, _ bool) {
			m.Slots[id].From, m.Slots[id].To = min(m.Slots[id].From, i), max(m.Slots[id].To, i)
		})
	}
	for _, b := range m.Feeds {
		m.Slots[b.Slot].From = 0
	}
	for _, f := range m.Fetches {
		m.Slots[f.Ref.Slot].To = last
	}
}

// await makes every step wait for the last one on every other stream with which
// it has bytes in conflict, or whose partition must be done.
func (m mutant) await() {
	type access struct {
		slot  plan.Slot
		write bool
		step  int
	}
	var past []access
	for i := range m.Steps {
		s := &m.Steps[i]
		need := slices.Repeat([]int{-1}, len(m.Streams))
		for k, before := range m.Steps[:i] {
			if before.Part <= s.Part-2 {
				need[before.Stream] = k
			}
		}
		before := len(past)
		plan.Each(s.Do, func(id plan.SlotID, write bool) {
			now := access{m.Slots[id], write, i}
			for _, a := range past[:before] {
				if (a.write || write) && a.slot.Space == now.slot.Space &&
					a.slot.Off < now.slot.Off+now.slot.Bytes &&
					now.slot.Off < a.slot.Off+a.slot.Bytes {
					t := m.Steps[a.step].Stream
					need[t] = max(need[t], a.step)
				}
			}
			past = append(past, now)
		})
		s.Wait = nil
		for t, k := range need {
			if k >= 0 && t != int(s.Stream) {
				s.Wait = append(s.Wait, k)
			}
		}
		slices.Sort(s.Wait)
	}
}

// variantKinds spoil what variants have.
func variantKinds() []kind {
	return []kind{
		{name: "first run dropped", apply: func(m mutant) bool {
			first, _ := m.runs()
			if first >= 0 {
				m.drop(first)
			}
			return first >= 0
		}},
		{name: "second run dropped", apply: func(m mutant) bool {
			_, second := m.runs()
			if second >= 0 {
				m.drop(second)
			}
			return second >= 0
		}},
		{name: "second run last", apply: func(m mutant) bool {
			_, second := m.runs()
			return m.move(second, len(m.Steps)-1)
		}},
		{name: "update doubled", apply: func(m mutant) bool {
			i := m.step(func(s *plan.Step) bool {
				do, ok := s.Do.(plan.Launch)
				return ok && do.Mutates > 0
			})
			if i >= 0 {
				m.Steps = slices.Insert(m.Steps, i, m.Steps[i])
				m.settle()
			}
			return i >= 0
		}},
		{name: "write-back dropped", apply: onWriteBack(func(m mutant, i int) bool {
			m.drop(i)
			return true
		})},
		{name: "write-back moved", apply: onWriteBack(func(m mutant, i int) bool {
			return m.move(i, m.pick(len(m.Steps)))
		})},
		{name: "write-back elsewhere", apply: onWriteBack(func(m mutant, i int) bool {
			do := m.Steps[i].Do.(plan.Copy)
			old := do.Dst.Slot
			do.Dst.Slot = m.Variables[m.pick(len(m.Variables))].Slot
			m.Steps[i].Do = do
			return do.Dst.Slot != old
		})},
		{name: "write-back of something else", apply: onWriteBack(func(m mutant, i int) bool {
			do := m.Steps[i].Do.(plan.Copy)
			old := do.Src.Slot
			do.Src.Slot = m.other(old, true)
			m.Steps[i].Do = do
			return do.Src.Slot != old
		})},
	}
}

// runs is the first and the second run of a node, or -1 twice.
func (m mutant) runs() (first, second int) {
	at := map[graph.NodeID]int{}
	for i, s := range m.Steps {
		if _, ok := s.Do.(plan.Launch); !ok {
			continue
		}
		if first, ok := at[s.Node]; ok {
			return first, i
		}
		at[s.Node] = i
	}
	return -1, -1
}

// move puts a step elsewhere, with addresses and waits that fit: what is wrong
// then is the order alone.
func (m mutant) move(from, to int) bool {
	if from < 0 || from == to {
		return false
	}
	s := m.Steps[from]
	m.Steps = slices.Insert(slices.Delete(m.Steps, from, from+1), to, s)
	for i := 1; i < len(m.Steps); i++ {
		m.Steps[i].Part = max(m.Steps[i].Part, m.Steps[i-1].Part)
	}
	m.settle()
	return true
}

func onWriteBack(change func(m mutant, i int) bool) func(mutant) bool {
	return func(m mutant) bool {
		i := m.step(func(s *plan.Step) bool {
			do, ok := s.Do.(plan.Copy)
			return ok && do.Why == space.WriteBack
		})
		return i >= 0 && change(m, i)
	}
}
