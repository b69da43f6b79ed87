package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

// TestGradients checks every sample's gradient against a central difference
// along one random direction: one direction keeps the cost constant however
// large the operands are.
func TestGradients(t *testing.T) {
	for _, s := range ops.Samples() {
		if s.Update > 0 || len(s.NoGrad) == len(s.In) {
			continue
		}
		t.Run(s.TestName(), func(t *testing.T) { check(t, s, first) })
	}
}

// TestSecondGradients does the same for a random projection of the gradient,
// where the operation's gradient is itself differentiable.
func TestSecondGradients(t *testing.T) {
	for _, s := range ops.Samples() {
		if s.Second {
			t.Run(s.TestName(), func(t *testing.T) { check(t, s, second) })
		}
	}
}

// TestGradientsAreWellTyped: whichever results matter, every operand gets a
// gradient of its own type or none, or the graph says why it has none.
func TestGradientsAreWellTyped(t *testing.T) {
	for _, s := range ops.Samples() {
		if s.Update > 0 {
			continue
		}
		t.Run(s.TestName(), func(t *testing.T) {
			out, err := s.Op.Infer(s.In)
			if err != nil {
				t.Fatal(err)
			}
			for only := range len(out) + 1 { // the last time, all results matter
				wellTyped(t, s, func(i int) bool { return i == only || only == len(out) })
			}
		})
	}
}

func wellTyped(t *testing.T, s ops.Sample, matters func(i int) bool) {
	g := graph.New()
	var in []graph.Value
	for _, ty := range s.In {
		in = append(in, g.Input(fmt.Sprint("x", g.Len()), ty))
	}
	n := g.Apply(s.Op, in...)
	dout := make([]graph.Value, len(n.Out))
	for i, ty := range n.Out {
		if matters(i) && ty.DType == graph.F32 {
			dout[i] = g.Input(fmt.Sprint("d", i), ty)
		}
	}
	if !slices.ContainsFunc(dout, graph.Value.Valid) {
		return
	}
	for i, d := range s.Op.VJP(n, dout) {
		if d.Valid() && !d.Type().Equal(in[i].Type()) {
			t.Errorf("the gradient of operand %d, %s, is %s", i, in[i].Type(), d.Type())
		}
	}
	if err := g.Err(); err != nil && !strings.Contains(err.Error(), "has no gradient of its own") {
		t.Error(err)
	}
}

// TestGradientThroughStorageTypes: rounding to a storage type passes gradients,
// going to integers stops them.
func TestGradientThroughStorageTypes(t *testing.T) {
	for _, c := range []struct {
		to   graph.DType
		want []float32
	}{{graph.BF16, []float32{2, -4}}, {graph.F16, []float32{2, -4}}, {graph.I32, nil}} {
		g := graph.New()
		x := g.Constant("x", tensor.FromF32([]float32{1, -2}, 2))
		rounded := ops.Cast(ops.Cast(x, c.to), graph.F32)
		d := autodiff.Grad(ops.Sum(ops.Square(rounded)), x)[0]
		if g.Err() != nil {
			t.Fatal(g.Err())
		}
		if d.Valid() != (c.want != nil) {
			t.Fatalf("%s: the gradient is %s", c.to, d)
		}
		if !d.Valid() {
			continue
		}
		m, err := reference.New(g, g.Ancestors([]graph.NodeID{d.Node.ID}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Step(); err != nil || !slices.Equal(m.Value(d).F32(), c.want) {
			t.Errorf("%s: the gradient is %v (%v)", c.to, m.Value(d).F32(), err)
		}
	}
}

// problem is a scalar function of a sample's operands, in a graph.
type problem struct {
	s   ops.Sample
	g   *graph.Graph
	in  []graph.Value
	wrt []int // operands that are differentiated
	y   graph.Value
}

// first is a random weighting of the results.
func first(p *problem, rng *rand.Rand) {
	n := p.g.Apply(p.s.Op, p.in...)
	if n == nil {
		return
	}
	for i := range n.Out {
		if p.s.Results == nil || slices.Contains(p.s.Results, i) {
			p.add(n.Value(i), rng)
		}
	}
}

// second is a random weighting of the gradients of first.
func second(p *problem, rng *rand.Rand) {
	first(p, rng)
	y := p.y
	p.y = graph.Value{}
	for _, d := range autodiff.Grad(y, p.operands()...) {
		if d.Valid() {
			p.add(d, rng)
		}
	}
}

func (p *problem) operands() []graph.Value {
	var out []graph.Value
	for _, i := range p.wrt {
		out = append(out, p.in[i])
	}
	return out
}

// add adds the inner product of v and random numbers to y.
func (p *problem) add(v graph.Value, rng *rand.Rand) {
	if v.Type().DType != graph.F32 {
		return
	}
	w := tensor.New(v.Type())
	for i := range w.F32() {
		w.F32()[i] = float32(rng.NormFloat64())
	}
	sum := ops.Sum(ops.Mul(v, p.g.Constant("weights", w)))
	if p.y.Valid() {
		sum = ops.Add(p.y, sum)
	}
	p.y = sum
}

func check(t *testing.T, s ops.Sample, build func(*problem, *rand.Rand)) {
	p := &problem{s: s, g: graph.New()}
	for i, ty := range s.In {
		p.in = append(p.in, p.g.Input(fmt.Sprint("x", i), ty))
		if ty.DType == graph.F32 && !slices.Contains(s.NoGrad, i) {
			p.wrt = append(p.wrt, i)
		}
	}
	build(p, rand.New(rand.NewPCG(1, 2)))
	if p.g.Err() != nil {
		t.Fatal(p.g.Err())
	}
	if !p.y.Valid() {
		t.Skip("the result does not depend on the operands in a differentiable way")
	}
	grads := autodiff.Grad(p.y, p.operands()...)
	m := machine(t, p, grads)
	base := s.TestOperands(11)
	direction := s.TestOperands(12)
	eps, tol := 1e-2, 1e-2
	if s.Eps > 0 {
		eps = s.Eps
	}
	if s.Tol > 0 {
		tol = s.Tol
	}
	analytic := 0.0
	p.run(t, m, base, direction, 0)
	for k, d := range grads {
		if d.Valid() {
			x := direction[p.wrt[k]].F32()
			for i, v := range m.Value(d).F32() {
				analytic += float64(v) * float64(x[i])
			}
		}
	}
	up := p.run(t, m, base, direction, eps)
	down := p.run(t, m, base, direction, -eps)
	numeric := (up - down) / (2 * eps)
	if math.IsNaN(analytic) || math.Abs(analytic-numeric) > tol*(1+math.Abs(numeric)) {
		t.Errorf("gradient along a direction: %g, finite difference %g", analytic, numeric)
	}
}

func machine(t *testing.T, p *problem, grads []graph.Value) *reference.Machine {
	t.Helper()
	roots := []graph.NodeID{p.y.Node.ID}
	for _, d := range grads {
		if d.Valid() {
			roots = append(roots, d.Node.ID)
		}
	}
	live := p.g.Ancestors(roots)
	for _, v := range p.in {
		live[v.Node.ID] = true
	}
	m, err := reference.New(p.g, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run evaluates the function at base + h·direction.
func (p *problem) run(t *testing.T, m *reference.Machine, base, direction []tensor.View,
	h float64) float64 {
	t.Helper()
	for i, v := range p.in {
		x := m.Value(v)
		copy(x.Data, base[i].Data)
		if slices.Contains(p.wrt, i) {
			for k := range x.F32() {
				x.F32()[k] += float32(h * float64(direction[i].F32()[k]))
			}
		}
	}
	if err := m.Step(); err != nil {
		t.Fatal(err)
	}
	return float64(m.Value(p.y).F32()[0])
}
