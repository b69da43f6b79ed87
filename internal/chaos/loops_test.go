package chaos_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
)

// nested is a training step of loops and branches within one another.
func (h *hunt) nested(t *testing.T, i int) subject {
	t.Helper()
	m := randgraph.Nesting(h.rng.IntN, 4)
	if m.Graph.Err() != nil {
		t.Fatal(m.Graph.Err())
	}
	return newSubject(t, fmt.Sprintf("nested %d", i), m.Graph,
		planner.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
}

// TestMutantsOfLoops is the same as TestMutants for loops and branches within one another, whose
// frames are the plan's workspaces.
func TestMutantsOfLoops(t *testing.T) {
	h := newHunt(6)
	for i := range longtest.Count(16, 300) {
		s := h.nested(t, i)
		list := s.options(t, h.rng)
		h.chase(t, s, s.plan(t, list[i%len(list)]), 40)
	}
}

// loopAt is the launch of a loop or a branch, if a step is one.
func (s subject) loopAt(p *plan.Plan, i int) (do plan.Launch, ok bool) {
	do, ok = p.Steps[i].Do.(plan.Launch)
	name := ""
	if op := s.graph.Node(p.Steps[i].Node).Op; op != nil {
		name = op.Name()
	}
	return do, ok && slices.Contains([]string{"scan", "while", "cond"}, name)
}

// TestFrames: a plan is refused whose loop has a frame that is too small, or one that overlaps
// anything that is there at that time, or whose loop comes before what it reads.
func TestFrames(t *testing.T) {
	h := newHunt(7)
	small, overlapping, early := 0, 0, 0
	for i := range longtest.Count(12, 200) {
		s := h.nested(t, i)
		list := s.options(t, h.rng)
		p := s.plan(t, list[i%len(list)])
		refused := func(what string, at int, change func(m mutant)) {
			q := mutant{clone(p), s.graph, h.rng}
			change(q)
			q.fix()
			if s.verify(q.Plan) == nil {
				t.Errorf("%s, %s: %s is accepted", s.name, p.StepString(at), what)
			}
		}
		for at := range p.Steps {
			do, ok := s.loopAt(p, at)
			if !ok {
				continue
			}
			if do.Scratch != plan.NoSlot {
				refused("a small frame", at, func(m mutant) { m.Slots[do.Scratch].Bytes-- })
				small++
				frame := p.Slots[do.Scratch]
				for k, other := range p.Slots {
					if plan.SlotID(k) == do.Scratch || other.Space != frame.Space ||
						other.Bytes == 0 || other.From > at || other.To < at {
						continue
					}
					refused("an overlap", at, func(m mutant) {
						m.Slots[do.Scratch].Off = other.Off
					})
					overlapping++
				}
			}
			for k := range at {
				if s.makes(p, k, do.In) {
					refused("too early", at, func(m mutant) {
						order := identity(len(m.Steps))
						m.renumber(slices.Insert(slices.Delete(order, at, at+1), k, at))
					})
					early++
				}
			}
		}
	}
	t.Logf("%d small, %d overlapping, %d early", small, overlapping, early)
	if small == 0 || overlapping == 0 || early == 0 {
		t.Error("nothing was tried")
	}
}

// makes says whether a step writes a slot that is read.
func (s subject) makes(p *plan.Plan, k int, in []plan.Ref) (yes bool) {
	plan.Each(p.Steps[k].Do, func(id plan.SlotID, written bool) {
		yes = yes || written && slices.ContainsFunc(in, func(r plan.Ref) bool {
			return r.Slot == id
		})
	})
	return yes
}
