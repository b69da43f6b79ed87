package lower

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// drawPlan draws a plan without waits that no lowering would make: any steps on any
// streams, slots that are touched by some of the steps of their life, and addresses
// from the arena.
func drawPlan(t *rapid.T) *plan.Plan {
	steps, slots := rapid.IntRange(1, 30).Draw(t, "steps"), rapid.IntRange(1, 15).Draw(t, "slots")
	p := &plan.Plan{Spaces: make([]plan.Space, 2), Window: 2,
		Streams: make([]plan.Stream, rapid.IntRange(1, 4).Draw(t, "streams"))}
	touched := make([]plan.Launch, steps)
	for id := range slots {
		from := rapid.IntRange(0, steps-1).Draw(t, "from")
		s := plan.Slot{From: from, To: rapid.IntRange(from, min(steps-1, from+8)).Draw(t, "to"),
			Space: space.ID(rapid.IntRange(0, 1).Draw(t, "space")),
			Bytes: int64(space.Line) * rapid.Int64Range(1, 4).Draw(t, "lines"),
			Fixed: rapid.IntRange(0, 5).Draw(t, "fixed") == 0}
		if s.Fixed {
			s.From, s.To = 0, steps-1
		}
		p.Slots = append(p.Slots, s)
		for i := s.From; i <= s.To; i++ {
			ref := plan.Ref{Slot: plan.SlotID(id)}
			// the first step writes: nothing reads what is not there
			switch use := rapid.IntRange(0, 2).Draw(t, "use"); {
			case i == s.From && !s.Fixed || use == 0:
				touched[i].Out = append(touched[i].Out, ref)
			case use == 1:
				touched[i].In = append(touched[i].In, ref)
			}
		}
	}
	for _, do := range touched {
		do.Scratch = plan.NoSlot
		part := max(0, p.Parts-1) + rapid.IntRange(0, 1).Draw(t, "part")
		p.Parts = part + 1
		p.Steps = append(p.Steps, plan.Step{Part: part, Do: do,
			Stream: plan.StreamID(rapid.IntRange(0, len(p.Streams)-1).Draw(t, "stream"))})
	}
	k := &Sketch{slots: p.Slots, align: space.Line}
	for id := range p.Spaces {
		p.Spaces[id].Bytes = k.packSpace(space.ID(id), 0, 0)
	}
	return p
}

// before is the transitive closure of the order that streams and waits make, with
// one wait left out: before[j][i] says that step i is done when step j starts.
func before(p *plan.Plan, withoutStep, withoutWait int) [][]bool {
	out := make([][]bool, len(p.Steps))
	latest := map[plan.StreamID]int{}
	for j, s := range p.Steps {
		out[j] = make([]bool, j)
		after := func(i int) {
			out[j][i] = true
			for k, done := range out[i] {
				out[j][k] = out[j][k] || done
			}
		}
		if i, ok := latest[s.Stream]; ok {
			after(i)
		}
		for k, i := range s.Wait {
			if j != withoutStep || k != withoutWait {
				after(i)
			}
		}
		latest[s.Stream] = j
	}
	return out
}

// mustOrder reports whether two steps, the first one earlier, need an order: they
// touch the same bytes and one of them writes, or use one address for two slots,
// or lie two partitions apart.
func mustOrder(p *plan.Plan, i, j int) bool {
	if p.Steps[j].Part-p.Steps[i].Part >= 2 {
		return true
	}
	found := false
	plan.Each(p.Steps[i].Do, func(a plan.SlotID, wa bool) {
		plan.Each(p.Steps[j].Do, func(b plan.SlotID, wb bool) {
			x, y := p.Slots[a], p.Slots[b]
			found = found || (a != b || wa || wb) && x.Space == y.Space &&
				x.Off < y.Off+y.Bytes && y.Off < x.Off+x.Bytes
		})
	})
	return found
}

// unordered is a pair of steps that must be in order and is not.
func unordered(p *plan.Plan, before [][]bool) (i, j int, found bool) {
	for j := range p.Steps {
		for i := range j {
			if !before[j][i] && mustOrder(p, i, j) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// TestWaits: with the waits, the transitive closure orders every pair of steps that
// conflict, and without any one of them it does not.
func TestWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		AddWaits(p)
		if i, j, found := unordered(p, before(p, -1, -1)); found {
			t.Fatalf("steps %d and %d conflict: %+v, %+v", i, j, p.Steps[i], p.Steps[j])
		}
		for j, s := range p.Steps {
			if !slices.IsSorted(s.Wait) {
				t.Fatalf("step %d waits for %v", j, s.Wait)
			}
			for k, w := range s.Wait {
				if p.Steps[w].Stream == s.Stream {
					t.Fatalf("step %d waits for step %d of its own stream", j, w)
				}
				if _, _, found := unordered(p, before(p, j, k)); !found {
					t.Fatalf("step %d need not wait for step %d: %+v", j, w, p.Steps)
				}
			}
		}
	})
}

// TestPreviousOwners: the slots that a slot follows are those that a map of every
// line of memory says.
func TestPreviousOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		got := previousOwners(p.Slots)
		type line struct {
			space space.ID
			at    int64
		}
		owner := map[line]plan.SlotID{}
		order := make([]plan.SlotID, 0, len(p.Slots))
		for i, s := range p.Slots {
			if !s.Fixed {
				order = append(order, plan.SlotID(i))
			}
		}
		slices.SortStableFunc(order, func(a, b plan.SlotID) int {
			return p.Slots[a].From - p.Slots[b].From
		})
		for _, id := range order {
			s := p.Slots[id]
			var want []plan.SlotID
			for at := s.Off; at < s.Off+s.Bytes; at += int64(space.Line) {
				old, ok := owner[line{s.Space, at}]
				if ok && !slices.Contains(want, old) {
					want = append(want, old)
				}
				owner[line{s.Space, at}] = id
			}
			slices.Sort(want)
			if slices.Sort(got[id]); !slices.Equal(got[id], want) {
				t.Fatalf("slot %d follows %v, want %v", id, got[id], want)
			}
		}
	})
}
