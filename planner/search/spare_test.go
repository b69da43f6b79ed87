package search

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
)

// TestSpare: what is to be left free while an operation runs is left free, in decisions that
// are adapted to it and in those that are made of nothing, and they are right in all else. A
// decision that leaves less is not taken for one that leaves it.
func TestSpare(t *testing.T) {
	found := 0
	rapid.Check(t, func(r *rapid.T) {
		p := randomProgram(r, t)
		pr := New(p, slow())
		peak := solve(r, pr, plenty, Options{}).Peak()
		o := Options{Effort: 60, NoRecompute: rapid.Bool().Draw(r, "no recompute")}
		b := Budget{peak * rapid.Int64Range(40, 100).Draw(r, "percent") / 100, plenty}
		d, err := pr.Solve(context.Background(), b, o)
		if d == nil || err != nil {
			return
		}
		o.Spare = make([]int64, p.Graph.Len())
		for range rapid.IntRange(1, 4).Draw(r, "operations") {
			id := rapid.SampledFrom(p.Order).Draw(r, "operation")
			o.Spare[id] = rapid.Int64Range(0, b.Device).Draw(r, "spare")
		}
		tight, err := pr.Tighten(context.Background(), d, b, o)
		if err != nil {
			r.Fatal(err)
		}
		made, err := pr.Solve(context.Background(), b, o, d)
		if err != nil {
			r.Fatal(err)
		}
		for _, d := range []*Decision{tight, made} {
			if d == nil {
				continue
			}
			found++
			checkDecision(r, p, pr, d)
			checkOptions(r, p, o, d)
			checkSpare(r, p, pr.Schedule(d), o.Spare, b.Device)
		}
	})
	if found == 0 {
		t.Error("nothing has room to spare")
	}
}

// checkSpare: when an operation begins for the first time, so much of a budget is free, or all
// that the operation does not need.
func checkSpare(t rapid.TB, p *program.Program, s *program.Schedule, spare []int64, budget int64) {
	t.Helper()
	ran := make([]bool, len(spare))
	for i, e := range s.Events {
		if e.Copies() || s.Streams[e.Stream].Engine != space.Compute || ran[e.Node] {
			continue
		}
		ran[e.Node] = true
		n := p.Graph.Node(e.Node)
		want := min(spare[e.Node], budget-touched(n))
		if free := budget - liveAt(s, int32(i)); free < want {
			t.Fatalf("%s leaves %d bytes free, not %d", n.Name, free, want)
		}
	}
}

// touched is what an operation needs of a space: operands, each once, results and workspace.
func touched(n *graph.Node) int64 {
	sum := space.Line.Up(n.Cost().Scratch)
	seen := map[graph.Value]bool{}
	for _, v := range n.In {
		root, _ := v.Resolve()
		bytes := root.Type().Bytes()
		if k := root.Node.Kind; k == graph.KindVariable || k == graph.KindConstant {
			bytes, root = v.Type().Bytes(), v // a part of its own
		}
		if !seen[root] {
			seen[root] = true
			sum += space.Line.Up(bytes)
		}
	}
	for k := range n.Out {
		sum += space.Line.Up(n.Out[k].Bytes())
	}
	return sum
}

// liveAt is the bytes of the device that stays have at an event; what is taken over counts once.
func liveAt(s *program.Schedule, i int32) int64 {
	var sum int64
	over := map[program.StayID]bool{}
	for _, y := range s.Stays {
		if y.From == i && y.Over != program.NoStay {
			over[y.Over] = true
		}
	}
	for id, y := range s.Stays {
		if y.Space == space.Device && y.From <= i && i <= y.To && !over[program.StayID(id)] {
			sum += space.Line.Up(y.Bytes)
		}
	}
	return sum
}
