package autodiff_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

var scalar = tensor.Of(graph.F32)

// eval computes values of a graph whose inputs are given.
func eval(t *testing.T, feeds map[graph.Value]float32, fetches ...graph.Value) []float32 {
	t.Helper()
	g := fetches[0].Graph()
	var roots []graph.NodeID
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	live := g.Ancestors(roots)
	for v := range feeds {
		live[v.Node.ID] = true
	}
	m, err := reference.New(g, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	for v, x := range feeds {
		m.Value(v).F32()[0] = x
	}
	if err := m.Step(); err != nil {
		t.Fatal(err)
	}
	var out []float32
	for _, v := range fetches {
		out = append(out, m.Value(v).F32()[0])
	}
	return out
}

func near(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-5*(1+math.Abs(float64(b))) }

// TestDerivatives: f(x,y) = x²·y + x has ∂x = 2xy+1, ∂y = x², ∂x² = 2y,
// ∂x∂y = 2x, ∂x³ = 0.
func TestDerivatives(t *testing.T) {
	g := graph.New()
	x, y := g.Input("x", scalar), g.Input("y", scalar)
	f := ops.Add(ops.Mul(ops.Square(x), y), x)
	d := autodiff.Grad(f, x, y)
	dd := autodiff.Grad(d[0], x, y)
	got := eval(t, map[graph.Value]float32{x: 3, y: 5}, d[0], d[1], dd[0], dd[1])
	for i, want := range []float32{31, 9, 10, 6} {
		if !near(got[i], want) {
			t.Errorf("derivative %d is %g, want %g", i, got[i], want)
		}
	}
	if err := g.Verify(); err != nil {
		t.Error(err)
	}
}

// TestFanOut: contributions of several readers add up.
func TestFanOut(t *testing.T) {
	g := graph.New()
	x := g.Input("x", scalar)
	sum := ops.Scale(x, 1)
	for i := range 4 {
		sum = ops.Add(sum, ops.Scale(x, float32(i)))
	}
	d := autodiff.Grad(sum, x)
	if got := eval(t, map[graph.Value]float32{x: 2}, d[0])[0]; got != 7 {
		t.Errorf("gradient is %g, want 7", got)
	}
}

func TestUnrelated(t *testing.T) {
	g := graph.New()
	x, y := g.Input("x", scalar), g.Input("y", scalar)
	d := autodiff.Grad(ops.Square(x), x, y)
	if !d[0].Valid() || d[1].Valid() {
		t.Errorf("gradients are %v", d)
	}
	if d := autodiff.Grad(graph.Value{}, x); d[0].Valid() {
		t.Error("no value has a gradient")
	}
}

// TestNodesCarryTheirOrigin: gradient nodes are of phase Backward, in the scope
// and at the line of the node that they belong to.
func TestNodesCarryTheirOrigin(t *testing.T) {
	g := graph.New()
	x := g.Input("x", scalar)
	leave := g.Scope("layer")
	y := ops.Tanh(x)
	leave()
	before := g.Len()
	autodiff.Grad(ops.Square(y), x)
	found := false
	for _, n := range g.Nodes()[before+1:] {
		if n.Phase != graph.Backward {
			t.Errorf("%s is of phase %s", n.Name, n.Phase)
		}
		if n.OpName() == "tanh-grad" {
			found = strings.HasPrefix(n.Name, "layer/") && n.Pos == y.Node.Pos
		}
	}
	if !found {
		t.Error("the gradient of tanh is not where tanh is")
	}
}

// TestBadGradients: what is no number in f32, or by what there is no gradient, is said
// with the lines of both the value and the request.
func TestBadGradients(t *testing.T) {
	type build func(x graph.Value) (y, by graph.Value)
	for want, build := range map[string]build{
		"want one number, such as its ops.Sum": func(x graph.Value) (y, by graph.Value) {
			return ops.Square(x), x
		},
		"want f32, as ops.Cast gives": func(x graph.Value) (y, by graph.Value) {
			return ops.Cast(ops.Sum(x), graph.I32), x
		},
		"by value 0, z, of another graph": func(x graph.Value) (y, by graph.Value) {
			return ops.Sum(x), graph.New().Constant("z", tensor.FromF32([]float32{1}))
		},
	} {
		g := graph.New()
		y, by := build(g.Input("x", tensor.Of(graph.F32, 2)))
		autodiff.Grad(y, by)
		err := fmt.Sprint(g.Err())
		if !strings.Contains(err, want) || !strings.Contains(err, y.String()) ||
			!strings.Contains(want, "graph") &&
				strings.Count(err, "autodiff/autodiff_test.go:") != 2 {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// TestNoMoreGradients: where an operation's gradient has none, the graph says so instead
// of computing something else.
func TestNoMoreGradients(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4))
	d := ops.Prod(x)
	for range 2 {
		d = autodiff.Grad(ops.Sum(ops.Square(d)), x)[0]
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	autodiff.Grad(ops.Sum(ops.Square(d)), x)
	if g.Err() == nil {
		t.Error("a third gradient of a product was given")
	}
}

func ExampleGrad() {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 3))
	loss := ops.Sum(ops.Square(x))
	dx := autodiff.Grad(loss, x)
	fmt.Println(dx[0].Type(), g.Err())
	// Output: f32[3] <nil>
}

// TestStopped: what only a value behind a StopGradient depends on, or one of whole numbers, has no
// gradient, and nothing on the way is asked for one: an LSTM's states have none.
func TestStopped(t *testing.T) {
	for name, stop := range map[string]func(graph.Value) graph.Value{
		"stopped": ops.StopGradient,
		"whole": func(x graph.Value) graph.Value {
			return ops.Cast(ops.Cast(x, graph.I32), graph.F32)
		},
	} {
		g := graph.New()
		w := g.Input("w", tensor.Of(graph.F32, 1, 1, 1))
		zeros := func(sizes ...int) graph.Value {
			return ops.Zeros(g, tensor.Of(graph.F32, sizes...))
		}
		_, states := ops.LSTM(stop(ops.Tanh(w)), zeros(2, 4), zeros(4), zeros(1, 1), zeros(1, 1), 1)
		nodes := g.Len()
		d := autodiff.Grad(ops.Sum(ops.Mul(states, states)), w)[0]
		if d.Valid() || g.Err() != nil {
			t.Errorf("%s: the gradient is %s, %v", name, d, g.Err())
		}
		if n := g.Len() - nodes; n > 3 { // the product, its sum, and the sum's own gradient
			t.Errorf("%s: %d nodes of a gradient that there is not", name, n-3)
		}
	}
}
