package control_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
)

type value = graph.Value

func f32(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }

// fill gives inputs numbers that a seed draws, about from −1 to 1; integers stay 0.
func fill(m *reference.Machine, g *graph.Graph, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, n := range g.Inputs() {
		v := m.Value(n.Value(0))
		if v.Type.DType == graph.F32 {
			for i := range v.F32() {
				v.F32()[i] = r.Float32()*2 - 1
			}
		}
	}
}

// compute executes a graph whose inputs are drawn, and set after that.
func compute(t *testing.T, threads int, set func(m *reference.Machine), fetches ...value) [][]byte {
	t.Helper()
	g := fetches[0].Graph()
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	var roots []graph.NodeID
	for _, v := range fetches {
		roots = append(roots, v.Node.ID)
	}
	live := g.Ancestors(roots)
	for _, n := range g.Inputs() {
		live[n.ID] = true
	}
	p := pool.New(threads)
	m, err := reference.New(g, live, p)
	if err != nil {
		t.Fatal(err)
	}
	fill(m, g, 7)
	if set != nil {
		set(m)
	}
	if err := m.Step(); err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, v := range fetches {
		out = append(out, m.Value(v).Data)
	}
	return out
}

// recurrent is a network of a layer with two states over steps, and what is differentiated.
type recurrent struct {
	g           *graph.Graph
	w, b, h, c  value
	xs          value
	last0, last value
	ys          value
}

func newRecurrent(steps int) *recurrent {
	g := graph.New()
	return &recurrent{g: g, w: g.Input("w", f32(9, 5)), b: g.Input("b", f32(5)),
		h: g.Input("h", f32(3, 5)), c: g.Input("c", f32(3, 5)), xs: g.Input("xs", f32(steps, 3, 4))}
}

// step is one of the layer's.
func step(w, b, h, c, x value) (h2, c2 value) {
	z := ops.Tanh(ops.Add(ops.MatMul(ops.Concat(1, x, h), w), b))
	c2 = ops.Add(ops.Scale(c, 0.5), ops.Mul(z, ops.Sigmoid(z)))
	return ops.Sub(z, ops.Scale(c2, 0.25)), c2
}

// unrolled has a node for each part of each step.
func (r *recurrent) unrolled(reverse bool) {
	h, c := r.h, r.c
	rows := ops.Unstack(r.xs)
	ys := make([]value, len(rows))
	for k := range rows {
		if reverse {
			k = len(rows) - 1 - k
		}
		h, c = step(r.w, r.b, h, c, rows[k])
		ys[k] = h
	}
	r.last0, r.last, r.ys = h, c, ops.Stack(ys...)
}

// scanned has one node for all steps, or some.
func (r *recurrent) scanned(o control.Options) {
	last, ys := control.Scan([]value{r.w, r.b}, []value{r.h, r.c}, []value{r.xs},
		func(same, states, xs []value) (next, ys []value) {
			h, c := step(same[0], same[1], states[0], states[1], xs[0])
			return []value{h, c}, []value{h}
		}, o)
	r.last0, r.last, r.ys = last[0], last[1], ys[0]
}

// loss and gradients.
func (r *recurrent) fetches() []value {
	weights := ops.Cos(ops.Scale(r.ys, 3))
	loss := ops.Add(ops.Sum(ops.Mul(r.ys, weights)), ops.Sum(ops.Square(r.last)))
	d := autodiff.Grad(loss, r.w, r.b, r.h, r.c, r.xs)
	return append([]value{loss, r.last0, r.last, r.ys}, d...)
}

// TestUnrolled: a scan, its gradient included, has the bits of the unrolled loop, in either
// direction, in one segment or several, on one thread or two, whether it records or not.
func TestUnrolled(t *testing.T) {
	names := []string{"loss", "h", "c", "ys", "dw", "db", "dh", "dc", "dxs"}
	for _, reverse := range []bool{false, true} {
		plain := newRecurrent(11)
		plain.unrolled(reverse)
		want := compute(t, 1, nil, plain.fetches()...)
		for _, o := range []control.Options{{}, {Segments: 3}, {Segments: 11}, {Forward: true}} {
			o.Reverse = reverse
			for threads := 1; threads <= 2; threads++ {
				s := newRecurrent(11)
				s.scanned(o)
				got := compute(t, threads, nil, s.fetches()...)
				for i := range want {
					sum := o.Segments > 1 && o.Segments < 11 && (i == 4 || i == 5)
					if sum { // is one of sums, of the segments
						near(t, names[i], got[i], want[i], 1e-6)
					} else if !bytes.Equal(got[i], want[i]) {
						t.Errorf("%+v: %s differs", o, names[i])
					}
				}
			}
		}
	}
}

// TestSecondGradient: that of a scan is the unrolled loop's, within rounding.
func TestSecondGradient(t *testing.T) {
	second := func(r *recurrent) []value {
		loss := ops.Sum(ops.Square(r.ys))
		d := autodiff.Grad(loss, r.w, r.h)
		return autodiff.Grad(ops.Add(ops.Sum(ops.Square(d[0])), ops.Sum(ops.Square(d[1]))), r.w,
			r.xs)
	}
	a, b := newRecurrent(4), newRecurrent(4)
	a.unrolled(false)
	b.scanned(control.Options{})
	want, got := compute(t, 1, nil, second(a)...), compute(t, 1, nil, second(b)...)
	for i := range want {
		near(t, fmt.Sprint("gradient ", i), got[i], want[i], 1e-4)
	}
}

func floats(b []byte) []float32 {
	return tensor.View{Type: f32(len(b) / 4), Data: b}.F32()
}

func near(t *testing.T, what string, got, want []byte, tolerance float64) {
	t.Helper()
	x, y := floats(got), floats(want)
	if len(x) != len(y) {
		t.Fatalf("%s: %d elements, want %d", what, len(x), len(y))
	}
	for i := range x {
		if !(math.Abs(float64(x[i]-y[i])) <= tolerance*(1+math.Abs(float64(y[i])))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, x[i], y[i])
		}
	}
}

// root is Newton's iteration for square roots, until it hardly moves.
func root(x value, bound int) (r, count value) {
	last, count := control.While([]value{x}, []value{x, ops.Scale(x, 2)}, bound,
		func(same, states []value) value {
			d := ops.Abs(ops.Sub(states[0], states[1]))
			return ops.Greater(ops.Sum(d), ops.Full(d.Graph(), f32(), 1e-4))
		},
		func(same, states []value) []value {
			next := ops.Scale(ops.Add(states[0], ops.Div(same[0], states[0])), 0.5)
			return []value{next, states[0]}
		})
	return last[0], count
}

// TestWhile: a loop ends by its data, its gradient goes through as many iterations, and one that
// does not end within its bound is an error.
func TestWhile(t *testing.T) {
	g := graph.New()
	x := g.Input("x", f32(3))
	r, count := root(x, 50)
	d := autodiff.Grad(ops.Sum(r), x)[0]
	set := func(m *reference.Machine) { copy(m.Value(x).F32(), []float32{4, 9, 100}) }
	got := compute(t, 1, set, r, d, count)
	near(t, "root", got[0], tensor.FromF32([]float32{2, 3, 10}, 3).Data, 1e-5)
	near(t, "slope", got[1], tensor.FromF32([]float32{0.25, 1. / 6, 0.05}, 3).Data, 1e-3)
	n := tensor.View{Type: graph.Of(graph.I32), Data: got[2]}.I32()[0]
	if n < 5 || n > 20 {
		t.Errorf("%d iterations", n)
	}
	few := graph.New()
	y := few.Input("x", f32(3))
	r, _ = root(y, int(n)-1)
	m, err := reference.New(few, few.Ancestors([]graph.NodeID{r.Node.ID}), nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Value(y).F32(), []float32{4, 9, 100})
	if err := m.Step(); err == nil || !strings.Contains(err.Error(), "not over after") {
		t.Errorf("beyond its bound: %v", err)
	}
}

// TestNone: a loop whose condition does not hold at first gives its states, and their gradients.
func TestNone(t *testing.T) {
	g := graph.New()
	x := g.Input("x", f32(2))
	last, count := control.While(nil, []value{x}, 3,
		func(_, s []value) value {
			return ops.Less(ops.Sum(s[0]), ops.Full(s[0].Graph(), f32(), -100))
		},
		func(_, s []value) []value { return []value{ops.Square(s[0])} })
	d := autodiff.Grad(ops.Sum(last[0]), x)[0]
	got := compute(t, 1, nil, last[0], count, d, x)
	if !bytes.Equal(got[0], got[3]) || got[1][0] != 0 ||
		!bytes.Equal(got[2], tensor.FromF32([]float32{1, 1}, 2).Data) {
		t.Errorf("%v", got)
	}
}

// TestCond: one branch is executed, gradients are that branch's, and memory is that of the larger.
func TestCond(t *testing.T) {
	for _, holds := range []bool{true, false} {
		g := graph.New()
		x, y := g.Input("x", f32(4)), g.Input("y", f32(4))
		p := g.Input("p", graph.Of(graph.Bool))
		out := control.Cond(p, []value{x, y},
			func(in []value) []value { return []value{ops.Mul(in[0], in[1]), ops.Exp(in[0])} },
			func(in []value) []value { return []value{ops.Square(in[0]), in[1]} })
		loss := ops.Add(ops.Sum(out[0]), ops.Sum(ops.Square(out[1])))
		d := autodiff.Grad(loss, x, y)
		set := func(m *reference.Machine) {
			if holds {
				m.Value(p).Data[0] = 1
			}
		}
		got := compute(t, 1, set, d[0], d[1], x, y)
		xs, ys := floats(got[2]), floats(got[3])
		dx, dy := make([]float32, 4), make([]float32, 4)
		for i := range dx {
			if holds {
				e := float32(math.Exp(float64(xs[i])))
				dx[i], dy[i] = ys[i]+2*e*e, xs[i]
			} else {
				dx[i], dy[i] = 2*xs[i], 2*ys[i]
			}
		}
		near(t, "dx", got[0], tensor.FromF32(dx, 4).Data, 1e-5)
		near(t, "dy", got[1], tensor.FromF32(dy, 4).Data, 1e-5)
	}
}

// TestCount: a scan of a count runs as many iterations as it says.
func TestCount(t *testing.T) {
	for n := range 6 {
		g := graph.New()
		x, k := g.Input("x", f32(5, 2)), g.Input("k", graph.Of(graph.I32))
		zero := ops.Zeros(g, f32(2))
		last, ys := control.Scan(nil, []value{zero}, []value{x},
			func(_, s, xs []value) (next, ys []value) {
				next = []value{ops.Add(s[0], ops.Square(xs[0]))}
				return next, next
			}, control.Options{Count: k})
		d := autodiff.Grad(ops.Sum(last[0]), x)[0]
		set := func(m *reference.Machine) { m.Value(k).I32()[0] = int32(n) }
		got := compute(t, 1, set, last[0], ys[0], d, x)
		sum, xs := make([]float32, 2), floats(got[3])
		rows, grad := make([]float32, 10), make([]float32, 10)
		for i := range n {
			for c := range 2 {
				v := xs[2*i+c]
				sum[c] += float32(v * v)
				rows[2*i+c], grad[2*i+c] = sum[c], 2*v
			}
		}
		near(t, "sum", got[0], tensor.FromF32(sum, 2).Data, 1e-6)
		near(t, "rows", got[1], tensor.FromF32(rows, 10).Data, 1e-6)
		near(t, "gradient", got[2], tensor.FromF32(grad, 10).Data, 1e-6)
	}
}

// TestRefused: what is no loop is refused with what is wrong.
func TestRefused(t *testing.T) {
	keep := func(_, s, _ []value) (next, ys []value) { return s, nil }
	for want, build := range map[string]func(g *graph.Graph, x value){
		"none": func(g *graph.Graph, x value) {
			control.Scan(nil, []value{x}, []value{g.Input("s", f32())}, keep)
		},
		"and becomes": func(g *graph.Graph, x value) {
			control.Scan(nil, []value{x}, []value{x}, func(_, s, xs []value) (next, ys []value) {
				return xs, nil
			})
		},
		"not of its graph": func(g *graph.Graph, x value) {
			control.Scan(nil, []value{x}, []value{x}, func(_, s, xs []value) (next, ys []value) {
				return []value{x}, nil
			})
		},
		"is to be an operand": func(g *graph.Graph, x value) {
			control.Scan(nil, []value{x}, []value{x}, func(_, s, _ []value) (next, ys []value) {
				w := s[0].Graph().Variable("w", f32(4, 3), graph.Init{})
				return []value{ops.Add(s[0], w)}, nil
			})
		},
		"want bool[]": func(g *graph.Graph, x value) {
			control.Cond(g.Input("p", f32()), []value{x},
				slices.Clone[[]value], slices.Clone[[]value])
		},
		"of the other": func(g *graph.Graph, x value) {
			control.Cond(g.Input("p", graph.Of(graph.Bool)), []value{x}, slices.Clone[[]value],
				func(in []value) []value { return []value{ops.Sum(in[0])} })
		},
	} {
		g := graph.New()
		build(g, g.Input("x", f32(4, 3)))
		if err := g.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
