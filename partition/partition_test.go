package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/planner/program"
)

// op is an operation with a name of its own and any operands.
type op struct{ name string }

func (o op) Name() string { return o.name }
func (op) Infer([]graph.Type) ([]graph.Type, error) {
	return []graph.Type{tensor.Of(graph.F32)}, nil
}
func (op) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }
func (op) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

// build makes a graph from lines "d: b c", in order; a node without operands
// reads the input.
func build(text string) (*graph.Graph, graph.Value) {
	g := graph.New()
	input := g.Input("input", tensor.Of(graph.F32))
	values := map[string]graph.Value{}
	var last graph.Value
	for line := range strings.Lines(text) {
		name, operands, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		in := []graph.Value{}
		for _, o := range strings.Fields(operands) {
			in = append(in, values[o])
		}
		if len(in) == 0 {
			in = append(in, input)
		}
		last = g.Apply(op{name}, in...).Value(0)
		values[name] = last
	}
	return g, last
}

// run partitions a graph and prints the partitions: "a b | c d".
func run(t *testing.T, s Strategy, size int, text string) string {
	t.Helper()
	g, last := build(text)
	p := program.New(g, []graph.Value{last}, nil)
	if err := program.DeadCode().Run(p); err != nil {
		t.Fatal(err)
	}
	if err := Pass(s, size).Run(p); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, id := range p.Order {
		if i > 0 && p.Part[id] != p.Part[p.Order[i-1]] {
			b.WriteString("| ")
		}
		b.WriteString(g.Node(id).Name + " ")
	}
	return strings.TrimSpace(b.String())
}

// experts is figure 6.3's shape: a gate, two experts of two operations each,
// and their combination.
const experts = `
	gate:
	a1: gate
	b1: gate
	a2: a1
	b2: b1
	join: a2 b2`

// TestPaperOrders: what each strategy of section 6.3.4 visits, by hand.
func TestPaperOrders(t *testing.T) {
	for _, c := range []struct {
		strategy Strategy
		size     int
		graph    string
		want     string
	}{
		// Algorithm 4 pops the node that became ready last: b1 before a1, and b2
		// before a1, since it became ready later.
		{DFS, 2, experts, "gate b1 | b2 a1 | a2 join"},
		// Breadth first goes level by level.
		{BreadthFirst, 2, experts, "gate a1 | b1 a2 | b2 join"},
		// By depth, too: both first halves before both second halves.
		{Depth, 2, experts, "gate a1 | b1 a2 | b2 join"},
		// Both experts are equally deep: the first created is visited first, and
		// its chain followed to the end.
		{DFSDepth, 2, experts, "gate a1 | a2 b1 | b2 join"},
		// A long and a short branch: depth visits the long one first.
		{DFSDepth, 1, "s:\nshort: s\nl1: s\nl2: l1\nend: short l2", "s | l1 | l2 | short | end"},
		{Depth, 1, "s:\nshort: s\nl1: s\nl2: l1\nend: short l2", "s | l1 | short | l2 | end"},
		{DFS, 0, "s:\nshort: s\nl1: s\nl2: l1\nend: short l2", "s l1 l2 short end"},
		// The last partition may be short; two initial nodes start with the first.
		{DFS, 4, "a:\nb:\nc: a b\nd: c\ne: d", "a b c d | e"},
	} {
		if got := run(t, c.strategy, c.size, c.graph); got != c.want {
			t.Errorf("%s, size %d: %s\nwant %s", c.strategy, c.size, got, c.want)
		}
	}
}

// TestPartitions: every strategy visits every live operation once, after its
// predecessors, in partitions of the size asked for.
func TestPartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Synthetic(rapid.IntRange(10, 300).Draw(t, "nodes"))
		size := rapid.IntRange(0, 30).Draw(t, "size")
		s := rapid.SampledFrom(append(Strategies(), BreadthFirst)).Draw(t, "strategy")
		p := program.New(m.Graph, m.Fetches, m.Updates)
		if err := program.DeadCode().Run(p); err != nil {
			t.Fatal(err)
		}
		if err := Pass(s, size).Run(p); err != nil {
			t.Fatal(err)
		}
		checkOrder(t, p)
		count := map[int32]int{}
		for _, id := range p.Order {
			count[p.Part[id]]++
		}
		for part, n := range count {
			if size > 0 && n != size && int(part) != p.Parts()-1 || size == 0 && part != 0 {
				t.Fatalf("partition %d has %d operations, want %d", part, n, size)
			}
		}
	})
}

func checkOrder(t *rapid.T, p *program.Program) {
	succ := p.Graph.Successors(p.Live)
	for i, id := range p.Order {
		if slices.Contains(p.Order[:i], id) {
			t.Fatalf("node %d is visited twice", id)
		}
		for _, s := range succ.Of(id) {
			if p.Pos(s) <= int32(i) {
				t.Fatalf("node %d is visited before %d", s, id)
			}
		}
	}
	for _, n := range p.Graph.Nodes() {
		if visited := p.Pos(n.ID) >= 0; visited != (p.Live[n.ID] && !n.Leaf()) {
			t.Fatalf("%s: visited %v", n.Name, visited)
		}
	}
}

func TestParse(t *testing.T) {
	for _, s := range Strategies() {
		if got, err := Parse(string(s)); got != s || err != nil {
			t.Errorf("%s reads as %s, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "bfs", "DFS", string(BreadthFirst)} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is a strategy", bad)
		}
	}
}

func ExampleParse() {
	_, err := Parse("random")
	fmt.Println(err)
	// Output: unknown strategy "random": want one of dfs, depth, dfs-depth
}

// compound is an operation that stands for several.
type compound struct {
	op
	operations int
}

func (c compound) Operations() int { return c.operations }

// TestCompoundsCountAsManyOperations: partitions and depths are those of the
// operations that a compound stands for.
func TestCompoundsCountAsManyOperations(t *testing.T) {
	g := graph.New()
	v := g.Input("input", tensor.Of(graph.F32))
	for i, operations := range []int{1, 2, 1, 5, 1, 1} {
		v = g.Apply(compound{op{fmt.Sprint(i)}, operations}, v).Value(0)
	}
	p := program.New(g, []graph.Value{v}, nil)
	if err := program.DeadCode().Run(p); err != nil {
		t.Fatal(err)
	}
	if err := Pass(DFS, 3).Run(p); err != nil {
		t.Fatal(err)
	}
	if want := []int32{-1, 0, 0, 1, 1, 2, 2}; !slices.Equal(p.Part, want) {
		t.Errorf("partitions %v, want %v", p.Part, want)
	}
	if d := depths(p, g.Successors(p.Live)); d[1] != 10 {
		t.Errorf("the first operation is %d from the end, want 10", d[1])
	}
}
