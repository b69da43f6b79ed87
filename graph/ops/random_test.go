package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/reference"
)

// bench is a graph whose inputs are given with their data.
type bench struct {
	*graph.Graph
	t    testing.TB
	data map[graph.Value]tensor.View
}

func newBench(t testing.TB) *bench {
	return &bench{Graph: graph.New(), t: t, data: map[graph.Value]tensor.View{}}
}

// next is a name that is free.
func (b *bench) next(name string) string { return fmt.Sprint(name, b.Len()) }

func (b *bench) f32(x []float32, sizes ...int) graph.Value {
	v := b.Input(b.next("x"), tensor.Of(graph.F32, sizes...))
	b.data[v] = tensor.FromF32(x, sizes...)
	return v
}

func (b *bench) i32(x []int32, sizes ...int) graph.Value {
	v := b.Input(b.next("i"), tensor.Of(graph.I32, sizes...))
	b.data[v] = tensor.FromI32(x, sizes...)
	return v
}

func (b *bench) variable(x []float32, sizes ...int) graph.Value {
	v := b.Variable(b.next("w"), tensor.Of(graph.F32, sizes...), graph.Init{})
	b.data[v] = tensor.FromF32(x, sizes...)
	return v
}

// seed is the seed 5 at a step.
func (b *bench) seed(step int32) graph.Value { return b.i32([]int32{5, step}, 2) }

// machine runs every node of the graph once.
func (b *bench) machine(p *pool.Pool) (*reference.Machine, error) {
	b.t.Helper()
	if b.Err() != nil {
		b.t.Fatal(b.Err())
	}
	m, err := reference.New(b.Graph, slices.Repeat([]bool{true}, b.Len()), p)
	if err != nil {
		b.t.Fatal(err)
	}
	for v, x := range b.data {
		copy(m.Value(v).Data, x.Data)
	}
	return m, m.Step()
}

func (b *bench) run() *reference.Machine {
	b.t.Helper()
	m, err := b.machine(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return m
}

func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i + 1)
	}
	return x
}

func TestDropoutKeepsItsShareAndScale(t *testing.T) {
	for _, rate := range []float32{0.1, 0.5, 0.9} {
		b := newBench(t)
		const n = 20000
		y := ops.Dropout(b.f32(ramp(n), 100, 200), b.seed(1), rate, "layer")
		kept := 0
		for i, v := range b.run().Value(y).F32() {
			if v == 0 {
				continue
			}
			kept++
			if want := float64(i+1) / float64(1-rate); math.Abs(float64(v)/want-1) > 1e-6 {
				t.Fatalf("rate %v: element %d is %v, want %v", rate, i, v, want)
			}
		}
		share, sigma := float64(kept)/n, math.Sqrt(float64(rate*(1-rate))/n)
		if math.Abs(share-float64(1-rate)) > 5*sigma {
			t.Errorf("rate %v keeps %v", rate, share)
		}
	}
}

// TestRandomnessDependsOnSeedStepAndName: and on nothing else.
func TestRandomnessDependsOnSeedStepAndName(t *testing.T) {
	b := newBench(t)
	x, seed := b.f32(ramp(400), 400), b.seed(1)
	same := []graph.Value{ops.Dropout(x, seed, 0.5, "a"), ops.Dropout(x, b.seed(1), 0.5, "a")}
	others := []graph.Value{ops.Dropout(x, seed, 0.5, "b"), ops.Dropout(x, b.seed(2), 0.5, "a"),
		ops.Dropout(x, b.i32([]int32{1, 5}, 2), 0.5, "a")}
	m := b.run()
	mask := func(v graph.Value) []float32 { return m.Value(v).F32() }
	if !slices.Equal(mask(same[0]), mask(same[1])) {
		t.Error("the same seed, step and name give other noise")
	}
	for i, v := range others {
		agree := 0
		for k, x := range mask(v) {
			if (x == 0) == (mask(same[0])[k] == 0) {
				agree++
			}
		}
		if agree < 140 || agree > 260 {
			t.Errorf("noise %d agrees in %d of 400 places", i, agree)
		}
	}
}

func TestSharedNoise(t *testing.T) {
	b := newBench(t)
	ones := slices.Repeat([]float32{1}, 4*8*33)
	y := ops.Dropout(b.f32(ones, 4, 8, 33), b.seed(1), 0.5, "a", 1)
	last := ops.Dropout(b.f32(ones, 4, 8, 33), b.seed(1), 0.5, "a", -1)
	m := b.run()
	got := m.Value(y).F32()
	for i := range got {
		if batch, d := i/(8*33), i%33; got[i] != got[batch*8*33+d] {
			t.Fatalf("element %d differs along the shared axis", i)
		}
	}
	rows := m.Value(last).F32()
	for i := range rows {
		if rows[i] != rows[i/33*33] {
			t.Fatalf("element %d differs along the shared last axis", i)
		}
	}
	if len(slices.Compact(slices.Clone(rows))) < 4 {
		t.Error("noise is the same in all rows")
	}
}

func TestNoNoise(t *testing.T) {
	b := newBench(t)
	x := b.f32(ramp(3), 3)
	if ops.Dropout(x, b.seed(1), 0, "a") != x || ops.Jitter(x, b.seed(1), 0, "a") != x {
		t.Error("no noise is not x itself")
	}
}

func TestJitterStaysInItsInterval(t *testing.T) {
	b := newBench(t)
	y := ops.Jitter(b.f32(slices.Repeat([]float32{2}, 5000), 5000), b.seed(1), 0.01, "a")
	sum, low, high := 0.0, 3.0, 0.0
	for _, v := range b.run().Value(y).F32() {
		sum += float64(v)
		low, high = min(low, float64(v)), max(high, float64(v))
	}
	if low < 1.98 || high > 2.02 || low > 1.981 || high < 2.019 || math.Abs(sum/5000-2) > 1e-3 {
		t.Errorf("jitter of 2 is in [%v, %v], mean %v", low, high, sum/5000)
	}
}

func TestBadNoise(t *testing.T) {
	for name, build := range map[string]func(b *bench, x, seed graph.Value){
		"rate 1":        func(b *bench, x, seed graph.Value) { ops.Dropout(x, seed, 1, "a") },
		"negative rate": func(b *bench, x, seed graph.Value) { ops.Dropout(x, seed, -0.5, "a") },
		"rate NaN": func(b *bench, x, seed graph.Value) {
			ops.Dropout(x, seed, float32(math.NaN()), "a")
		},
		"axis":          func(b *bench, x, seed graph.Value) { ops.Dropout(x, seed, 0.5, "a", 2) },
		"negative axis": func(b *bench, x, seed graph.Value) { ops.Dropout(x, seed, 0.5, "a", -3) },
		"seed":          func(b *bench, x, seed graph.Value) { ops.Dropout(x, x, 0.5, "a") },
		"jitter":        func(b *bench, x, seed graph.Value) { ops.Jitter(x, seed, 2, "a") },
		"threshold":     func(b *bench, x, seed graph.Value) { ops.Top2(x, seed, "a", -1) },
		"causal":        func(b *bench, x, seed graph.Value) { ops.CausalMask(b.Graph, -1) },
	} {
		b := newBench(t)
		build(b, b.f32(ramp(6), 2, 3), b.seed(1))
		if b.Err() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestMasks(t *testing.T) {
	b := newBench(t)
	padding := ops.PaddingMask(b.i32([]int32{7, 0, 3, 1, 0, 0}, 2, 3))
	causal := ops.CausalMask(b.Graph, 3)
	m := b.run()
	const no = -1e9
	if got := m.Value(padding).F32(); !slices.Equal(got, []float32{0, no, 0, 0, no, no}) {
		t.Errorf("padding mask %v", got)
	}
	if got := padding.Type().String(); got != "f32[2 1 1 3]" {
		t.Errorf("padding mask has type %s", got)
	}
	if got := m.Value(causal).F32(); !slices.Equal(got, []float32{0, no, no, 0, 0, no, 0, 0, 0}) {
		t.Errorf("causal mask %v", got)
	}
}

// TestRandomOperationsHaveNames: two of one name and seed would draw the same
// numbers; that is an error, whatever they are.
func TestRandomOperationsHaveNames(t *testing.T) {
	draw := map[string]func(x, seed graph.Value) graph.Value{
		"dropout": func(x, seed graph.Value) graph.Value { return ops.Dropout(x, seed, 0.5, "a") },
		"jitter":  func(x, seed graph.Value) graph.Value { return ops.Jitter(x, seed, 0.5, "a") },
		"normal": func(x, seed graph.Value) graph.Value {
			return ops.RandomNormal(seed, x.Type(), "a")
		},
		"uniform": func(x, seed graph.Value) graph.Value {
			return ops.RandomUniform(seed, x.Type(), "a")
		},
		"top2": func(x, seed graph.Value) graph.Value {
			first, _ := ops.Top2(x, seed, "a", 0.2)
			return first
		},
	}
	for one, first := range draw {
		for two, second := range draw {
			b := newBench(t)
			x, seed := b.f32(ramp(12), 3, 4), b.seed(1)
			if !first(x, seed).Valid() || b.Err() != nil {
				t.Fatal(b.Err())
			}
			if second(x, seed); b.Err() == nil {
				t.Errorf("%s and %s share their random numbers", one, two)
			}
		}
	}
	b := newBench(t)
	x, seed := b.f32(ramp(12), 3, 4), b.seed(1)
	ops.Dropout(x, seed, 0, "a") // draws nothing
	ops.Jitter(x, seed, 0, "a")
	ops.Top2(x, seed, "a", 0)
	ops.Dropout(x, seed, 0.5, "a")
	if b.Err() != nil {
		t.Error(b.Err())
	}
}
