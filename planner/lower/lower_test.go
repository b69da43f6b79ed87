package lower

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/schedule"
)

// issued are, by step, the position of the operation next launched, of those that
// execute: where a copy towards the device is issued.
func issued(p *program.Program, made *plan.Plan) []int {
	out := make([]int, len(made.Steps))
	next := len(p.Order)
	for i := len(made.Steps) - 1; i >= 0; i-- {
		if _, ok := made.Steps[i].Do.(plan.Launch); ok {
			next = int(p.Pos(made.Steps[i].Node))
		}
		out[i] = next
	}
	return out
}

// TestCopiesAreNotTooEarly: a copy towards the device is made for an operation at
// most so many operations, and so many partitions, after it.
func TestCopiesAreNotTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		made := written(t, p, o)
		reach := max(1, (o.Prefetch+o.Partition-1)/o.Partition)
		at := issued(p, made)
		pending := map[plan.SlotID]int{} // by slot: the step that copied to it
		for i, s := range made.Steps {
			switch do := s.Do.(type) {
			case plan.Copy:
				if made.Slots[do.Dst.Slot].Space == space.Device {
					pending[do.Dst.Slot] = i
				}
			case plan.Launch:
				for _, in := range do.In {
					copied, ok := pending[in.Slot]
					if !ok {
						continue
					}
					delete(pending, in.Slot)
					early := made.Steps[copied].Part
					if s.Part-early > reach || operations(p, at[copied], at[i]) > o.Prefetch {
						t.Fatalf("%s is copied %d partitions and %d operations before %s",
							made.Slots[in.Slot].Value, s.Part-early,
							operations(p, at[copied], at[i]), s.Name)
					}
				}
			}
		}
		if len(pending) > 0 {
			t.Fatalf("nobody reads slots %v", pending)
		}
	})
}

// operations is how many operations begin from one position to before another.
func operations(p *program.Program, from, to int) int {
	n := 0
	for pos := from; pos < to; pos++ {
		n += p.Graph.Node(p.Order[pos]).Operations()
	}
	return n
}

// TestSharing: two readers of the same part of a variable find it in one slot if
// their partitions are within the look-ahead, with all readers between, and in two
// otherwise; unshared, only one operation reads a slot.
func TestSharing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		made := written(t, p, o)
		type part struct {
			leaf      graph.Value
			off, size int64
		}
		type seen struct {
			part, node int
			slot       plan.SlotID
		}
		latest := map[part]seen{}
		for _, s := range made.Steps {
			do, ok := s.Do.(plan.Launch)
			if !ok || made.Streams[s.Stream].Engine != space.Compute {
				continue
			}
			for k, v := range p.Graph.Node(s.Node).In {
				root, off := v.Resolve()
				leaf := root.Node.Kind == graph.KindVariable || root.Node.Kind == graph.KindConstant
				if !leaf || p.Place[root.Node.ID] == space.Device {
					continue
				}
				key := part{root, off, v.Type().Bytes()}
				now := seen{s.Part, int(s.Node), do.In[k].Slot}
				before, ok := latest[key]
				same := ok && (before.node == now.node ||
					!o.Unshared && now.part-before.part <= o.Lookahead)
				if same != (before.slot == now.slot && ok) || do.In[k].Off != 0 {
					t.Fatalf("%s reads %s from %+v after %+v: %+v", s.Name, v, now, before, o)
				}
				latest[key] = now
			}
		}
	})
}

// TestVariablesHaveOneAddress: whatever a target computes, and however its copies run, the
// variables and constants are where all plans of the graph have them.
func TestVariablesHaveOneAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, d := drawModel(t), drawDecisions(t)
		var want []plan.Slot
		for _, target := range []struct {
			fetches []graph.Value
			updates []graph.NodeID
		}{{m.Fetches, m.Updates}, {m.Fetches[:1], nil},
			{m.Fetches, m.Updates[:min(1, len(m.Updates))]}} {
			p := d.decide(t, program.New(m.Graph, target.fetches, target.updates))
			var have []plan.Slot
			made := written(t, p, d.drawTuning(t))
			for _, b := range made.Variables {
				s := made.Slots[b.Slot]
				have = append(have, plan.Slot{Space: s.Space, Off: s.Off, Value: b.Name})
			}
			if want == nil {
				want = have
			}
			for i, s := range have {
				if len(have) != len(want) || s.Space != want[i].Space || s.Off != want[i].Off ||
					s.Value != want[i].Value {
					t.Fatalf("variables are at %+v, and at %+v", have, want)
				}
			}
		}
	})
}

// TestChainsStayOnAStream: a chain runs on one of several compute streams.
func TestChainsStayOnAStream(t *testing.T) {
	for _, s := range randgraph.Shapes()[:1] {
		m := s.Build(50)
		p := decisions{by: partition.BreadthFirst, lookahead: 1}.decide(t,
			program.New(m.Graph, m.Fetches, m.Updates))
		streams := map[plan.StreamID]int{}
		for _, step := range written(t, p, schedule.Options{Streams: 3, Lookahead: 1}).Steps {
			if _, ok := step.Do.(plan.Launch); ok {
				streams[step.Stream]++
			}
		}
		if len(streams) != 1 {
			t.Errorf("a %s runs on streams %v", s.Name, streams)
		}
	}
}

// TestInPlace: a result has the slot of an operand only if the operation allows it
// and nothing on the device needs the operand's bytes afterwards.
func TestInPlace(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		p, o := drawProgram(t)
		made := written(t, p, o)
		for i, s := range made.Steps {
			do, ok := s.Do.(plan.Launch)
			if !ok || len(do.Out) == 0 {
				continue
			}
			n := p.Graph.Node(s.Node)
			for k, in := range do.In {
				if in.Slot != do.Out[0].Slot {
					continue
				}
				found++
				op, allowed := n.Op.(graph.InPlacer)
				if !allowed || len(op.InPlace(n.InTypes(), n.Out)) == 0 {
					t.Fatalf("%s may not work in place", n.Name)
				}
				readLater(t, p, made, i, bytesOf(n.In[k]), in.Slot)
			}
		}
	})
	if found == 0 {
		t.Error("nothing works in place")
	}
}

// readLater fails if a step after another reads a value from a slot.
func readLater(t *rapid.T, p *program.Program, made *plan.Plan, after int, v graph.Value,
	slot plan.SlotID) {
	for _, s := range made.Steps[after+1:] {
		do, ok := s.Do.(plan.Launch)
		if !ok {
			continue
		}
		for k, in := range do.In {
			if in.Slot == slot && bytesOf(p.Graph.Node(s.Node).In[k]) == v {
				t.Fatalf("%s reads %s, which is gone", s.Name, v)
			}
		}
	}
}
