package ops_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// smallTraining is steps of SmallAdamW on a variable "w0": what it and its state are after them.
func smallTraining(t testing.TB, tr training, moments graph.DType, threads *pool.Pool,
	decay float32) []tensor.View {
	t.Helper()
	tr.state = ops.SmallAdamState(tensor.Of(graph.F32, tr.sizes...), moments)
	tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, step graph.Value) *graph.Node {
		return ops.SmallAdamW(w, s, grad, lr, step, 0.9, 0.98, 1e-9, decay)
	}
	return tr.views(t, threads)
}

// scrambled is the finaliser of SplitMix64.
func scrambled(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// momentWords are what n moments are rounded by in a step of a variable of this name, or what the
// variable is.
func momentWords(name string, step, n int, variable bool) []uint32 {
	h := fnv.New64a()
	h.Write([]byte(name))
	words := make([]uint32, n)
	key := scrambled(scrambled(uint64(step)) ^ h.Sum64())
	if variable {
		key = scrambled(key)
	}
	vec.Philox(words, key, 0)
	return words
}

// inSteps is x, 0 or more, rounded to a multiple of a step: up with the chance of random/2¹⁶ being
// less than what is cut off.
func inSteps(x, step float64, random uint32) float64 {
	return math.Floor(x/step+float64(float64(random)/65536)) * step
}

// in8 rounds a block in place, as doc comments of package vec have it.
func in8(block []float64, octaves int, least float64, random func(i int) uint32) {
	largest := 0.0
	for _, x := range block {
		largest = max(largest, math.Abs(x))
	}
	f, e := math.Frexp(largest) // f·2^e, f from 0.5
	if 2*f >= 1.875 {
		e++
	}
	scale := math.Ldexp(1, max(e-1, -87)-octaves)
	for i, x := range block {
		y := math.Abs(x)/scale + 1
		_, e := math.Frexp(y)
		y = inSteps(y, math.Ldexp(1, e-1-3), random(i)) - 1
		block[i] = math.Copysign(max(y, least)*scale, x)
	}
}

// in16 rounds to bfloat16.
func in16(x []float64, random func(i int) uint32) {
	for i, v := range x {
		_, e := math.Frexp(v)
		x[i] = math.Copysign(inSteps(math.Abs(v), math.Ldexp(1, e-8), random(i)), v)
	}
}

// unpacked is the moments of a state, first and second.
func unpacked(state []tensor.View, moments graph.DType) (m, v []float32) {
	n := state[0].Type.Elems()
	m, v = make([]float32, n), make([]float32, n)
	if moments == graph.BF16 {
		vec.F32FromBF16(m, state[0].U16())
		vec.F32FromBF16(v, state[1].U16())
		return m, v
	}
	for lo := 0; lo < n; lo += 256 {
		hi := min(n, lo+256)
		vec.FromSigned8(m[lo:hi], state[0].U8()[lo:hi], state[1].F32()[lo/256])
		vec.FromUnsigned8(v[lo:hi], state[2].U8()[lo:hi], state[3].F32()[lo/256])
	}
	return m, v
}

// TestSmallAdamWOnThreads: bits do not depend on how many there are.
func TestSmallAdamWOnThreads(t *testing.T) {
	threads := pool.New(3)
	defer threads.Close()
	for _, moments := range []graph.DType{graph.BF16, graph.U8} {
		tr := newTraining(9, 40, 1031)
		want := smallTraining(t, tr, moments, nil, 0.1)
		for i, v := range smallTraining(t, tr, moments, threads, 0.1) {
			if !bytes.Equal(v.Data, want[i].Data) {
				t.Errorf("%s: operand %d differs on three threads", moments, i)
			}
		}
	}
}

// TestSmallAdamW against the algorithm in float64, with moments, and variables of bfloat16, rounded
// by the same random numbers. Where a number is too close to what rounding turns on, either way is
// right: none is.
func TestSmallAdamW(t *testing.T) {
	for _, half := range []bool{false, true} {
		for _, moments := range []graph.DType{graph.BF16, graph.U8} {
			for _, sizes := range [][]int{{1}, {255}, {3, 256}, {2, 531}} {
				tr := newTraining(19, sizes...)
				tr.half = half
				for _, g := range tr.grads {
					for i := range g { // neighbours of other sizes
						g[i] *= float32(math.Pow(10, float64(i%7-3)))
					}
				}
				got := smallTraining(t, tr, moments, nil, 0.1)
				w, m, v := smallReference(tr, moments)
				name := fmt.Sprint(half, moments, sizes)
				first, second := unpacked(got[1:], moments)
				near(t, name+" w", widened(got[0]), w)
				near(t, name+" m", first, m)
				near(t, name+" v", second, v)
			}
		}
	}
}

// widened is a view of f32 or bf16 as f32.
func widened(v tensor.View) []float32 {
	if v.Type.DType == graph.F32 {
		return v.F32()
	}
	x := make([]float32, len(v.U16()))
	vec.F32FromBF16(x, v.U16())
	return x
}

// smallReference is the variable and the moments after the steps of smallTraining, in float64.
func smallReference(tr training, moments graph.DType) (w, m, v []float64) {
	const b1, b2, eps, decay = 0.9, 0.98, 1e-9, 0.1
	w, m, v = widen(tr.w), make([]float64, len(tr.w)), make([]float64, len(tr.w))
	nearest := func(int) uint32 { return 0x8000 }
	if tr.half {
		in16(w, nearest) // no number to start from is a tie
	}
	for k, g := range tr.grads {
		corr1, corr2 := 1-math.Pow(b1, float64(k+1)), 1-math.Pow(b2, float64(k+1))
		for i := range w {
			x := float64(g[i])
			m[i] = float64(b1*m[i]) + float64((1-b1)*x)
			v[i] = float64(b2*v[i]) + float64((1-b2)*x*x)
			w[i] -= float64(rate*decay*w[i]) +
				float64(rate*(m[i]/corr1)/(math.Sqrt(v[i]/corr2)+eps))
		}
		name := "w0"
		if tr.half {
			name = "w1"
			words := momentWords(name, k+1, len(w), true)
			in16(w, func(i int) uint32 { return words[i] & 0xffff })
		}
		words := momentWords(name, k+1, len(w), false)
		low := func(i int) uint32 { return words[i] & 0xffff }
		high := func(i int) uint32 { return words[i] >> 16 }
		if moments == graph.BF16 {
			in16(m, low)
			in16(v, high)
			continue
		}
		for lo := 0; lo < len(w); lo += 256 {
			hi := min(len(w), lo+256)
			in8(m[lo:hi], 15, 0, func(i int) uint32 { return low(lo + i) })
			in8(v[lo:hi], 31, 0.125, func(i int) uint32 { return high(lo + i) })
		}
	}
	return w, m, v
}

// TestHalfVariablesMove: a variable of bfloat16 whose steps are far below its own moves, on average
// over many, as one of f32 does.
func TestHalfVariablesMove(t *testing.T) {
	const n, steps = 4096, 100
	tr := training{sizes: []int{n}, w: make([]float32, n), half: true}
	for i := range tr.w {
		tr.w[i] = 1
	}
	for range steps {
		g := make([]float32, n)
		for i := range g {
			g[i] = 1
		}
		tr.grads = append(tr.grads, g)
	}
	tr.state = ops.SmallAdamState(tensor.Of(graph.F32, n), graph.BF16)
	tr.step = func(g *graph.Graph, w graph.Value, s []graph.Value,
		grad, lr, step graph.Value) *graph.Node {
		return ops.SmallAdamW(w, s, grad, ops.Scale(lr, 1e-3), step, 0.9, 0.999, 1e-8, 0)
	}
	mean := 0.0
	for _, x := range widened(tr.views(t, nil)[0]) {
		mean += float64(x) / n
	}
	if want := 1 - steps*rate*1e-3; math.Abs(mean-want) > 5e-4 {
		t.Errorf("variables are %v on average, want %v", mean, want)
	}
}

// TestSmallMomentsStay: without gradients a variable of an untouched state stays, bit for bit, and
// so do blocks without gradients beside others.
func TestSmallMomentsStay(t *testing.T) {
	for _, moments := range []graph.DType{graph.BF16, graph.U8} {
		tr := newTraining(10, 600)
		for _, g := range tr.grads {
			clear(g[:512])
		}
		got := smallTraining(t, tr, moments, nil, 0)
		m, _ := unpacked(got[1:], moments)
		for i, x := range got[0].F32()[:512] {
			if x != tr.w[i] || m[i] != 0 {
				t.Fatalf("%s: element %d is %v with the moment %v, was %v", moments, i, x, m[i],
					tr.w[i])
			}
		}
		if got[0].F32()[599] == tr.w[599] {
			t.Errorf("%s: what has gradients stays, too", moments)
		}
	}
}

// TestSmallMomentsOfNoNumbers: a gradient that is not finite spoils its element, at once, and of 8
// bits its block, but nothing else.
func TestSmallMomentsOfNoNumbers(t *testing.T) {
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, moments := range []graph.DType{graph.BF16, graph.U8} {
			tr := newTraining(11, 600)
			tr.grads[1][300] = float32(odd)
			got := smallTraining(t, tr, moments, nil, 0.1)
			for i, x := range got[0].F32() {
				block := moments == graph.U8 && i >= 256 && i < 512
				if bad := x != x; bad != (block || i == 300) {
					t.Fatalf("%s, %v: element %d is %v", moments, odd, i, x)
				}
			}
		}
	}
}

// TestSmallMomentsMove: a second moment that grows by less than a step of its format grows all the
// same, as that of f32 does, on average over many.
func TestSmallMomentsMove(t *testing.T) {
	const n, steps = 512, 600
	for _, moments := range []graph.DType{graph.BF16, graph.U8} {
		tr := training{sizes: []int{n}, w: make([]float32, n)}
		for k := range steps {
			g := make([]float32, n)
			for i := range g {
				g[i] = 1
				if k > 100 {
					g[i] = 2
				}
			}
			tr.grads = append(tr.grads, g)
		}
		tr.state = ops.SmallAdamState(tensor.Of(graph.F32, n), moments)
		tr.step = func(_ *graph.Graph, w graph.Value, s []graph.Value,
			grad, lr, step graph.Value) *graph.Node {
			return ops.SmallAdamW(w, s, grad, lr, step, 0.9, 0.999, 1e-8, 0)
		}
		_, v := unpacked(tr.views(t, nil)[1:], moments)
		mean, want := 0.0, 0.0
		for _, x := range v {
			mean += float64(x) / n
		}
		for _, g := range tr.grads {
			want = float64(0.999*want) + float64(0.001*float64(g[0])*float64(g[0]))
		}
		if math.Abs(mean/want-1) > 0.03 {
			t.Errorf("%s: second moments are %v on average, want %v", moments, mean, want)
		}
	}
}

// states are n variables of a type.
func states(b *bench, t graph.Type, n int) (list []graph.Value) {
	for i := range n {
		list = append(list, b.State(fmt.Sprint("s", i), t, graph.Init{}))
	}
	return list
}

// TestBadSmallAdamW: mistakes are errors of the graph.
func TestBadSmallAdamW(t *testing.T) {
	for want, apply := range map[string]func(b *bench, w, g, one graph.Value){
		"want u8[6] for the moments": func(b *bench, w, g, one graph.Value) {
			ops.SmallAdamW(w, states(b, w.Type(), 4), g, one, one, 0.9, 0.9, 0, 0)
		},
		"want bf16[6] for the moments": func(b *bench, w, g, one graph.Value) {
			ops.SmallAdamW(w, states(b, w.Type(), 2), g, one, one, 0.9, 0.9, 0, 0)
		},
		"weight decay -1 is negative": func(b *bench, w, g, one graph.Value) {
			half := tensor.Of(graph.BF16, 6)
			ops.SmallAdamW(w, states(b, half, 2), g, one, one, 0.9, 0.9, 0, -1)
		},
	} {
		b := newBench(t)
		apply(b, b.variable(ramp(6), 6), b.f32(ramp(6), 6), b.f32([]float32{1}))
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

// BenchmarkSmallAdamW is in bytes that are read and written per second, beside AdamW's.
func BenchmarkSmallAdamW(b *testing.B) {
	const n = 1 << 24
	w := tensor.Of(graph.F32, n)
	for _, moments := range []graph.DType{graph.F32, graph.BF16, graph.U8} {
		b.Run(moments.String(), func(b *testing.B) {
			bb := newBench(b)
			v, g := bb.variable(make([]float32, n), n), bb.f32(make([]float32, n), n)
			one := bb.f32([]float32{1})
			var state []graph.Value
			for i, t := range ops.SmallAdamState(w, moments) {
				state = append(state, bb.State(fmt.Sprint("state", i), t, graph.Init{}))
			}
			update := ops.SmallAdamW
			if moments == graph.F32 {
				update = func(w graph.Value, s []graph.Value, grad, lr, step graph.Value,
					beta1, beta2, eps, decay float32, _ ...ops.Gate) *graph.Node {
					return ops.AdamW(w, s[0], s[1], grad, lr, step, beta1, beta2, eps, decay)
				}
			}
			node := update(v, state, g, one, one, 0.9, 0.999, 1e-8, 0.1)
			m := bb.run()
			b.SetBytes(node.Cost().Bytes)
			for b.Loop() {
				if err := m.Step(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
