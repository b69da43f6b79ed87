package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// collective is one of the collectives among parts workers along an axis "a".
type collective struct {
	name string
	do   func(x graph.Value, name string, parts int) graph.Value
}

// collectives are all of them.
var collectives = []collective{
	{"sum", func(x graph.Value, name string, parts int) graph.Value {
		return ops.AllReduce(x, name, "a", parts)
	}},
	{"gather", func(x graph.Value, name string, parts int) graph.Value {
		return ops.AllGather(x, name, "a", parts)
	}},
	{"scatter", func(x graph.Value, name string, parts int) graph.Value {
		return ops.ReduceScatter(x, name, "a", parts)
	}},
	{"swap", func(x graph.Value, name string, parts int) graph.Value {
		return ops.AllToAll(x, name, "a", parts)
	}},
	{"copy", func(x graph.Value, name string, parts int) graph.Value {
		return ops.Broadcast(x, name, "a", parts, parts-1)
	}},
	{"reduce", func(x graph.Value, name string, parts int) graph.Value {
		return ops.ReduceTo(x, name, "a", parts, parts-1)
	}},
	{"gather-some", func(x graph.Value, name string, parts int) graph.Value {
		return ops.AllGatherSome(x, everyRank(x, parts, parts), name, "a", parts)
	}},
	{"scatter-some", func(x graph.Value, name string, parts int) graph.Value {
		return ops.ReduceScatterSome(x, everyRank(x, parts, 1), name, "a", parts)
	}},
	{"swap-some", func(x graph.Value, name string, parts int) graph.Value {
		y, _ := ops.AllToAllV(x, allRows(x, parts), name, "a", parts)
		return y
	}},
	{"permute", func(x graph.Value, name string, parts int) graph.Value {
		to := make([]int, parts)
		for i := range to {
			to[i] = (i + 1) % parts
		}
		return ops.CollectivePermute(x, name, "a", to...)
	}},
}

// everyRank says of the rows of so many values that all of so many workers have to do with them.
func everyRank(x graph.Value, parts, values int) graph.Value {
	if !x.Valid() || parts < 1 {
		return graph.Value{}
	}
	all := tensor.New(tensor.Of(graph.I32, values*x.Type().Size(0), parts))
	for i := range all.I32() {
		all.I32()[i] = int32(i % parts)
	}
	return x.Graph().Constant("ranks", all)
}

// allRows are the counts of so many workers that have blocks of a value all to themselves.
func allRows(x graph.Value, parts int) graph.Value {
	if !x.Valid() || parts < 1 {
		return graph.Value{}
	}
	all := tensor.New(tensor.Of(graph.I32, parts))
	for i := range all.I32() {
		all.I32()[i] = int32(x.Type().Size(0) / parts)
	}
	return x.Graph().Constant("counts", all)
}

// TestCollectivesOfOne: where there is one worker, a collective is what it is given, and so
// is its gradient, and the gradient of that.
func TestCollectivesOfOne(t *testing.T) {
	for _, c := range collectives {
		g := graph.New()
		x, w := g.Input("x", tensor.Of(graph.F32, 6, 5)), g.Input("w", tensor.Of(graph.F32, 6, 5))
		y := c.do(x, "y", 1)
		dx := autodiff.Grad(ops.Sum(ops.Mul(ops.Square(y), w)), x)[0]
		ddx := autodiff.Grad(ops.Sum(dx), x)[0]
		if err := g.Verify(); err != nil {
			t.Fatal(c.name, err)
		}
		live := g.Ancestors([]graph.NodeID{y.Node.ID, dx.Node.ID, ddx.Node.ID})
		m, err := reference.New(g, live, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			m.Value(x).F32()[i], m.Value(w).F32()[i] = float32(i), float32(30-i)
		}
		if err := m.Step(); err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			v := [3]float32{m.Value(y).F32()[i], m.Value(dx).F32()[i], m.Value(ddx).F32()[i]}
			weight := float32(30 - i)
			if want := [3]float32{float32(i), 2 * weight * float32(i), 2 * weight}; v != want {
				t.Fatalf("%s: element %d is %v, want %v", c.name, i, v, want)
			}
		}
	}
}

// TestCollectiveTypes: what comes back has the type that its fold makes of a value, and
// gradients have the types of operands, by an exchange of the other direction.
func TestCollectiveTypes(t *testing.T) {
	for i, want := range []string{"f32[6 5] sum /sum", "f32[18 5] gather /scatter",
		"f32[2 5] scatter /gather", "f32[6 5] swap /swap", "f32[6 5] copy /reduce",
		"f32[6 5] reduce /copy", "f32[18 5] gather-some /scatter-some",
		"f32[2 5] scatter-some /gather-some", "f32[6 5] swap-some /swap-some",
		"f32[6 5] permute /permute"} {
		g := graph.New()
		x := g.Input("x", tensor.Of(graph.F32, 6, 5))
		y := collectives[i].do(x, "y", 3)
		dx := autodiff.Grad(ops.Sum(ops.Square(y)), x)[0]
		autodiff.Grad(ops.Sum(ops.Tanh(y)), x)
		if err := g.Verify(); err != nil {
			t.Fatal(err)
		}
		if !dx.Type().Equal(x.Type()) {
			t.Errorf("the gradient of %s is %s", want, dx.Type())
		}
		var names, folds []string
		for _, n := range g.Nodes() {
			if s, ok := n.Sends(); ok && s.Name != "y/counts" {
				names, folds = append(names, s.Name), append(folds, s.How.Fold.String())
				if s.Parts != 3 || s.How.Along != "a" || !s.Joint {
					t.Errorf("%s is exchanged as %+v", n.Name, s)
				}
			}
		}
		if !slices.Equal(names, []string{"y", "y/grad", "y/grad2"}) {
			t.Errorf("exchanges are %q", names)
		}
		if got := fmt.Sprintf("%s %s /%s", y.Type(), folds[0], folds[1]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	g := graph.New()
	s := ops.AllGather(g.Input("s", tensor.Of(graph.Bool)), "s", "", 4)
	if !s.Type().Equal(tensor.Of(graph.Bool, 4)) {
		t.Errorf("scalars are gathered to %s", s.Type())
	}
	h := g.Input("h", tensor.Of(graph.BF16, 4))
	all := ops.Sum(ops.Cast(ops.AllGather(h, "h", "", 2), graph.F32))
	if dh := autodiff.Grad(all, h)[0]; g.Verify() != nil || !dh.Type().Equal(h.Type()) {
		t.Errorf("the gradient of bf16 is %v: %v", dh, g.Verify())
	}
}

// TestCollectivesKeepTheirPhase: in which they are made.
func TestCollectivesKeepTheirPhase(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	y := ops.AllReduce(x, "y", "", 2)
	dx := autodiff.Grad(ops.Sum(ops.Square(y)), x)[0]
	for v, want := range map[graph.Value]graph.Phase{y: graph.Forward, dx: graph.Backward} {
		if n := v.Node; n.Phase != want || n.In[0].Node.Phase != want {
			t.Errorf("%s is of phase %s, and sent in %s", n.Name, n.Phase, n.In[0].Node.Phase)
		}
	}
}

// TestPermuteGradients: gradients go back to where values came from, and those that went
// nowhere have none.
func TestPermuteGradients(t *testing.T) {
	for _, c := range [][2][]int{{{1, 2, 0}, {2, 0, 1}}, {{2, -1, 0}, {2, -1, 0}},
		{{-1, 0, -1}, {1, -1, -1}}, {{0, 1, 2}, {0, 1, 2}}} {
		g := graph.New()
		x := g.Input("x", tensor.Of(graph.BF16, 4))
		y := ops.CollectivePermute(x, "y", "", c[0]...)
		autodiff.Grad(ops.Sum(ops.Cast(y, graph.F32)), x)
		if err := g.Verify(); err != nil {
			t.Fatal(err)
		}
		var list [][]int
		for _, n := range g.Nodes() {
			if s, ok := n.Sends(); ok {
				list = append(list, s.To)
			}
		}
		if len(list) != 2 || !slices.Equal(list[0], c[0]) || !slices.Equal(list[1], c[1]) {
			t.Errorf("values go %v, want %v", list, c)
		}
	}
}

// TestBadCollectives: what cannot be exchanged is an error of the graph, and never a panic.
func TestBadCollectives(t *testing.T) {
	apply := func(op graph.Op, x graph.Value) graph.Value {
		if n := graph.Apply(op, x); n != nil {
			return n.Value(0)
		}
		return graph.Value{}
	}
	how := func(f graph.Fold) graph.How { return graph.How{Fold: f} }
	for want, build := range map[string]func(x graph.Value){
		"what is sent has no name": func(x graph.Value) { ops.AllReduce(x, "", "", 2) },
		"0 workers, want 1 or":     func(x graph.Value) { ops.AllGather(x, "x", "", 0) },
		"-1 workers, want 1 or":    func(x graph.Value) { ops.AllToAll(x, "x", "", -1) },
		"axis 0 of f32[6 5] does not divide among 4 workers": func(x graph.Value) {
			ops.ReduceScatter(x, "x", "", 4)
		},
		"axis 0 of f32[] does not divide": func(x graph.Value) {
			ops.AllToAll(ops.Sum(x), "x", "", 1)
		},
		"rank 2 of 2 is no root":  func(x graph.Value) { ops.Broadcast(x, "x", "", 2, 2) },
		"rank -1 of 2 is no root": func(x graph.Value) { ops.ReduceTo(x, "x", "", 2, -1) },
		"rank 1 of 2 is no root of a sum": func(x graph.Value) {
			apply(ops.Sent("x", how(graph.Sum), 2, 1), x)
		},
		"f64 to add it up: convert it with Cast": func(x graph.Value) {
			ops.AllReduce(ops.Cast(x, graph.I32), "x", "", 2)
		},
		`"a b" is no axis of a mesh`: func(x graph.Value) { ops.AllReduce(x, "x", "a b", 2) },
		"there is no fold 99": func(x graph.Value) {
			apply(ops.Sent("x", how(99), 2, 0), x)
		},
		"its scatter comes back as f32[3 5]": func(x graph.Value) {
			apply(ops.Awaited(how(graph.Sum), 2), apply(ops.Sent("x", how(graph.Scatter), 2, 0), x))
		},
		"as f32[2 5]: its scatter comes back as f32[3 5]": func(x graph.Value) {
			apply(ops.Awaited(how(graph.Scatter), 3),
				apply(ops.Sent("x", how(graph.Scatter), 2, 0), x))
		},
		"does not divide among -3 workers": func(x graph.Value) {
			apply(ops.Awaited(how(graph.Scatter), -3), x)
		},
		"[] is a permutation by which nothing goes": func(x graph.Value) {
			ops.CollectivePermute(x, "x", "")
		},
		"[-1 -1] is a permutation by which nothing": func(x graph.Value) {
			ops.CollectivePermute(x, "x", "", -1, -1)
		},
		"there is no rank 2 of 2": func(x graph.Value) {
			ops.CollectivePermute(x, "x", "", 2, 1)
		},
		"there is no rank -2 of 2": func(x graph.Value) {
			ops.CollectivePermute(x, "x", "", -2, 1)
		},
		"[1 0 1] is no permutation: rank 1 is in it twice": func(x graph.Value) {
			ops.CollectivePermute(x, "x", "", 1, 0, 1)
		},
		"no axis of a mesh: want": func(x graph.Value) {
			ops.CollectivePermute(x, "x", "a:", 1, 0)
		},
		"has no name": func(x graph.Value) { ops.CollectivePermute(x, "", "", 1, 0) },
		"says which rows": func(x graph.Value) {
			apply(ops.Sent("x", how(graph.GatherSome), 2, 0), x)
		},
		"5 rows are not equal parts of f32[12 5] among 2": func(x graph.Value) {
			ops.AllGatherSome(x, x.Graph().Input("r", tensor.Of(graph.I32, 5, 2)), "x", "", 2)
		},
		"f32[6 5], want i32[rows most]: convert it": func(x graph.Value) {
			ops.ReduceScatterSome(x, x, "x", "", 2)
		},
		"i32[0 0], want i32[rows most]": func(x graph.Value) {
			none := x.Graph().Input("r", tensor.Of(graph.I32, 0, 0))
			ops.ReduceScatterSome(x, none, "x", "", 2)
		},
		"says how many rows": func(x graph.Value) {
			apply(ops.Sent("x", how(graph.SwapSome), 2, 0), x)
		},
		"go or come is i32[4], want i32[2], one for each worker": func(x graph.Value) {
			counts := ops.Concat(0, allRows(x, 2), allRows(x, 2))
			ops.AllToAllV(x, counts, "x", "", 2)
		},
		"is f32[2], want i32[2], one for each worker: convert it with Cast": func(x graph.Value) {
			ops.AllToAllV(x, ops.Cast(allRows(x, 2), graph.F32), "x", "", 2)
		},
		"axis 0 of f32[7 5] does not divide among 2 workers": func(x graph.Value) {
			y := x.Graph().Input("y", tensor.Of(graph.F32, 7, 5))
			ops.AllToAllV(y, allRows(x, 2), "x", "", 2)
		},
		"says to whom": func(x graph.Value) {
			apply(ops.Sent("x", how(graph.Permute), 2, 0), x)
		},
		"is in flight: await it first": func(x graph.Value) {
			ops.Tanh(apply(ops.Sent("x", how(graph.Sum), 2, 0), x))
		},
	} {
		g := graph.New()
		build(g.Input("x", tensor.Of(graph.F32, 6, 5)))
		if err := g.Verify(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	for _, c := range collectives {
		if c.do(graph.Value{}, "x", 2).Valid() {
			t.Errorf("%s of nothing is something", c.name)
		}
	}
}
