package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/kernel/pool"
)

func TestTop2(t *testing.T) {
	b := newBench(t)
	gates := b.f32([]float32{
		0.5, 0.3, 0.2,
		0.2, 0.3, 0.5,
		0.4, 0.4, 0.2, // a tie of the first
		0.2, 0.4, 0.4,
		0.2, 0.6, 0.2, // a tie of the second
		1, 0, 0, // no second
	}, 6, 3)
	first, second := ops.Top2(gates, b.seed(1), "a", 0)
	m := b.run()
	if got := m.Value(first).I32(); !slices.Equal(got, []int32{0, 2, 0, 1, 1, 0}) {
		t.Errorf("first choices %v", got)
	}
	if got := m.Value(second).I32(); !slices.Equal(got, []int32{1, 1, 1, 2, 0, -1}) {
		t.Errorf("second choices %v", got)
	}
}

// TestSecondChoicesAreKeptByChance: with probability gate/threshold.
func TestSecondChoicesAreKeptByChance(t *testing.T) {
	const n = 10000
	for _, gate := range []float64{0.05, 0.1, 0.3} {
		b := newBench(t)
		row := []float32{float32(1 - gate), float32(gate)}
		_, second := ops.Top2(b.f32(slices.Repeat(row, n), 10, n/10, 2), b.seed(1), "a", 0.2)
		kept := 0.0
		for _, e := range b.run().Value(second).I32() {
			if e >= 0 {
				kept++
			}
		}
		p := min(1, gate/0.2)
		if math.Abs(kept/n-p) > 5*math.Sqrt(p*(1-p)/n)+1e-4 {
			t.Errorf("a gate of %v is kept %v of times, want %v", gate, kept/n, p)
		}
	}
}

// choice draws experts, −1 for none now and then; sometimes all the same one.
func choice(t *rapid.T, n, experts int, none bool) []int32 {
	low := 0
	if none {
		low = -1
	}
	if rapid.Bool().Draw(t, "all on one") {
		return slices.Repeat([]int32{int32(rapid.IntRange(low, experts-1).Draw(t, "one"))}, n)
	}
	return rapid.SliceOfN(rapid.Int32Range(int32(low), int32(experts-1)), n, n).Draw(t, "choices")
}

func TestPositionsAgainstQueues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, s := rapid.IntRange(1, 3).Draw(rt, "groups"), rapid.IntRange(1, 12).Draw(rt, "tokens")
		experts, capacity := rapid.IntRange(1, 4).Draw(rt, "experts"),
			rapid.IntRange(1, 12).Draw(rt, "capacity")
		idx := [][]int32{choice(rt, g*s, experts, false), choice(rt, g*s, experts, true)}
		want := [2][]int32{}
		for group := range g {
			queues := make([][]int, experts)
			for k := range 2 {
				for _, e := range idx[k][group*s : (group+1)*s] {
					slot := int32(-1)
					if e >= 0 && len(queues[e]) < capacity {
						slot = e*int32(capacity) + int32(len(queues[e]))
						queues[e] = append(queues[e], 1)
					}
					want[k] = append(want[k], slot)
				}
			}
		}
		b := newBench(t)
		slot1, slot2 := ops.Positions(b.i32(idx[0], g, s), b.i32(idx[1], g, s), experts, capacity)
		dispatch := ops.Dispatch(slot1, slot2, experts*capacity)
		m := b.run()
		if !slices.Equal(m.Value(slot1).I32(), want[0]) ||
			!slices.Equal(m.Value(slot2).I32(), want[1]) {
			rt.Fatalf("slots %v %v, want %v", m.Value(slot1).I32(), m.Value(slot2).I32(), want)
		}
		for i, x := range m.Value(dispatch).F32() {
			token, slot := i/(experts*capacity), int32(i%(experts*capacity))
			if (x == 1) != (want[0][token] == slot || want[1][token] == slot) {
				rt.Fatalf("dispatch of token %d to slot %d is %v", token, slot, x)
			}
		}
	})
}

func TestRouteAgainstSorting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, experts := rapid.IntRange(1, 20).Draw(rt, "tokens"),
			rapid.IntRange(1, 5).Draw(rt, "experts")
		idx := [][]int32{choice(rt, n, experts, false), choice(rt, n, experts, true)}
		rows, inv := []int32{}, slices.Repeat([]int32{-1}, 2*n)
		offsets := []int32{0}
		for e := range int32(experts) {
			for k := range 2 {
				for token, c := range idx[k] {
					if c == e {
						inv[2*token+k] = int32(len(rows))
						rows = append(rows, int32(token))
					}
				}
			}
			offsets = append(offsets, int32(len(rows)))
		}
		for len(rows) < 2*n {
			rows = append(rows, -1)
		}
		b := newBench(t)
		r, i, o := ops.Route(b.i32(idx[0], n), b.i32(idx[1], n), experts)
		m := b.run()
		for k, want := range [][]int32{rows, inv, offsets} {
			if got := m.Value([]graph.Value{r, i, o}[k]).I32(); !slices.Equal(got, want) {
				rt.Fatalf("result %d is %v, want %v", k, got, want)
			}
		}
	})
}

// layer is a mixture of experts, one matrix an expert, built in several ways on
// the same operands.
type layer struct {
	groups, tokens, experts, capacity, k, n int
	x, gates, w                             []float32
}

func newLayer(groups, tokens, experts, k, n int, seed uint64) layer {
	rng := rand.New(rand.NewPCG(seed, 1))
	l := layer{groups: groups, tokens: tokens, experts: experts, capacity: tokens, k: k, n: n}
	l.x, l.w = randoms(rng, groups*tokens*k), randoms(rng, experts*k*n)
	l.gates = randoms(rng, groups*tokens*experts)
	return l
}

// results are the output and the gradients of x, the gates and the weights, of a
// build of the layer that is given the first and second gate and choice.
func (l layer) results(t testing.TB, threads *pool.Pool,
	build func(b *bench, x, w graph.Value, idx, gate [2]graph.Value) graph.Value) [][]float32 {
	b := newBench(t)
	x, w := b.f32(l.x, l.groups, l.tokens, l.k), b.f32(l.w, l.experts, l.k, l.n)
	logits := b.f32(l.gates, l.groups, l.tokens, l.experts)
	gates := ops.Softmax(logits)
	idx1, idx2 := ops.Top2(gates, b.seed(3), "gate", 0.2)
	g1, g2 := ops.TakeLast(gates, idx1), ops.TakeLast(gates, idx2)
	y := build(b, x, w, [2]graph.Value{idx1, idx2}, [2]graph.Value{g1, g2})
	weights := b.f32(ramp(y.Type().Elems()), y.Type().Sizes()...)
	grads := autodiff.Grad(ops.Mean(ops.Mul(y, weights)), x, logits, w)
	m, err := b.machine(threads)
	if err != nil {
		t.Fatal(err)
	}
	out := [][]float32{slices.Clone(m.Value(y).F32())}
	for _, d := range grads {
		out = append(out, slices.Clone(m.Value(d).F32()))
	}
	return out
}

// dense is the layer by products with one-hot matrices.
func (l layer) dense(b *bench, x, w graph.Value, idx, gate [2]graph.Value) graph.Value {
	slots := l.experts * l.capacity
	slot1, slot2 := ops.Positions(idx[0], idx[1], l.experts, l.capacity)
	in := ops.MatMulT(ops.Dispatch(slot1, slot2, slots), x, true, false) // [g slots k]
	in = ops.Transpose(ops.ReshapeSizes(in, l.groups, l.experts, l.capacity, l.k), 1, 0, 2, 3)
	out := ops.MatMul(ops.ReshapeSizes(in, l.experts, l.groups*l.capacity, l.k), w)
	out = ops.Transpose(ops.ReshapeSizes(out, l.experts, l.groups, l.capacity, l.n), 1, 0, 2, 3)
	combine := ops.Combine(slot1, slot2, gate[0], gate[1], slots)
	return ops.MatMul(combine, ops.ReshapeSizes(out, l.groups, slots, l.n))
}

// packed is the layer by routing, with the given expert products.
func (l layer) packed(product func(x, w, offsets graph.Value) graph.Value) func(b *bench, x,
	w graph.Value, idx, gate [2]graph.Value) graph.Value {
	return func(b *bench, x, w graph.Value, idx, gate [2]graph.Value) graph.Value {
		t := l.groups * l.tokens
		rows, inv, offsets := ops.Route(idx[0], idx[1], l.experts)
		in := ops.GatherRows(ops.ReshapeSizes(x, t, l.k), rows, inv)
		column := func(v graph.Value) graph.Value { return ops.ReshapeSizes(v, t, 1) }
		gates := ops.Concat(1, column(gate[0]), column(gate[1]))
		y := ops.CombineRows(product(in, w, offsets), gates, inv, rows)
		return ops.ReshapeSizes(y, l.groups, l.tokens, l.n)
	}
}

func chained(x, w, offsets graph.Value) graph.Value {
	return ops.ExpertMatMul(x, ops.Unstack(w), offsets)
}

// TestDenseAndSparseLayersAgree: with room for all tokens, outputs and gradients
// of all formulations are the same but for rounding.
func TestDenseAndSparseLayersAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := func(name string, n int) int { return rapid.IntRange(1, n).Draw(rt, name) }
		l := newLayer(size("groups", 3), size("tokens", 9), 1+size("experts", 4), size("k", 5),
			size("n", 5), rapid.Uint64().Draw(rt, "seed"))
		want := l.results(t, nil, l.dense)
		for name, product := range map[string]func(x, w, o graph.Value) graph.Value{
			"chain": chained, "grouped": ops.GroupedMatMul,
		} {
			got := l.results(t, nil, l.packed(product))
			for i, what := range []string{"output", "gradient of x", "gradient of the gates",
				"gradient of the weights"} {
				for k, v := range want[i] {
					if math.Abs(float64(v-got[i][k])) > 1e-5*(1+math.Abs(float64(v))) {
						rt.Fatalf("%s: %s, element %d: %v, dense %v", name, what, k, got[i][k], v)
					}
				}
			}
		}
	})
}

// TestLayersDoNotDependOnThreads: bit for bit, at a size that is split.
func TestLayersDoNotDependOnThreads(t *testing.T) {
	threads := pool.New(3)
	defer threads.Close()
	l := newLayer(3, 500, 5, 70, 90, 1)
	for name, build := range map[string]func(*bench, graph.Value, graph.Value, [2]graph.Value,
		[2]graph.Value) graph.Value{
		"dense": l.dense, "chain": l.packed(chained), "grouped": l.packed(ops.GroupedMatMul),
	} {
		l.capacity = 250 // some are dropped
		one, many := l.results(t, nil, build), l.results(t, threads, build)
		for i := range one {
			if !slices.Equal(one[i], many[i]) {
				t.Errorf("%s: result %d depends on threads", name, i)
			}
		}
	}
}

// TestExpertChainIsLean: forward one node an expert; backward one for the rows'
// and one for the weights' gradient, and nothing added up.
func TestExpertChainIsLean(t *testing.T) {
	b := newBench(t)
	x, offsets := b.f32(ramp(12), 6, 2), b.i32([]int32{0, 1, 3, 6}, 4)
	weights := []graph.Value{b.f32(ramp(4), 2, 2), b.f32(ramp(4), 2, 2), b.f32(ramp(4), 2, 2)}
	y := ops.Sum(ops.ExpertMatMul(x, weights, offsets))
	autodiff.Grad(y, append([]graph.Value{x}, weights...)...)
	count := map[string]int{}
	for _, n := range b.Nodes() {
		count[n.OpName()]++
	}
	if count["expert-matmul"] != 6 || count["expert-outer"] != 3 || count["add"] != 0 {
		t.Errorf("nodes: %v", count)
	}
}

func TestExpertGradientHasNoSecond(t *testing.T) {
	b := newBench(t)
	x, w := b.f32(ramp(12), 6, 2), b.f32(ramp(4), 2, 2)
	y := ops.ExpertMatMul(x, []graph.Value{w}, b.i32([]int32{0, 6}, 2))
	d := autodiff.Grad(ops.Sum(ops.Mul(y, y)), x)
	autodiff.Grad(ops.Sum(d[0]), w)
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "no gradient") {
		t.Errorf("error %v", err)
	}
}

// TestBadRoutes: data out of range is an error that names it.
func TestBadRoutes(t *testing.T) {
	for i, c := range []struct {
		build func(b *bench)
		want  string
	}{
		{func(b *bench) {
			ops.Route(b.i32([]int32{0, 3}, 2), b.i32([]int32{0, 0}, 2),
				3)
		}, "index 3 at position 1"},
		{func(b *bench) {
			ops.Positions(b.i32([]int32{7}, 1, 1), b.i32([]int32{0}, 1, 1), 3,
				2)
		}, "index 7"},
		{func(b *bench) { ops.Dispatch(b.i32([]int32{4}, 1), b.i32([]int32{0}, 1), 4) }, "index 4"},
		{func(b *bench) { ops.TakeLast(b.f32(ramp(4), 1, 4), b.i32([]int32{9}, 1)) }, "index 9"},
		{func(b *bench) { ops.PutLast(b.i32([]int32{9}, 1), b.f32(ramp(1), 1), 4) }, "index 9"},
		{func(b *bench) {
			ops.GatherRows(b.f32(ramp(2), 1, 2), b.i32([]int32{1, 0}, 2),
				b.i32([]int32{0, 1}, 1, 2))
		}, "index 1"},
		{func(b *bench) {
			ops.SumRows(b.f32(ramp(2), 2, 1), b.i32([]int32{0, 2}, 1, 2),
				b.i32([]int32{0, 0}, 2))
		}, "index 2"},
		{func(b *bench) {
			chained(b.f32(ramp(4), 4, 1), b.f32(ramp(2), 2, 1, 1),
				b.i32([]int32{0, 5, 4}, 3))
		}, "rows 0 to 5 of expert 0"},
		{func(b *bench) {
			ops.GroupedMatMul(b.f32(ramp(4), 4, 1), b.f32(ramp(2), 2, 1, 1),
				b.i32([]int32{0, 2, 1}, 3))
		}, "rows 2 to 1 of expert 1"},
	} {
		b := newBench(t)
		c.build(b)
		if _, err := b.machine(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("case %d: %v, want %q", i, err, c.want)
		}
	}
}

func TestBadLayers(t *testing.T) {
	for i, build := range []func(b *bench, x, i graph.Value){
		func(_ *bench, x, _ graph.Value) { ops.ExpertMatMul(x, nil, x) },
		func(_ *bench, x, i graph.Value) { ops.ExpertMatMul(x, []graph.Value{x, {}}, i) },
		func(b *bench, x, i graph.Value) {
			ops.ExpertMatMul(x,
				[]graph.Value{b.f32(ramp(8), 2, 2, 2)}, i)
		},
		func(_ *bench, x, i graph.Value) { ops.ExpertMatMul(x, []graph.Value{x}, i) },
		func(_ *bench, _, i graph.Value) { ops.Positions(i, i, 2, 0) },
		func(_ *bench, _, i graph.Value) { ops.Positions(i, i, 1<<20, 1<<20) },
		func(_ *bench, _, i graph.Value) { ops.Dispatch(i, i, 0) },
		func(_ *bench, _, i graph.Value) { ops.Route(i, i, 0) },
		func(b *bench, _, i graph.Value) { ops.Top2(b.f32(ramp(3), 3, 1), b.seed(1), "a", 0.2) },
		func(_ *bench, x, i graph.Value) { ops.PutLast(i, x, 0) },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			b := newBench(t)
			build(b, b.f32(ramp(12), 6, 2), b.i32([]int32{0, 3, 6}, 3))
			if b.Err() == nil {
				t.Error("no error")
			}
		})
	}
}
