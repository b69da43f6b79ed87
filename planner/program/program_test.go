package program_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner/program"
)

// drawProgram draws a random program that has been partitioned.
func drawProgram(t *rapid.T) *program.Program {
	m := randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 20)
	p := program.New(m.Graph, m.Fetches, m.Updates)
	strategy := rapid.SampledFrom(partition.Strategies()).Draw(t, "strategy")
	_, err := program.Run(context.Background(), p, []program.Pass{program.DeadCode(),
		partition.Pass(strategy, rapid.IntRange(1, 9).Draw(t, "partition"))})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// owner walks through views to what they read in the end.
func owner(v graph.Value) graph.Value {
	for v.Node.Op != nil {
		if _, ok := v.Node.Op.(graph.Viewer); !ok {
			break
		}
		v = v.Node.In[0]
	}
	return v
}

// TestUses: every value is used where a plain look at all operations finds it, and
// values are numbered one after the other.
func TestUses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, next := drawProgram(t), 0
		uses := p.Uses()
		for _, n := range p.Graph.Nodes() {
			for i := range n.Out {
				v := n.Value(i)
				if p.ValueIndex(v) != next {
					t.Fatalf("%s is value %d, want %d", v, p.ValueIndex(v), next)
				}
				next++
				var want []int32
				for pos, id := range p.Order {
					reader := p.Graph.Node(id)
					reads := func(u graph.Value) bool { return owner(u) == v }
					if reader.Executes() && (reader == n || slices.ContainsFunc(reader.In, reads)) {
						want = append(want, int32(pos))
					}
				}
				if got := uses[p.ValueIndex(v)]; !slices.Equal(got, want) {
					t.Fatalf("%s is used at %v, want %v", v, got, want)
				}
			}
		}
		if p.Values() != next || len(uses) != next {
			t.Fatalf("%d values, want %d", p.Values(), next)
		}
	})
}

// TestUsesFollowTheOrder: what was asked of one order is no answer about another.
func TestUsesFollowTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		p.Uses()
		p.SetOrder(p.Order[:len(p.Order)/2])
		for v, uses := range p.Uses() {
			if n := len(uses); n > 0 && int(uses[n-1]) >= len(p.Order) {
				t.Fatalf("value %d is used at %d of %d", v, uses[n-1], len(p.Order))
			}
		}
	})
}

// TestPositions: a node's position is its index in the order, and partitions are
// counted to the last.
func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		last := int32(-1)
		for _, n := range p.Graph.Nodes() {
			if want := int32(slices.Index(p.Order, n.ID)); p.Pos(n.ID) != want {
				t.Fatalf("%s is at %d, want %d", n.Name, p.Pos(n.ID), want)
			}
			last = max(last, p.Part[n.ID])
		}
		if p.Parts() != int(last)+1 {
			t.Fatalf("%d partitions, the last is %d", p.Parts(), last)
		}
	})
	m := randgraph.Synthetic(20)
	if n := program.New(m.Graph, m.Fetches, nil).Parts(); n != 0 {
		t.Errorf("%d partitions before any is made", n)
	}
}

// TestSuccessorsOfWhatLives: the edges are those of the nodes that live now, also
// if others have lived before, in the same table.
func TestSuccessorsOfWhatLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		for range 3 {
			got, want := p.Successors(), p.Graph.Successors(p.Live)
			for id := range p.Live {
				a, b := got.Of(graph.NodeID(id)), want.Of(graph.NodeID(id))
				if !slices.Equal(a, b) {
					t.Fatalf("node %d precedes %v, want %v", id, a, b)
				}
			}
			p.Live[rapid.IntRange(0, len(p.Live)-1).Draw(t, "node")] = rapid.Bool().Draw(t, "lives")
		}
	})
}

// TestEveryDisorderIsFound: no exchange of two nodes passes the check, unless the
// result is an order all the same, and partitions begin with the first.
func TestEveryDisorderIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		i := rapid.IntRange(0, len(p.Order)-1).Draw(t, "i")
		j := rapid.IntRange(0, len(p.Order)-1).Draw(t, "j")
		order := slices.Clone(p.Order)
		order[i], order[j] = order[j], order[i]
		parts := make([]int32, len(order)) // which stay where they are
		for k, id := range p.Order {
			parts[k] = p.Part[id]
		}
		broken := false
		for k, id := range order {
			p.Part[id] = parts[k]
			for _, before := range p.Graph.Successors(p.Live).Of(id) {
				broken = broken || slices.Contains(order[:k], before)
			}
		}
		_, err := program.Run(context.Background(), p, []program.Pass{{Name: "exchange",
			Run: func(p *program.Program) error { p.SetOrder(order); return nil }}})
		if (err != nil) != broken {
			t.Fatalf("%v with %d and %d exchanged: %v", p.Order, i, j, err)
		}
	})
}

// TestChecksNameWhatIsWrong: tables that cannot be are refused with the node.
func TestChecksNameWhatIsWrong(t *testing.T) {
	for want, spoil := range map[string]func(p *program.Program){
		"of partition 1 follows partition 0": func(p *program.Program) {
			for _, id := range p.Order {
				p.Part[id]++
			}
		},
		"x may not be at position 0": func(p *program.Program) {
			p.Order[0] = p.Graph.Inputs()[0].ID
		},
		"is live but has no position": func(p *program.Program) { p.SetOrder(p.Order[:3]) },
		"may not be at position 2":    func(p *program.Program) { p.Live[p.Order[2]] = false },
	} {
		m := randgraph.Synthetic(60)
		p := program.New(m.Graph, m.Fetches, m.Updates)
		_, err := program.Run(context.Background(), p, []program.Pass{program.DeadCode(),
			partition.Pass(partition.DFS, 5),
			{Name: "spoiler", Run: func(p *program.Program) error { spoil(p); return nil }}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// TestDeadCodeRefuses: what cannot be computed is refused by name.
func TestDeadCodeRefuses(t *testing.T) {
	m := randgraph.Synthetic(20)
	other := graph.New().Input("elsewhere", tensor.Of(graph.F32))
	for want, fetches := range map[string][]graph.Value{
		"a fetch is no value":             {{}},
		"elsewhere belongs to another":    {other},
		"fetch x is a input":              {m.Inputs[0]},
		"only computed values can be fet": {m.Graph.Variables()[0].Value(0)},
	} {
		err := program.DeadCode().Run(program.New(m.Graph, fetches, nil))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// TestAnew: a program anew has the same values and edges, and nothing of what was decided; what
// is decided then does not change the first.
func TestAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		order := slices.Clone(p.Order)
		q := p.Anew()
		if q.Live != nil || q.Part != nil || q.Order != nil || q.Values() != p.Values() {
			t.Fatal("something is decided, or missing")
		}
		if _, err := program.Run(context.Background(), q, []program.Pass{program.DeadCode(),
			partition.Pass(partition.BreadthFirst, 0)}); err != nil {
			t.Fatal(err)
		}
		own := p.Graph.Successors(q.Live)
		for _, n := range p.Graph.Nodes() {
			if !slices.Equal(q.Successors().Of(n.ID), own.Of(n.ID)) {
				t.Fatalf("%s has other successors", n.Name)
			}
		}
		if !slices.Equal(p.Order, order) {
			t.Fatal("the first has another order")
		}
	})
}
