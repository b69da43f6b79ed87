package swap_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/swap"
)

// TestLookAheadRule: a value is away exactly between neighbouring uses on the
// device that are more than K partitions apart (thesis, section 6.3.2), and only
// if it is a computed value or an input of at least MinBytes.
func TestLookAheadRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Synthetic(rapid.IntRange(20, 300).Draw(t, "nodes"))
		k := rapid.IntRange(1, 5).Draw(t, "k")
		p := program.New(m.Graph, m.Fetches, m.Updates)
		for _, ps := range []program.Pass{program.DeadCode(), partition.Pass(partition.DFS, 3),
			placement.Pass(rapid.Bool().Draw(t, "host")), swap.LookAhead(k)} {
			if err := ps.Run(p); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range m.Graph.Nodes() {
			for i := range n.Out {
				check(t, p, n.Value(i), k)
			}
		}
	})
}

// check finds a value's gaps in the dumbest way.
func check(t *rapid.T, p *program.Program, v graph.Value, k int) {
	var want []program.Gap
	last := int32(-1)
	for pos, id := range p.Order {
		n := p.Graph.Node(id)
		uses := n == v.Node
		for _, in := range n.In {
			uses = uses || in == v
		}
		if !uses || p.Place[id] == space.Host {
			continue
		}
		if last >= 0 && int(p.Part[id]-p.Part[p.Order[last]]) > k {
			want = append(want, program.Gap{After: last, Before: int32(pos)})
		}
		last = int32(pos)
	}
	kind := v.Node.Kind
	if kind != graph.KindCompute && kind != graph.KindInput || v.Type().Bytes() < swap.MinBytes ||
		!p.Live[v.Node.ID] {
		want = nil
	}
	got := p.Away[p.ValueIndex(v)]
	if len(got) != len(want) {
		t.Fatalf("%s is away %v, want %v", v, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s is away %v, want %v", v, got, want)
		}
	}
}

func TestBadLookAhead(t *testing.T) {
	m := randgraph.Synthetic(20)
	if err := swap.LookAhead(0).Run(program.New(m.Graph, m.Fetches, m.Updates)); err == nil {
		t.Error("a look-ahead of nothing is accepted")
	}
}
