package partition

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner/program"
)

// TestBounded: a bounded partition has no more operations than asked for, and touches no
// more bytes than the neediest operation; none could go on, and the order is what it is
// without bounds.
func TestBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		m := randgraph.Random(pick, 20)
		size := rapid.IntRange(1, 9).Draw(t, "size")
		s := rapid.SampledFrom(Strategies()).Draw(t, "strategy")
		p, free := program.New(m.Graph, m.Fetches, m.Updates), program.New(m.Graph, m.Fetches,
			m.Updates)
		for _, run := range []struct {
			p *program.Program
			program.Pass
		}{{p, program.DeadCode()}, {p, Bounded(s, size)}, {free, program.DeadCode()},
			{free, Pass(s, size)}} {
			if err := run.Run(run.p); err != nil {
				t.Fatal(err)
			}
		}
		var most int64
		for i, id := range p.Order {
			if free.Order[i] != id {
				t.Fatal("another order")
			}
			most = max(most, together(m.Graph, []graph.NodeID{id}))
		}
		var now []graph.NodeID
		for i, id := range p.Order {
			if i > 0 && p.Part[id] != p.Part[p.Order[i-1]] {
				if p.Part[id] != p.Part[p.Order[i-1]]+1 {
					t.Fatalf("partition %d follows %d", p.Part[id], p.Part[p.Order[i-1]])
				}
				if len(now) < size && together(m.Graph, append(now, id)) <= most {
					t.Fatalf("partition %d could have gone on", p.Part[id]-1)
				}
				now = nil
			}
			now = append(now, id)
			if len(now) > size || together(m.Graph, now) > most {
				t.Fatalf("partition %d has %d operations that touch %d bytes", p.Part[id],
					len(now), together(m.Graph, now))
			}
		}
	})
}

// together is the bytes that operations read and make: each computed value, view of a leaf
// and workspace once.
func together(g *graph.Graph, ids []graph.NodeID) (bytes int64) {
	values := map[graph.Value]int64{}
	for _, id := range ids {
		n := g.Node(id)
		bytes += n.Cost().Scratch
		for _, v := range n.In {
			if root, _ := v.Resolve(); !root.Node.Leaf() {
				v = root
			}
			values[v] = v.Type().Bytes()
		}
		for i, t := range n.Out {
			if n.Executes() {
				values[n.Value(i)] = t.Bytes()
			}
		}
	}
	for _, size := range values {
		bytes += size
	}
	return bytes
}
