package control_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/reference"
)

// program is a nested one, and what its operands are.
type program struct {
	*randgraph.Nested
	in []tensor.View
}

func drawn(seed uint64, size int, types []graph.DType) program {
	rng := rand.New(rand.NewPCG(seed, 5))
	p := program{Nested: randgraph.DrawNested(rng.IntN, size, types)}
	for _, t := range p.In() {
		x := tensor.New(t)
		for i := range t.Elems() {
			if t.DType == graph.F64 {
				x.F64()[i] = 2*rng.Float64() - 1
			} else {
				x.F32()[i] = 2*rng.Float32() - 1
			}
		}
		p.in = append(p.in, x)
	}
	return p
}

// outcome builds the program in one of two ways, and is its results, its loss, and the gradients of
// the operands that have any; and how many there are of the results.
func (p program) outcome(t *testing.T, unroll, grads bool) (out []tensor.View, results int) {
	t.Helper()
	g := graph.New()
	var in []graph.Value
	for i, x := range p.in {
		in = append(in, g.Input(string('a'+rune(i)), x.Type))
	}
	e := reference.NewEager(g, func(n *graph.Node, v tensor.View) {
		copy(v.Data, p.in[n.ID].Data)
	})
	look := func(v graph.Value) tensor.View {
		x, err := e.Value(v)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	var made []graph.Value
	if unroll {
		made = p.Unroll(in, look)
	} else {
		made = p.Build(in)
	}
	results = len(made)
	made = append(made, randgraph.NestedLoss(made))
	if grads {
		made = append(made, autodiff.Grad(made[results], in...)...)
	}
	for _, v := range made {
		x := tensor.View{}
		if v.Valid() {
			x = look(v)
		}
		out = append(out, x)
	}
	return out, results
}

// numbers are a value's, all 0 of one that is not there.
func numbers(v tensor.View, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		switch {
		case v.Data == nil:
		case v.Type.DType == graph.F64:
			out[i] = v.F64()[i]
		default:
			out[i] = float64(v.F32()[i])
		}
	}
	return out
}

// TestNested: loops and branches within one another, of every element type, come to what Go's own
// loops and branches come to, to the bit, and so do losses; gradients are those of the unrolled
// graph up to the order of sums.
func TestNested(t *testing.T) {
	for seed := range uint64(longtest.Count(150, 2000)) {
		p := drawn(seed, 6, randgraph.NestedTypes())
		want, n := p.outcome(t, true, true)
		got, _ := p.outcome(t, false, true)
		for i := range want[:n+1] {
			if !bytes.Equal(got[i].Data, want[i].Data) {
				t.Fatalf("seed %d: result %d is %v, want %v", seed, i, got[i], want[i])
			}
		}
		// Gradients pass through 16-bit numbers, too.
		p.near(t, seed, got[n+1:], want[n+1:], 0.02)
	}
}

// near compares gradients, relative to the largest element.
func (p program) near(t *testing.T, seed uint64, got, want []tensor.View, tolerance float64) {
	t.Helper()
	for i := range want {
		n := p.in[i].Type.Elems()
		x, y := numbers(got[i], n), numbers(want[i], n)
		size := 1e-3
		for _, v := range y {
			size = max(size, math.Abs(v))
		}
		for k := range x {
			if !(math.Abs(x[k]-y[k]) <= tolerance*size) {
				t.Fatalf("seed %d: gradient %d is %v, want %v", seed, i, x, y)
			}
		}
	}
}

// moved is the program's loss at so far from where it is along a direction.
func (p program) moved(t *testing.T, along [][]float64, far float64) float64 {
	t.Helper()
	at := program{Nested: p.Nested}
	for i, x := range p.in {
		y := tensor.New(x.Type)
		for k := range y.F64() {
			y.F64()[k] = x.F64()[k] + float64(far*along[i][k])
		}
		at.in = append(at.in, y)
	}
	out, n := at.outcome(t, false, false)
	return out[n].F64()[0]
}

// TestNestedSlopes: in f64 the gradients are the unrolled graph's, and along any direction the
// slope of the loss is theirs.
func TestNestedSlopes(t *testing.T) {
	const step = 1e-5
	for seed := range uint64(longtest.Count(80, 1500)) {
		p := drawn(seed, 6, []graph.DType{graph.F64})
		want, n := p.outcome(t, true, true)
		got, _ := p.outcome(t, false, true)
		p.near(t, seed, got[n+1:], want[n+1:], 1e-12)
		rng := rand.New(rand.NewPCG(seed, 6))
		along, slope, size := make([][]float64, len(p.in)), 0., 1e-3
		for i, x := range p.in {
			for _, d := range numbers(got[n+1+i], x.Type.Elems()) {
				r := 2*rng.Float64() - 1
				along[i] = append(along[i], r)
				slope += r * d
				size += math.Abs(d)
			}
		}
		have := (p.moved(t, along, step) - p.moved(t, along, -step)) / (2 * step)
		if !(math.Abs(have-slope) <= 1e-5*size) {
			t.Errorf("seed %d: the loss has slope %v, its gradient %v", seed, have, slope)
		}
	}
}
