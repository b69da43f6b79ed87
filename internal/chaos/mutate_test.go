package chaos_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
)

// mutant is a plan of its own in which something is changed.
type mutant struct {
	*plan.Plan
	graph *graph.Graph
	rng   *rand.Rand
}

// clone copies whatever a mutation may change.
func clone(p *plan.Plan) *plan.Plan {
	q := *p
	q.Spaces, q.Streams = slices.Clone(p.Spaces), slices.Clone(p.Streams)
	q.Slots, q.Steps = slices.Clone(p.Slots), slices.Clone(p.Steps)
	q.Feeds, q.Variables = slices.Clone(p.Feeds), slices.Clone(p.Variables)
	q.Fetches = slices.Clone(p.Fetches)
	return &q
}

// kind is a kind of mutation; apply reports whether there was what it changes.
type kind struct {
	name     string
	harmless bool // it is never refused
	apply    func(m mutant) bool
}

func (m mutant) pick(n int) int { return m.rng.IntN(n) }

// step is a random step for which ok holds, or -1.
func (m mutant) step(ok func(s *plan.Step) bool) int {
	for range 60 {
		if i := m.pick(len(m.Steps)); ok(&m.Steps[i]) {
			return i
		}
	}
	return -1
}

func (m mutant) slot(ok func(s *plan.Slot) bool) int {
	for range 60 {
		if i := m.pick(len(m.Slots)); ok(&m.Slots[i]) {
			return i
		}
	}
	return -1
}

func anySlot(*plan.Slot) bool { return true }

func moving(s *plan.Slot) bool { return !s.Fixed }

// onSlot changes a random slot.
func onSlot(ok func(s *plan.Slot) bool, change func(m mutant, s *plan.Slot)) func(mutant) bool {
	return func(m mutant) bool {
		i := m.slot(ok)
		if i < 0 {
			return false
		}
		before := m.Slots[i]
		change(m, &m.Slots[i])
		after := m.Slots[i]
		return before.Space != after.Space || before.Off != after.Off ||
			before.Bytes != after.Bytes || before.From != after.From || before.To != after.To ||
			before.Fixed != after.Fixed || before.Value != after.Value ||
			before.Type.String() != after.Type.String()
	}
}

// onStep changes a random step.
func onStep(ok func(s *plan.Step) bool, change func(m mutant, i int, s *plan.Step) bool,
) func(mutant) bool {
	return func(m mutant) bool {
		i := m.step(ok)
		return i >= 0 && change(m, i, &m.Steps[i])
	}
}

func anyStep(*plan.Step) bool { return true }

func waits(s *plan.Step) bool { return len(s.Wait) > 0 }

// onLaunch changes a random launch that has so many operands and results.
func onLaunch(in, out int, change func(m mutant, do *plan.Launch) bool) func(mutant) bool {
	return onStep(func(s *plan.Step) bool {
		do, ok := s.Do.(plan.Launch)
		return ok && len(do.In) >= in && len(do.Out) >= out
	}, func(m mutant, _ int, s *plan.Step) bool {
		do := s.Do.(plan.Launch)
		do.In, do.Out = slices.Clone(do.In), slices.Clone(do.Out)
		ok := change(m, &do)
		s.Do = do
		return ok
	})
}

// onScratch changes a random launch that has scratch.
func onScratch(change func(m mutant, do *plan.Launch) bool) func(mutant) bool {
	return onStep(func(s *plan.Step) bool {
		do, ok := s.Do.(plan.Launch)
		return ok && do.Scratch != plan.NoSlot
	}, func(m mutant, _ int, s *plan.Step) bool {
		do := s.Do.(plan.Launch)
		ok := change(m, &do)
		s.Do = do
		return ok
	})
}

func onCopy(change func(m mutant, i int, do *plan.Copy) bool) func(mutant) bool {
	return onStep(func(s *plan.Step) bool {
		_, ok := s.Do.(plan.Copy)
		return ok
	}, func(m mutant, i int, s *plan.Step) bool {
		do := s.Do.(plan.Copy)
		ok := change(m, i, &do)
		s.Do = do
		return ok
	})
}

// renumber moves the steps to another order: order[k] is the old index of step k;
// a step that is not in it is dropped. Waits that would point forward go too;
// lives go along with the steps that used the slots.
func (m mutant) renumber(order []int) {
	to := make([]int, len(m.Steps))
	for i := range to {
		to[i] = -1
	}
	for k, old := range order {
		to[old] = k
	}
	steps := make([]plan.Step, 0, len(order))
	for k, old := range order {
		s := m.Steps[old]
		var wait []int
		for _, w := range s.Wait {
			if w >= 0 && w < len(to) && to[w] >= 0 && to[w] < k {
				wait = append(wait, to[w])
			}
		}
		slices.Sort(wait)
		s.Wait = wait
		steps = append(steps, s)
	}
	last := len(m.Steps) - 1
	m.Steps = steps
	first, final := make([]int, len(m.Slots)), make([]int, len(m.Slots))
	for i := range first {
		first[i] = math.MaxInt
	}
	for i, s := range steps {
		plan.Each(s.Do, func(id plan.SlotID, _ bool) {
			first[id], final[id] = min(first[id], i), max(final[id], i)
		})
	}
	for i := range m.Slots {
		s := &m.Slots[i]
		if s.To == last {
			final[i] = len(steps) - 1
		}
		if s.From == 0 {
			first[i] = 0
		}
		s.From, s.To = min(first[i], len(steps)-1), final[i]
		s.From = min(s.From, s.To)
	}
}

// fix makes the header say the peak that the slots have.
func (m mutant) fix() {
	for i := range m.Spaces {
		m.Spaces[i].Bytes = 0
	}
	for _, s := range m.Slots {
		if int(s.Space) < len(m.Spaces) && s.Off >= 0 && s.Bytes >= 0 && s.Off < 1<<40 &&
			s.Bytes < 1<<40 {
			m.Spaces[s.Space].Bytes = max(m.Spaces[s.Space].Bytes, s.Off+s.Bytes)
		}
	}
}

func identity(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// drop leaves a step out.
func (m mutant) drop(i int) { m.renumber(slices.Delete(identity(len(m.Steps)), i, i+1)) }

// other is a slot other than id; of the same size if like is set.
func (m mutant) other(id plan.SlotID, like bool) plan.SlotID {
	i := m.slot(func(s *plan.Slot) bool { return !like || s.Bytes == m.Slots[id].Bytes })
	if i < 0 {
		return id
	}
	return plan.SlotID(i)
}

// swap exchanges what two of a list's entries say.
func swap[T, F any](m mutant, list []T, field func(*T) *F) bool {
	if len(list) < 2 {
		return false
	}
	i := m.pick(len(list))
	j := (i + 1 + m.pick(len(list)-1)) % len(list)
	a, b := field(&list[i]), field(&list[j])
	*a, *b = *b, *a
	return true
}

func bindings(m mutant) *[]plan.Binding {
	if m.pick(2) == 0 && len(m.Feeds) > 0 {
		return &m.Feeds
	}
	return &m.Variables
}

// kinds are all of them.
func kinds() []kind {
	list := slices.Concat(waitKinds(), orderKinds(), slotKinds(), copyKinds(), launchKinds(),
		exchangeKinds(), headerKinds(), bindingKinds(), variantKinds())
	slices.SortFunc(list, func(a, b kind) int { return cmp.Compare(a.name, b.name) })
	return list
}
