package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// training runs steps of an optimizer with other gradients each, and returns
// the variables after each.
type training struct {
	w     []float32   // at the start
	grads [][]float32 // of each step
	state []graph.Type
	step  func(g *graph.Graph, w graph.Value, state []graph.Value,
		grad, lr, step graph.Value) *graph.Node
	sizes []int
	half  bool // the variable is bf16
}

const rate = 0.1

// run returns the parameter and the state, of f32, after the last step.
func (tr training) run(t testing.TB, threads *pool.Pool) (out [][]float32) {
	t.Helper()
	for _, v := range tr.views(t, threads) {
		out = append(out, v.F32())
	}
	return out
}

// views returns the parameter and the state after the last step.
func (tr training) views(t testing.TB, threads *pool.Pool) []tensor.View {
	t.Helper()
	b := newBench(t)
	w := b.variable(tr.w, tr.sizes...)
	if tr.half {
		half := tensor.New(tensor.Of(graph.BF16, tr.sizes...))
		vec.BF16FromF32(half.U16(), tr.w)
		w = b.Variable(b.next("w"), half.Type, graph.Init{})
		b.data[w] = half
	}
	var state []graph.Value
	for i, ty := range tr.state {
		state = append(state, b.State(fmt.Sprint("state", i), ty, graph.Init{}))
	}
	scalar := tensor.Of(graph.F32)
	grad := b.Input("grad", tensor.Of(graph.F32, tr.sizes...))
	lr, step := b.Input("lr", scalar), b.Input("step", scalar)
	tr.step(b.Graph, w, state, grad, lr, step)
	b.data[lr] = tensor.FromF32([]float32{rate})
	b.data[step] = tensor.FromF32([]float32{1})
	b.data[grad] = tensor.FromF32(tr.grads[0], tr.sizes...)
	m, err := b.machine(threads)
	for i := 1; i < len(tr.grads) && err == nil; i++ {
		copy(m.Value(grad).F32(), tr.grads[i])
		m.Value(step).F32()[0]++
		err = m.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	out := []tensor.View{m.Value(w)}
	for _, v := range state {
		out = append(out, m.Value(v))
	}
	return out
}

func randoms(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func newTraining(seed uint64, sizes ...int) training {
	rng := rand.New(rand.NewPCG(seed, 3))
	tr := training{sizes: sizes}
	n := tensor.Of(graph.F32, sizes...).Elems()
	tr.w = randoms(rng, n)
	for range 4 {
		tr.grads = append(tr.grads, randoms(rng, n))
	}
	return tr
}

func near(t testing.TB, what string, got []float32, want []float64) {
	t.Helper()
	for i, x := range want {
		if math.Abs(float64(got[i])-x) > 2e-5*(1+math.Abs(x)) || math.IsNaN(float64(got[i])) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], x)
		}
	}
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func TestSGD(t *testing.T) {
	tr := newTraining(1, 5, 17)
	tr.step = func(_ *graph.Graph, w graph.Value, _ []graph.Value,
		grad, lr, _ graph.Value) *graph.Node {
		return ops.SGD(w, grad, lr)
	}
	w := widen(tr.w)
	for _, g := range tr.grads {
		for i := range w {
			w[i] -= rate * float64(g[i])
		}
	}
	near(t, "w", tr.run(t, nil)[0], w)
}

func TestMomentum(t *testing.T) {
	tr := newTraining(2, 5, 17)
	tr.state = []graph.Type{tensor.Of(graph.F32, 5, 17)}
	tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, _ graph.Value) *graph.Node {
		return ops.Momentum(w, s[0], grad, lr, 0.9)
	}
	w, m := widen(tr.w), make([]float64, len(tr.w))
	for _, g := range tr.grads {
		for i := range w {
			m[i] = 0.9*m[i] + float64(g[i])
			w[i] -= rate * m[i]
		}
	}
	got := tr.run(t, nil)
	near(t, "w", got[0], w)
	near(t, "m", got[1], m)
}

func TestAdam(t *testing.T) {
	tr := newTraining(3, 5, 17)
	tr.state = []graph.Type{tensor.Of(graph.F32, 5, 17), tensor.Of(graph.F32, 5, 17)}
	const b1, b2, eps = 0.9, 0.98, 1e-9
	tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, step graph.Value) *graph.Node {
		return ops.Adam(w, s[0], s[1], grad, lr, step, b1, b2, eps)
	}
	w, m, v := widen(tr.w), make([]float64, len(tr.w)), make([]float64, len(tr.w))
	for k, g := range tr.grads {
		corr1, corr2 := 1-math.Pow(b1, float64(k+1)), 1-math.Pow(b2, float64(k+1))
		for i := range w {
			x := float64(g[i])
			m[i] = b1*m[i] + (1-b1)*x
			v[i] = b2*v[i] + (1-b2)*x*x
			w[i] -= rate * (m[i] / corr1) / (math.Sqrt(v[i]/corr2) + eps)
		}
	}
	got := tr.run(t, nil)
	near(t, "w", got[0], w)
	near(t, "m", got[1], m)
	near(t, "v", got[2], v)
}

func TestAccumulate(t *testing.T) {
	b := newBench(t)
	v := b.variable(ramp(5), 5)
	ops.Accumulate(v, b.f32(ramp(5), 5))
	near(t, "sum", b.run().Value(v).F32(), []float64{2, 4, 6, 8, 10})
}

// adafactorReference is the algorithm on [a p b q c], p and q factored, or with
// p = q = 0 the whole unfactored, in float64.
type adafactorReference struct {
	a, p, b, q, c int
	w, vr, vc, v  []float64
}

func (r *adafactorReference) step(grad []float32, step float64) {
	decay, n := 1-math.Pow(step, -0.8), float64(len(r.w))
	u := make([]float64, len(r.w))
	if r.p == 0 {
		for i, g := range grad {
			x := float64(g)
			r.v[i] = decay*r.v[i] + (1-decay)*(x*x+1e-30)
			u[i] = x / math.Sqrt(r.v[i])
		}
	} else {
		r.factored(u, grad, decay)
	}
	updates, weights := 0.0, 0.0
	for i := range u {
		updates += u[i] * u[i]
		weights += r.w[i] * r.w[i]
	}
	scale := rate * max(1e-3, math.Sqrt(weights/n)) / max(1, math.Sqrt(updates/n))
	for i := range u {
		r.w[i] -= scale * u[i]
	}
}

// indices are those of element i in the row and column statistics, and that of
// its mean.
func (r *adafactorReference) indices(i int) (row, col, mean int) {
	c := i % r.c
	q := i / r.c % r.q
	b := i / (r.c * r.q) % r.b
	p := i / (r.c * r.q * r.b) % r.p
	a := i / (r.c * r.q * r.b * r.p)
	return ((a*r.p+p)*r.b+b)*r.c + c, ((a*r.b+b)*r.q+q)*r.c + c, (a*r.b+b)*r.c + c
}

func (r *adafactorReference) factored(u []float64, grad []float32, decay float64) {
	rows, cols := make([]float64, len(r.vr)), make([]float64, len(r.vc))
	for i, g := range grad {
		row, col, _ := r.indices(i)
		x := float64(g)*float64(g) + 1e-30
		rows[row] += x / float64(r.q)
		cols[col] += x / float64(r.p)
	}
	for i, x := range rows {
		r.vr[i] = decay*r.vr[i] + (1-decay)*x
	}
	for i, x := range cols {
		r.vc[i] = decay*r.vc[i] + (1-decay)*x
	}
	means := make([]float64, r.a*r.b*r.c)
	for i := range u { // every row statistic is met q times
		row, _, mean := r.indices(i)
		means[mean] += r.vr[row] / float64(r.p*r.q)
	}
	for i, g := range grad {
		row, col, mean := r.indices(i)
		u[i] = float64(g) / math.Sqrt(r.vr[row]/means[mean]) / math.Sqrt(r.vc[col])
	}
}

// TestAdafactor compares shapes of all kinds with the algorithm, on one thread
// and on three.
func TestAdafactor(t *testing.T) {
	threads := pool.New(3)
	defer threads.Close()
	for _, r := range []adafactorReference{
		{a: 1, p: 4, b: 1, q: 4, c: 1}, {a: 1, p: 40, b: 1, q: 1200, c: 1}, {a: 1, p: 1200, b: 1,
			q: 40, c: 1},
		{a: 3, p: 19, b: 1, q: 17, c: 1}, {a: 1, p: 17, b: 3, q: 19, c: 1}, {a: 1, p: 19, b: 1,
			q: 17, c: 3},
		{a: 2, p: 12, b: 3, q: 10, c: 5}, {a: 1, p: 530, b: 1, q: 40, c: 30},
		{a: 1, c: 1}, {a: 17, c: 1}, {a: 3000, c: 1}, {a: 3, c: 1000},
	} {
		sizes := []int{r.a, r.p, r.b, r.q, r.c}
		if r.p == 0 {
			sizes = []int{r.a, r.c}
		}
		tr := newTraining(4, sizes...)
		const minDim = 4
		w := tensor.Of(graph.F32, tr.sizes...)
		tr.state = ops.AdafactorState(w, minDim)
		cfg := ops.AdafactorConfig{MinDim: minDim}
		tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
			grad, lr, step graph.Value) *graph.Node {
			return ops.Adafactor(w, s, grad, lr, step, cfg)
		}
		r.w, r.v = widen(tr.w), make([]float64, len(tr.w))
		r.vr, r.vc = make([]float64, r.a*r.p*r.b*r.c), make([]float64, r.a*r.b*r.q*r.c)
		for k, g := range tr.grads {
			r.step(g, float64(k+1))
		}
		for _, p := range []*pool.Pool{nil, threads} {
			got := tr.run(t, p)
			near(t, w.String(), got[0], r.w)
			if r.p > 0 {
				near(t, w.String()+" rows", got[1], r.vr)
				near(t, w.String()+" columns", got[2], r.vc)
			} else {
				near(t, w.String()+" moments", got[1], r.v)
			}
		}
	}
}

func TestAdafactorState(t *testing.T) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	for _, c := range []struct {
		w    graph.Type
		min  int
		want string
	}{
		{f(), 0, "f32[]"},
		{f(4096), 0, "f32[4096]"},
		{f(512, 127), 0, "f32[512 127]"},
		{f(512, 128), 0, "f32[512] f32[128]"},
		{f(32, 512, 4096), 0, "f32[32 512] f32[32 4096]"},
		{f(512, 8, 128), 0, "f32[512 8] f32[8 128]"},
		{f(64, 64, 64), 64, "f32[64 64] f32[64 64]"},
		{f(9, 64, 32), 16, "f32[9 64] f32[9 32]"},
	} {
		var got []string
		for _, ty := range ops.AdafactorState(c.w, c.min) {
			got = append(got, ty.String())
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("state of %s is %s, want %s", c.w, s, c.want)
		}
	}
}

// TestAdafactorIsScaleFree: without clipping differences, a gradient times a
// power of two gives the same step.
func TestAdafactorIsScaleFree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 12), 1, 4).Draw(rt, "sizes")
		tr := newTraining(rapid.Uint64().Draw(rt, "seed"), sizes...)
		minDim := rapid.IntRange(1, 8).Draw(rt, "min")
		tr.state = ops.AdafactorState(tensor.Of(graph.F32, sizes...), minDim)
		tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
			grad, lr, step graph.Value) *graph.Node {
			return ops.Adafactor(w, s, grad, lr, step, ops.AdafactorConfig{MinDim: minDim})
		}
		want := widen(tr.run(t, nil)[0])
		for _, g := range tr.grads {
			for i := range g {
				g[i] *= 1 << 10
			}
		}
		near(t, "w", tr.run(t, nil)[0], want)
	})
}

func TestAdafactorWithoutGradientKeepsTheParameter(t *testing.T) {
	for _, sizes := range [][]int{{9, 9}, {9}} {
		tr := newTraining(6, sizes...)
		clear(tr.grads[0])
		tr.grads = tr.grads[:1]
		tr.state = ops.AdafactorState(tensor.Of(graph.F32, sizes...), 4)
		tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
			grad, lr, step graph.Value) *graph.Node {
			return ops.Adafactor(w, s, grad, lr, step, ops.AdafactorConfig{MinDim: 4})
		}
		near(t, "w", tr.run(t, nil)[0], widen(tr.w))
	}
}

func TestBadOptimizers(t *testing.T) {
	for name, build := range map[string]func(b *bench, w, s graph.Value){
		"momentum 1": func(b *bench, w, s graph.Value) {
			ops.Momentum(w, b.variable(ramp(6), 2, 3), w, s, 1)
		},
		"decay": func(b *bench, w, s graph.Value) {
			ops.Adam(w, b.variable(ramp(6), 2, 3), b.variable(ramp(6), 2, 3), w, s, s, 1, 0.9, 0)
		},
		"shape": func(b *bench, w, s graph.Value) {
			ops.SGD(w, b.f32(ramp(6), 3, 2), s)
		},
		"rate is no scalar": func(b *bench, w, s graph.Value) { ops.SGD(w, w, w) },
		"not a variable": func(b *bench, w, s graph.Value) {
			ops.SGD(b.f32(ramp(6), 2, 3), w, s)
		},
		"wrong state": func(b *bench, w, s graph.Value) {
			ops.Adafactor(w, nil, w, s, s,
				ops.AdafactorConfig{})
		},
		"negative constants": func(b *bench, w, s graph.Value) {
			ops.Adafactor(w, []graph.Value{b.variable(ramp(6), 2, 3)}, w, s, s,
				ops.AdafactorConfig{Clip: -1})
		},
	} {
		b := newBench(t)
		build(b, b.variable(ramp(6), 2, 3), b.f32([]float32{1}))
		if b.Err() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestStepsStartAtOne(t *testing.T) {
	b := newBench(t)
	w, zero := b.variable(ramp(6), 6), b.f32([]float32{0})
	ops.Adam(w, b.variable(ramp(6), 6), b.variable(ramp(6), 6), b.f32(ramp(6), 6), zero, zero, 0.9,
		0.9, 1e-9)
	if _, err := b.machine(nil); err == nil || !strings.Contains(err.Error(), "step 0") {
		t.Errorf("step 0: %v", err)
	}
}

// BenchmarkAdafactor is in bytes of the parameter per second.
func BenchmarkAdafactor(b *testing.B) {
	for _, sizes := range [][]int{{1024, 4096}, {8, 512, 1024}, {1 << 22}} {
		w := tensor.Of(graph.F32, sizes...)
		b.Run(w.String(), func(b *testing.B) {
			bb := newBench(b)
			v := bb.variable(randoms(rand.New(rand.NewPCG(1, 1)), w.Elems()), sizes...)
			var state []graph.Value
			for i, ty := range ops.AdafactorState(w, 0) {
				state = append(state, bb.State(fmt.Sprint("state", i), ty, graph.Init{}))
			}
			one := bb.f32([]float32{1})
			ops.Adafactor(v, state, bb.f32(ramp(w.Elems()), sizes...), one, one,
				ops.AdafactorConfig{})
			m := bb.run()
			b.SetBytes(w.Bytes())
			for b.Loop() {
				if err := m.Step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
