package gorgonia

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// TestRefused: all that cannot be honoured is named in one error, with its nodes.
func TestRefused(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float32, G.WithShape(2, 3), G.WithName("x"))
	a, b := G.Must(G.Sparsemax(x)), G.BinomialRandomNode(g, G.Float32, 3, 0.5, 2, 3)
	c := G.UniformRandomNode(g, G.Float64, 0, 1, 2)
	loss := G.Must(G.Mean(G.Must(G.Add(a, b))))
	_, err := New(context.Background(), loss, nil, Options{Fetch: G.Nodes{c}})
	var refused *ErrRefused
	if !errors.As(err, &refused) || len(refused.Refusals) != 3 {
		t.Fatalf("%v, want three refusals", err)
	}
	for _, part := range []string{"use SoftMax", "feed an input", "convert them"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// TestMistakes: each has one line that says what would work.
func TestMistakes(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float32, G.WithShape(2, 3), G.WithName("x"))
	w := G.NewMatrix(g, G.Float32, G.WithShape(2, 3), G.WithName("w"), G.WithInit(G.Ones()))
	alone := G.NewScalar(g, G.Float32, G.WithName("alone"), G.WithValue(G.NewF32(1)))
	off := G.Must(G.HadamardProd(x, w))
	loss := G.Must(G.Mean(off))
	used := G.NewMomentum()
	if err := used.Step(nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		loss  *G.Node
		learn G.Nodes
		o     Options
		want  string
	}{
		{nil, nil, Options{}, "is nil"},
		{loss, G.Nodes{nil}, Options{}, "is nil"},
		{loss, nil, Options{Fetch: G.Nodes{nil}}, "is nil"},
		{loss, G.Nodes{w, w}, Options{}, "w is given twice"},
		{loss, G.Nodes{off}, Options{}, "is computed"},
		{off, nil, Options{}, "want a scalar"},
		{loss, G.Nodes{w, alone}, Options{Gradients: true}, "does not depend on learnable alone"},
		{loss, G.Nodes{w}, Options{Solver: G.NewBarzilaiBorweinSolver()}, "use a VanillaSolver"},
		{loss, G.Nodes{w}, Options{Solver: used}, "make a new one"},
		{loss, G.Nodes{w}, Options{Gomem: gomem.Options{DeviceBytes: 8}}, "the budget is"},
		{loss, G.Nodes{x}, Options{}, "has no value"},
	} {
		_, err := New(context.Background(), c.loss, c.learn, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	p, err := New(context.Background(), loss, G.Nodes{w}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Step(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "node x has no value") {
		t.Errorf("%v, want what x lacks", err)
	}
}

// TestSolvers: updates are Gorgonia's, with penalties, limits and batches.
func TestSolvers(t *testing.T) {
	all := []G.SolverOpt{G.WithLearnRate(0.05), G.WithL2Reg(0.01), G.WithClip(0.5)}
	more := append(slices.Clone(all), G.WithL1Reg(0.02), G.WithBatchSize(2))
	for name, solver := range map[string]func() G.Solver{
		"vanilla":  func() G.Solver { return G.NewVanillaSolver(more...) },
		"momentum": func() G.Solver { return G.NewMomentum(more...) },
		"rmsprop":  func() G.Solver { return G.NewRMSPropSolver(all...) },
		"adagrad":  func() G.Solver { return G.NewAdaGradSolver() },
		"adam":     func() G.Solver { return G.NewAdamSolver(more...) },
	} {
		for _, d := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
			t.Run(name+"/"+d.String(), func(t *testing.T) { checkSolver(t, solver, d) })
		}
	}
}

// checkSolver compares the learnables after some steps.
func checkSolver(t *testing.T, solver func() G.Solver, d tensor.Dtype) {
	e := example{shapes: shapes(tensor.Shape{3, 4}, tensor.Shape{4, 2}),
		apply: func(in G.Nodes) (*G.Node, error) { return G.Square(G.Must(G.Mul(in[0], in[1]))) }}
	loss, in := e.build(t, d)
	p, err := New(context.Background(), loss, in, Options{Solver: solver()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	theirs, their := e.build(t, d)
	if _, err := G.Grad(theirs, their...); err != nil {
		t.Fatal(err)
	}
	m, s := G.NewTapeMachine(theirs.Graph(), G.BindDualValues(their...)), solver()
	defer m.Close()
	for range 5 {
		err := errors.Join(p.Step(context.Background()), m.RunAll(),
			s.Step(G.NodesToValueGrads(their)))
		if err != nil {
			t.Fatal(err)
		}
		m.Reset()
	}
	for i := range in {
		near(t, in[i].Name(), in[i].Value(), their[i].Value(), 1e-4)
	}
}

// TestReads: G.Read, Fetch and G.Grad's additions do not matter to each other.
func TestReads(t *testing.T) {
	g := G.NewGraph()
	x := G.NewVector(g, G.Float64, G.WithShape(3), G.WithName("x"))
	w := G.NewVector(g, G.Float64, G.WithShape(3), G.WithName("w"), G.WithInit(G.Ones()))
	y := G.Must(G.HadamardProd(x, w))
	part := G.Must(G.Exp(y))
	loss := G.Must(G.Sum(part))
	if _, err := G.Grad(loss, w); err != nil {
		t.Fatal(err)
	}
	var into G.Value
	G.Read(y, &into)
	if err := G.Let(x, number([]float64{1, 2, 3})); err != nil {
		t.Fatal(err)
	}
	p, err := New(context.Background(), loss, G.Nodes{w}, Options{Gradients: true,
		Fetch: G.Nodes{part}, Solver: G.NewVanillaSolver(G.WithLearnRate(1))})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Step(context.Background()); err != nil {
		t.Fatal(err)
	}
	e := []float64{2.718281828459045, 7.38905609893065, 20.085536923187668}
	near(t, "read", into, number([]float64{1, 2, 3}), 0)
	near(t, "fetched", part.Value(), number(e), 1e-14)
	slope := []float64{e[0], 2 * e[1], 3 * e[2]}
	near(t, "gradient", p.Gradient(w), number(slope), 1e-14)
	near(t, "learnable", w.Value(), number([]float64{1 - slope[0], 1 - slope[1], 1 - slope[2]}),
		1e-14)
}

// TestBatchNorm: running averages learn as Gorgonia's do, and evaluation is by them.
func TestBatchNorm(t *testing.T) {
	for _, d := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		build := func() (*G.Node, G.Nodes, *G.BatchNormOp) {
			var op *G.BatchNormOp
			e := example{shapes: shapes(tensor.Shape{4, 3}, tensor.Shape{1, 3}, tensor.Shape{1, 3}),
				apply: func(in G.Nodes) (y *G.Node, err error) {
					y, _, _, op, err = G.BatchNorm(in[0], in[1], in[2], 0.1, 1e-5)
					return y, errors.Join(err, op.Reset())
				}}
			loss, in := e.build(t, d)
			return loss, in, op
		}
		loss, in, op := build()
		theirs, _, their := build()
		m := G.NewTapeMachine(theirs.Graph())
		for _, training := range []bool{true, false} {
			if !training {
				op.SetTraining(false)
				their.SetTraining(false)
			}
			p, err := New(context.Background(), loss, in, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.Step(context.Background()), m.RunAll()); err != nil {
				t.Fatal(err)
			}
			m.Reset()
			near(t, "loss", loss.Value(), theirs.Value(), 1e-4)
			mean, variance := op.Stats()
			mean2, variance2 := their.Stats()
			near(t, "mean", mean, mean2, 1e-5)
			near(t, "variance", variance, variance2, 1e-5)
			p.Close()
		}
		m.Close()
	}
}

// TestDropout: as many elements are dropped as it says, others in every step, and the gradient
// is of those that are kept.
func TestDropout(t *testing.T) {
	for _, d := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		g := G.NewGraph()
		x := G.NewVector(g, d, G.WithShape(1000), G.WithName("x"), G.WithInit(G.Ones()))
		y := G.Must(G.Dropout(x, 0.25))
		p, err := New(context.Background(), G.Must(G.Sum(y)), G.Nodes{x},
			Options{Gradients: true, Fetch: G.Nodes{y}})
		if err != nil {
			t.Fatal(err)
		}
		var before []float64
		for range 2 {
			if err := p.Step(context.Background()); err != nil {
				t.Fatal(err)
			}
			out, kept := slices.Clone(numbers(y.Value())), 0
			for i, v := range numbers(p.Gradient(x)) {
				if v != out[i] || v != 0 && !(v > 1.3333 && v < 1.3334) {
					t.Fatalf("element %d is %v, its gradient %v", i, out[i], v)
				}
				if v != 0 {
					kept++
				}
			}
			if kept < 700 || kept > 800 || slices.Equal(before, out) {
				t.Errorf("%d of 1000 are kept, the same twice: %v", kept, slices.Equal(before, out))
			}
			before = out
		}
		p.Close()
	}
}

// TestAt: Gorgonia's machine has no value of an element by itself, so it is compared with x.
func TestAt(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float64, G.WithShape(2, 3), G.WithName("x"), G.WithInit(G.RangedFrom(0)))
	y := G.Must(G.At(x, 1, 2))
	p, err := New(context.Background(), y, G.Nodes{x}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Step(context.Background()); err != nil || numbers(y.Value())[0] != 5 {
		t.Errorf("%v, %v, want 5", y.Value(), err)
	}
}
