package gorgonia

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// example is an operation, with the shapes of learnables that it is of.
type example struct {
	name   string
	shapes []tensor.Shape
	apply  func(in G.Nodes) (*G.Node, error)
	// low and high bound the learnables' values; both zero: −1 and 1.
	low, high float64
	only      tensor.Dtype // one element type; zero: float32 and float64
	forward   bool         // it has no gradient
	// differences compares gradients with central differences: Gorgonia has none, or fails, or
	// its is not that of its values.
	differences bool
}

// shapes is a list of shapes.
func shapes(s ...tensor.Shape) []tensor.Shape { return s }

// one makes an operation of the first operand.
func one(f func(x *G.Node) (*G.Node, error)) func(G.Nodes) (*G.Node, error) {
	return func(in G.Nodes) (*G.Node, error) { return f(in[0]) }
}

// two makes an operation of the first two operands.
func two(f func(a, b *G.Node) (*G.Node, error)) func(G.Nodes) (*G.Node, error) {
	return func(in G.Nodes) (*G.Node, error) { return f(in[0], in[1]) }
}

// drawn are values of an element type.
func drawn(d tensor.Dtype, s tensor.Shape, rng *rand.Rand, low, high float64) G.Value {
	x := make([]float64, max(1, s.TotalSize()))
	for i := range x {
		x[i] = low + (high-low)*rng.Float64()
	}
	if d == tensor.Float64 {
		return made(x, s, func(x float64) G.Value { return G.NewF64(x) })
	}
	y := make([]float32, len(x))
	for i := range x {
		y[i] = float32(x[i])
	}
	return made(y, s, func(x float32) G.Value { return G.NewF32(x) })
}

// build makes a loss of an example: the sum of what it gives, with weights, and its learnables.
func (e example) build(t *testing.T, d tensor.Dtype) (*G.Node, G.Nodes) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	low, high := e.low, e.high
	if low == high {
		low, high = -1, 1
	}
	g := G.NewGraph()
	var in G.Nodes
	for i, s := range e.shapes {
		in = append(in, G.NewTensor(g, d, s.Dims(), G.WithShape(s...),
			G.WithName(fmt.Sprintf("in%d", i)), G.WithValue(drawn(d, s, rng, low, high))))
	}
	y, err := e.apply(in)
	if err != nil {
		t.Fatal(err)
	}
	if y.IsScalar() {
		return y, in
	}
	w := G.NewConstant(drawn(d, y.Shape(), rng, -1, 1), G.WithName("weights"))
	return G.Must(G.Sum(G.Must(G.HadamardProd(y, w)))), in
}

// numbers are a value's.
func numbers(v G.Value) []float64 {
	switch x := v.Data().(type) {
	case float32:
		return []float64{float64(x)}
	case float64:
		return []float64{x}
	case []float32:
		out := make([]float64, len(x))
		for i := range x {
			out[i] = float64(x[i])
		}
		return out
	case []float64:
		return x
	}
	return nil
}

// near fails if numbers differ by more than rounding.
func near(t *testing.T, what string, got, want G.Value, tolerance float64) {
	t.Helper()
	a, b := numbers(got), numbers(want)
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%s: %d numbers, want %d", what, len(a), len(b))
	}
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= tolerance*(1+math.Abs(b[i]))) {
			t.Errorf("%s: element %d is %v, Gorgonia's %v", what, i, a[i], b[i])
			return
		}
	}
}

// check compares an example's value and gradients with those of Gorgonia's machine.
func (e example) check(t *testing.T, d tensor.Dtype) {
	loss, in := e.build(t, d)
	options := Options{Gradients: !e.forward}
	p, err := New(context.Background(), loss, in, options)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Step(context.Background()); err != nil {
		t.Fatal(err)
	}
	theirs, their := e.build(t, d)
	var bound []G.VMOpt
	if !e.forward && !e.differences {
		if _, err := G.Grad(theirs, their...); err != nil {
			t.Fatal(err)
		}
		bound = append(bound, G.BindDualValues(their...))
	}
	m := G.NewTapeMachine(theirs.Graph(), bound...)
	defer m.Close()
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	tolerance := map[tensor.Dtype]float64{tensor.Float32: 1e-4, tensor.Float64: 1e-10}[d]
	near(t, "value", loss.Value(), theirs.Value(), tolerance)
	if e.differences {
		e.compareDifferences(t, p, loss, in)
	}
	for i := range in {
		if e.forward || e.differences {
			break
		}
		gradient, err := their[i].Grad()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "gradient of "+in[i].Name(), p.Gradient(in[i]), gradient, tolerance)
	}
}

// compareDifferences compares gradients with central differences of the loss.
func (e example) compareDifferences(t *testing.T, p *Program, loss *G.Node, in G.Nodes) {
	gradients := map[*G.Node][]float64{}
	for _, n := range in {
		gradients[n] = numbers(p.Gradient(n))
	}
	step, tolerance := 1e-6, 1e-6
	if loss.Dtype() == tensor.Float32 {
		step, tolerance = 1e-2, 2e-2
	}
	for _, n := range in {
		for i, want := range gradients[n] {
			up, down := e.moved(t, p, loss, n, i, step), e.moved(t, p, loss, n, i, -step)
			got := (up - down) / (2 * step)
			if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
				t.Errorf("gradient of %s: element %d is %v, by differences %v", n.Name(), i, want,
					got)
				return
			}
		}
	}
}

// moved is the loss with an element of a learnable changed.
func (e example) moved(t *testing.T, p *Program, loss, n *G.Node, i int, by float64) float64 {
	t.Helper()
	old := n.Value()
	x := append([]float64(nil), numbers(old)...)
	x[i] += by
	var v G.Value
	if n.Dtype() == tensor.Float64 {
		v = made(x, n.Shape(), func(x float64) G.Value { return G.NewF64(x) })
	} else {
		y := make([]float32, len(x))
		for i := range x {
			y[i] = float32(x[i])
		}
		v = made(y, n.Shape(), func(x float32) G.Value { return G.NewF32(x) })
	}
	for _, err := range []error{G.UnsafeLet(n, v), p.Push(), p.Step(context.Background()),
		G.UnsafeLet(n, old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return numbers(loss.Value())[0]
}

// TestOperations: every operation has Gorgonia's values and gradients.
func TestOperations(t *testing.T) {
	for _, list := range [][]example{elementwise(), algebra(), shapely(), layers()} {
		for _, e := range list {
			for _, d := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
				if e.only != (tensor.Dtype{}) && e.only != d {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s", e.name, d), func(t *testing.T) { e.check(t, d) })
			}
		}
	}
}
