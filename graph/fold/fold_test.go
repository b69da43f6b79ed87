package fold_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/fold"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
)

// rewrite is Fold or unfold.
type rewrite func(func(graph.Op) bool, *graph.Graph, []graph.Value, []graph.NodeID) (*fold.Result,
	error)

func all(graph.Op) bool  { return true }
func none(graph.Op) bool { return false }

// unfold unfolds all constants.
func unfold(runs func(graph.Op) bool, g *graph.Graph, fetches []graph.Value,
	updates []graph.NodeID) (*fold.Result, error) {
	return fold.Unfold(runs, func(*graph.Node) bool { return true }, g, fetches, updates)
}

// rewritten is a step after a rewriting.
func rewritten(t rapid.TB, by rewrite, runs func(graph.Op) bool, m *randgraph.Model) (
	*randgraph.Model, *fold.Result) {
	t.Helper()
	r, err := by(runs, m.Graph, m.Fetches, m.Updates)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Graph.Verify(); err != nil {
		t.Fatal(err)
	}
	out := &randgraph.Model{Graph: r.Graph}
	for _, v := range m.Fetches {
		w := r.Value(v)
		if !w.Type().Equal(v.Type()) {
			t.Fatalf("%s is %s, was %s", v, w.Type(), v.Type())
		}
		out.Fetches = append(out.Fetches, w)
	}
	for _, id := range m.Updates {
		out.Updates = append(out.Updates, r.Node(id).ID)
	}
	return out, r
}

// trial is what two steps leave behind.
func trial(t rapid.TB, m *randgraph.Model) []byte {
	t.Helper()
	out, err := reference.Trial(m.Graph, m.Fetches, m.Updates, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// depends reports of every node whether it depends on what is not known before the first step.
func depends(g *graph.Graph) []bool {
	out := make([]bool, g.Len())
	for _, n := range g.Nodes() {
		out[n.ID] = n.Kind != graph.KindConstant && n.Kind != graph.KindCompute ||
			slices.ContainsFunc(n.In, func(v graph.Value) bool { return out[v.Node.ID] })
	}
	return out
}

// unread are the constants that nobody needs.
func unread(m *randgraph.Model) (names []string) {
	roots := slices.Clone(m.Updates)
	for _, v := range m.Fetches {
		roots = append(roots, v.Node.ID)
	}
	for id, live := range m.Graph.Ancestors(roots) {
		if n := m.Graph.Node(graph.NodeID(id)); n.Kind == graph.KindConstant && !live {
			names = append(names, n.Name)
		}
	}
	return names
}

// TestLaws: of any graph that is folded, unfolded or both, two steps have the same bits and leave
// the same variables; inputs and variables are those that were; no constant is there that nobody
// reads; and nothing is folded that depends on a variable or a feed, of which draws are made.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		model := randgraph.Constants
		if pick(4) == 0 {
			model = randgraph.Any
		}
		m := model(pick, 8)
		if m.Graph.Err() != nil {
			t.Fatal(m.Graph.Err())
		}
		want := trial(t, m)
		for _, list := range [][]rewrite{{fold.Fold}, {unfold}, {fold.Fold, unfold}} {
			now := m
			for _, by := range list {
				before := now
				var r *fold.Result
				now, r = rewritten(t, by, all, now)
				folded(t, before.Graph, r)
				if !slices.EqualFunc(states(before.Graph), states(now.Graph),
					func(a, b *graph.Node) bool { return a.Name == b.Name }) {
					t.Fatal("inputs or variables are others")
				}
			}
			if !bytes.Equal(trial(t, now), want) {
				t.Fatal("the bits are others")
			}
			if names := unread(now); len(names) > 0 {
				t.Fatalf("nobody reads %v", names)
			}
		}
	})
}

// folded fails if what became a constant depends on what is not known.
func folded(t rapid.TB, g *graph.Graph, r *fold.Result) {
	t.Helper()
	on := depends(g)
	for _, n := range g.Nodes() {
		for i := range n.Out {
			v := r.Value(n.Value(i))
			if v.Valid() && v.Node.Kind == graph.KindConstant && on[n.ID] {
				t.Fatalf("%s is folded", n.Name)
			}
		}
	}
}

// states are inputs and variables.
func states(g *graph.Graph) []*graph.Node { return append(g.Inputs(), g.Variables()...) }

// TestFoldedIsFolded: nothing is left to fold, and what is unfolded stays so.
func TestFoldedIsFolded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Constants(func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		}, 8)
		for _, list := range [][]rewrite{{fold.Fold, fold.Fold},
			{unfold, unfold}, {fold.Fold, unfold, fold.Fold}} {
			now, r := m, (*fold.Result)(nil)
			for _, by := range list {
				now, r = rewritten(t, by, all, now)
			}
			if len(r.Changes) > 0 {
				t.Fatalf("it changes again: %v", r.Changes)
			}
		}
	})
}

// TestNoDevice: where the device has no operation to these bits, nothing changes.
func TestNoDevice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randgraph.Constants(func(n int) int {
			return rapid.IntRange(0, n-1).Draw(t, "pick")
		}, 8)
		_, r := rewritten(t, fold.Fold, none, m)
		if len(r.Changes) > 0 {
			t.Fatalf("folded: %v", r.Changes)
		}
		_, r = rewritten(t, unfold, none, m)
		for _, c := range r.Changes {
			if c.How != "" {
				t.Fatalf("unfolded: %v", c)
			}
		}
	})
}

// step is a model of one value.
func step(v ...graph.Value) *randgraph.Model {
	return &randgraph.Model{Graph: v[0].Graph(), Fetches: v}
}

func f32(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }

// table is a constant by its elements.
func table(g *graph.Graph, of func(row, col int) float32, rows, cols int) graph.Value {
	x := tensor.New(f32(rows, cols))
	for i := range x.F32() {
		x.F32()[i] = of(i/cols, i%cols)
	}
	return g.Constant("table", x)
}

// one is what is added to an input in a row of a table, f32[64 64].
type one struct {
	name, want string
	build      func(g *graph.Graph) graph.Value
}

// changes fails unless rewriting the sum changes what a row says.
func (c one) changes(t *testing.T, by rewrite) {
	t.Run(c.name, func(t *testing.T) {
		g := graph.New()
		m := step(ops.Add(g.Input("x", f32(64, 64)), c.build(g)))
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		_, r := rewritten(t, by, all, m)
		var list []string
		for _, x := range r.Changes {
			list = append(list, x.String())
		}
		if got := strings.Join(list, "; "); got != c.want {
			t.Errorf("the changes are %q, want %q", got, c.want)
		}
	})
}

func number(row, col int) float32 { return float32(row*64 + col) }

// TestWhatIsFolded: a row for each rule.
func TestWhatIsFolded(t *testing.T) {
	for _, c := range []one{
		{"an operation", "tanh, 16384 bytes: folded", func(g *graph.Graph) graph.Value {
			return ops.Tanh(table(g, number, 64, 64))
		}},
		{"through a view", "tanh, 16384 bytes: folded", func(g *graph.Graph) graph.Value {
			return ops.ReshapeSizes(ops.Tanh(table(g, number, 1, 4096)), 64, 64)
		}},
		{"a view alone is not", "", func(g *graph.Graph) graph.Value {
			return ops.ReshapeSizes(table(g, number, 1, 4096), 64, 64)
		}},
		{"a fill is not", "", func(g *graph.Graph) graph.Value {
			return ops.Full(g, f32(64, 64), 2)
		}},
		{"what is computed of a fill", "exp, 16384 bytes: folded",
			func(g *graph.Graph) graph.Value { return ops.Exp(ops.Full(g, f32(64, 64), 2)) }},
		{"what is moved and no larger", "transpose, 16384 bytes: folded",
			func(g *graph.Graph) graph.Value {
				return ops.Transpose(table(g, number, 64, 64), 1, 0)
			}},
		{"two results", "top-k, 16384 bytes: folded; top-k/1, 16384 bytes: folded",
			func(g *graph.Graph) graph.Value {
				values, at := ops.TopK(table(g, number, 64, 64), 64)
				at = ops.Add(at, g.Input("y", tensor.Of(graph.I32, 64, 64)))
				return ops.Mul(values, ops.Cast(at, graph.F32))
			}},
		{"what is too much", "", func(g *graph.Graph) graph.Value {
			x := ops.Full(g, f32(64, 1<<19), 1)
			return ops.Exp(ops.MatMul(x, ops.Transpose(x, 1, 0)))
		}},
		{"what a kernel refuses", "", func(g *graph.Graph) graph.Value {
			rows := g.Constant("rows", tensor.FromI32(slices.Repeat([]int32{64}, 64), 64))
			return ops.Embedding(table(g, number, 64, 64), rows)
		}},
	} {
		c.changes(t, fold.Fold)
	}
}

// TestWhatIsUnfolded: a row for each kind of constant, and for what is like it and is none.
func TestWhatIsUnfolded(t *testing.T) {
	of := func(f func(row, col int) float32) func(g *graph.Graph) graph.Value {
		return func(g *graph.Graph) graph.Value { return table(g, f, 64, 64) }
	}
	as := func(how string) string { return "table, 16384 bytes: " + how }
	when := func(is bool, then float32) float32 {
		if is {
			return then
		}
		return 0
	}
	for _, c := range []one{
		{"a fill", as("broadcast"), of(func(_, _ int) float32 { return 3 })},
		{"rows alike", as("broadcast"), of(func(_, col int) float32 { return number(0, col) })},
		{"columns alike", as("broadcast"), of(func(row, _ int) float32 { return number(row, 0) })},
		{"a causal mask", as("broadcast+triu"),
			of(func(row, col int) float32 { return when(col > row, -1e9) })},
		{"what is seen", as("broadcast+tril"),
			of(func(row, col int) float32 { return when(col <= row, 1) })},
		{"a band's side", as("broadcast+tril"),
			of(func(row, col int) float32 { return when(col <= row-20, 1) })},
		{"one-hot vectors", as("one-hot"),
			of(func(row, col int) float32 { return when(col == row*5%64, 1) })},
		{"no two alike", "", of(number)},
		{"a mask with a hole", "",
			of(func(row, col int) float32 { return when(col <= row && row != 63, 1) })},
		{"minus zero is not zero", "", of(func(row, col int) float32 {
			if row == 0 && col == 63 {
				return float32(math.Copysign(0, -1))
			}
			return when(col <= row, 1)
		})},
		{"two ones in a row", "",
			of(func(row, col int) float32 { return when(col == row || row+col == 63, 1) })},
		{"what is small", "", func(g *graph.Graph) graph.Value {
			return table(g, func(_, _ int) float32 { return 3 }, 1, 64)
		}},
	} {
		c.changes(t, unfold)
	}
}

// TestNowhere: what repeats its operands reads a number, and the large array is nowhere.
func TestNowhere(t *testing.T) {
	g := graph.New()
	fill := table(g, func(_, _ int) float32 { return 3 }, 64, 64)
	m := step(ops.Mul(g.Input("x", f32(64, 64)), fill))
	now, _ := rewritten(t, unfold, all, m)
	for _, n := range now.Graph.Nodes() {
		if n.OpName() == "broadcast" || n.Kind == graph.KindConstant && n.Out[0].Elems() > 1 {
			t.Errorf("there is %s of %s", n.Name, n.Out[0])
		}
	}
}
