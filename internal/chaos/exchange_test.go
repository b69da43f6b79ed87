package chaos_test

import (
	"slices"

	"github.com/gomem/gomem/plan"
)

func onSend(change func(m mutant, i int, do *plan.Send) bool) func(mutant) bool {
	return onStep(func(s *plan.Step) bool {
		do, ok := s.Do.(plan.Send)
		return ok && len(do.In) > 0
	}, func(m mutant, i int, s *plan.Step) bool {
		do := s.Do.(plan.Send)
		do.In = slices.Clone(do.In)
		ok := change(m, i, &do)
		s.Do = do
		return ok
	})
}

func onAwait(change func(m mutant, i int, do *plan.Await) bool) func(mutant) bool {
	return onStep(func(s *plan.Step) bool {
		_, ok := s.Do.(plan.Await)
		return ok
	}, func(m mutant, i int, s *plan.Step) bool {
		do := s.Do.(plan.Await)
		ok := change(m, i, &do)
		s.Do = do
		return ok
	})
}

func exchangeKinds() []kind {
	return []kind{
		{name: "send's way", apply: onSend(func(_ mutant, _ int, do *plan.Send) bool {
			do.How.Via += "x"
			return true
		})},
		{name: "send's fold", apply: onSend(func(_ mutant, _ int, do *plan.Send) bool {
			do.How.Fold = (do.How.Fold + 1) % 3
			return true
		})},
		{name: "send's length", apply: onSend(func(m mutant, _ int, do *plan.Send) bool {
			do.Bytes += []int64{-4, 4, -do.Bytes - 1}[m.pick(3)]
			return true
		})},
		{name: "send's place", apply: onSend(func(m mutant, _ int, do *plan.Send) bool {
			old := do.Out.Slot
			do.Out.Slot = m.other(old, m.pick(2) == 0)
			return do.Out.Slot != old
		})},
		{name: "send's operand", apply: onSend(func(m mutant, _ int, do *plan.Send) bool {
			r := &do.In[m.pick(len(do.In))]
			old := r.Slot
			r.Slot = m.other(old, m.pick(2) == 0)
			return r.Slot != old
		})},
		{name: "send's operand dropped", apply: onSend(func(_ mutant, _ int, do *plan.Send) bool {
			do.In = do.In[:len(do.In)-1]
			return true
		})},
		{name: "sends exchanged", apply: sendsExchanged},
		{name: "await's place", apply: onAwait(func(m mutant, _ int, do *plan.Await) bool {
			old := do.At.Slot
			do.At.Slot = m.other(old, m.pick(2) == 0)
			return do.At.Slot != old
		})},
		{name: "await's length", apply: onAwait(func(m mutant, _ int, do *plan.Await) bool {
			do.Bytes += []int64{-4, 4, -do.Bytes - 1}[m.pick(3)]
			return true
		})},
		{name: "written in flight", apply: writtenInFlight},
		{name: "read in flight", apply: readInFlight},
		{name: "second sender", apply: func(m mutant) bool {
			i := m.step(func(s *plan.Step) bool { _, ok := s.Do.(plan.Send); return ok })
			if i < 0 || int(m.Steps[i].Stream) >= len(m.Streams) { // of a mutant: there is none
				return false
			}
			m.Streams = append(m.Streams, plan.Stream{Name: "send too",
				Engine: m.Streams[m.Steps[i].Stream].Engine})
			m.Steps[i].Stream = plan.StreamID(len(m.Streams) - 1)
			return true
		}},
	}
}

// sendsExchanged sends two values in the other order.
func sendsExchanged(m mutant) bool {
	var sends []int
	for i, s := range m.Steps {
		if _, ok := s.Do.(plan.Send); ok {
			sends = append(sends, i)
		}
	}
	order := identity(len(m.Steps))
	if !swap(m, sends, func(i *int) *int { return &order[*i] }) {
		return false
	}
	m.renumber(order)
	return true
}

// flown is a send and the index of its await.
func (m mutant) flown() (at plan.Ref, from, to int) {
	from = m.step(func(s *plan.Step) bool { _, ok := s.Do.(plan.Send); return ok })
	if from < 0 {
		return at, -1, -1
	}
	at = m.Steps[from].Do.(plan.Send).Out
	to = slices.IndexFunc(m.Steps, func(s plan.Step) bool {
		do, ok := s.Do.(plan.Await)
		return ok && do.At == at
	})
	return at, from, to
}

// writtenInFlight has a step between a send and its await write the network's bytes.
func writtenInFlight(m mutant) bool {
	at, from, to := m.flown()
	for i := from + 1; from >= 0 && i < to; i++ {
		switch do := m.Steps[i].Do.(type) {
		case plan.Launch:
			if len(do.Out) == 0 {
				continue
			}
			do.Out = slices.Clone(do.Out)
			do.Out[m.pick(len(do.Out))] = at
			m.Steps[i].Do = do
			return true
		case plan.Copy:
			do.Dst = at
			m.Steps[i].Do = do
			return true
		}
	}
	return false
}

// readInFlight has a reader of what came back read it, unchanged, before it has.
func readInFlight(m mutant) bool {
	at, from, to := m.flown()
	if from < 0 || to < 0 {
		return false
	}
	for i := to + 1; i < len(m.Steps); i++ {
		reads := false
		plan.Each(m.Steps[i].Do, func(id plan.SlotID, _ bool) { reads = reads || id == at.Slot })
		if reads {
			order := slices.Delete(identity(len(m.Steps)), i, i+1)
			m.renumber(slices.Insert(order, to, i))
			return true
		}
	}
	return false
}
