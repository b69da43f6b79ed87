package fuse

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
)

// closure is, by node, the nodes that it depends on and itself, by plain union.
func closure(g *graph.Graph) []map[graph.NodeID]bool {
	out := make([]map[graph.NodeID]bool, g.Len())
	for _, n := range g.Nodes() {
		out[n.ID] = map[graph.NodeID]bool{n.ID: true}
		for _, v := range n.In {
			for id := range out[v.Node.ID] {
				out[n.ID][id] = true
			}
		}
	}
	return out
}

// everything marks all nodes as live.
func everything(g *graph.Graph) []bool {
	live := make([]bool, g.Len())
	for i := range live {
		live[i] = true
	}
	return live
}

// TestReadiness: on graphs small enough for its effort, the answers are those of
// the transitive closure.
func TestReadiness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		g := randgraph.Any(pick, 12).Graph
		r, needs := newReadiness(g, everything(g)), closure(g)
		for _, n := range g.Nodes() {
			for _, on := range g.Nodes() {
				if n.Kind != graph.KindCompute || on.Kind != graph.KindCompute {
					continue // nobody asks
				}
				if got := r.depends(n.ID, on.ID); got != needs[n.ID][on.ID] {
					t.Fatalf("%s depends on %s: %v", n.Name, on.Name, got)
				}
			}
		}
	})
}

// TestReadinessOfShapes: so they are where there is much of something.
func TestReadinessOfShapes(t *testing.T) {
	for _, s := range randgraph.Shapes() {
		g := s.Build(200).Graph
		r, needs := newReadiness(g, everything(g)), closure(g)
		for i := 0; i < g.Len(); i += 7 {
			for j := 0; j <= i; j += 3 {
				n, on := g.Node(graph.NodeID(i)), g.Node(graph.NodeID(j))
				if n.Kind != graph.KindCompute || on.Kind != graph.KindCompute {
					continue
				}
				if got := r.depends(n.ID, on.ID); got != needs[n.ID][on.ID] {
					t.Fatalf("%s: %s depends on %s: %v", s.Name, n.Name, on.Name, got)
				}
			}
		}
	}
}

// TestEffort: a question finds no more nodes than its effort allows, however many
// there are to find.
func TestEffort(t *testing.T) {
	g := graph.New()
	x := g.Input("x", graph.Type{DType: graph.F32})
	apply := func(in ...graph.Value) graph.Value { return g.Apply(sum{}, in...).Value(0) }
	// two rows of nodes that are read by all that follow in their row, and never meet
	a, b := []graph.Value{apply(x)}, []graph.Value{apply(x)}
	for range 3 * effort {
		a = append(a, apply(a[max(0, len(a)-3):]...))
		b = append(b, apply(b[max(0, len(b)-3):]...))
	}
	r := newReadiness(g, everything(g))
	last, first := b[len(b)-1].Node.ID, a[0].Node.ID
	if r.depends(last, first) {
		t.Error("one row depends on the other")
	}
	if n := max(len(r.down.queue), len(r.up.queue)); n > effort+1 {
		t.Errorf("%d nodes are found", n)
	}
	if r.down.next(func(graph.NodeID) int { return 1 }); len(r.down.queue) < effort/4 {
		t.Errorf("it ended after %d nodes", len(r.down.queue))
	}
}

// sum stands for an operation.
type sum struct{}

func (sum) Name() string                                 { return "sum" }
func (sum) Infer(in []graph.Type) ([]graph.Type, error)  { return in[:1], nil }
func (sum) Cost(_, _ []graph.Type) graph.Cost            { return graph.Cost{} }
func (sum) VJP(*graph.Node, []graph.Value) []graph.Value { return nil }
