//go:build linux && amd64 && !nocuda

package ops

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

// TestCUDAChainsHaveTheBitsOfTheirOperations: also behind a product.
func TestCUDAChainsHaveTheBitsOfTheirOperations(t *testing.T) {
	eachCUDA(t, func(t *testing.T, h *host, s Sample) {
		in := s.operands(3)
		var c chain
		alone := in
		switch o := s.Op.(type) {
		case chain:
			c = o
		case matMulChain:
			product := Sample{Op: o.MatMul, In: s.In[:2]}
			made := product.onCUDA(t, h, in[:2], memory{poison: 0xff}, -1)
			c, alone = o.Chain, append(made[:1:1], in[2:]...)
		case convChain:
			images := Sample{Op: o.Conv, In: s.In[:2]}
			made := images.onCUDA(t, h, in[:2], memory{poison: 0xff}, -1)
			c, alone = o.Chain, append(made[:1:1], in[2:]...)
		default:
			t.Skip("no chain")
		}
		want := stepwise(t, h, c, alone)
		if !same([]tensor.View{want}, s.onCUDA(t, h, in, memory{poison: 0xff}, -1)) {
			t.Error("the bits differ")
		}
	})
}

// stepwise computes a chain operation by operation.
func stepwise(t *testing.T, h *host, c chain, in []tensor.View) tensor.View {
	t.Helper()
	var results []tensor.View
	for _, ins := range c.Code[:c.N] {
		step := Sample{Op: ins.Op}
		var operands []tensor.View
		for _, r := range ins.In[:ins.Arity] {
			v := results
			if r >= 0 {
				v = in
			} else {
				r = ^r
			}
			operands = append(operands, v[r])
			step.In = append(step.In, v[r].Type)
		}
		results = append(results, step.onCUDA(t, h, operands, memory{poison: 0xff}, -1)[0])
	}
	return results[len(results)-1]
}

// sizedSamples are operations at sizes around those of warps, blocks, tiles and parts.
func sizedSamples() []Sample {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	list := []Sample{
		{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(40000)}},
		{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(700, 3)}},
		{Op: sum{Lo: 1, Hi: 2}, In: []graph.Type{f(3, 140_001)}},
		{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(9, wide+1)}},
		{Op: sum{Lo: 1, Hi: 2}, In: []graph.Type{f(2, 300, 2)}},
		{Op: sumSquares{}, In: []graph.Type{f(40000)}},
		adafactorSample(f(600, 1100)), adafactorSample(f(2, 520, 3, 30, 5)),
		adafactorSample(f(2100)), adafactorSample(f(3, 1030)), adafactorSample(f(1300, 4)),
		{Op: extreme{0, 1, true}, In: []graph.Type{f(40000)}},
		{Op: batchNorm{0.1}, In: []graph.Type{f(3, 2, 60, 60), f(2), f(2)}},
		{Op: batchNormGrad{0.1}, In: []graph.Type{f(3, 2, 60, 60), f(2), f(2), f(2),
			f(3, 2, 60, 60)}, Fill: fills{3: positive}},
		{Op: conv2D{Conv{Pad: SamePad(3)}.defaults()}, In: []graph.Type{f(2, 5, 9, 9),
			f(70, 5, 3, 3)}},
		{Op: convInputGrad{Conv{Pad: SamePad(3)}.defaults(), 9, 9}, In: []graph.Type{
			f(2, 5, 9, 9), f(5, 70, 3, 3)}},
		{Op: convFilterGrad{Conv{Pad: SamePad(3)}.defaults(), 3, 3}, In: []graph.Type{
			f(2, 8, 17, 17), f(2, 70, 17, 17)}},
		{Op: groupedMatMul{}, In: []graph.Type{f(150, 37), f(3, 37, 70), ids(4)},
			Fill: fills{2: fill32(0, 100, 101, 149)}},
		{Op: groupedMatMul{Trans: true}, In: []graph.Type{f(90, 66), f(2, 70, 66), ids(3)},
			Fill: fills{2: fill32(0, 20, 90)}},
		{Op: groupedOuter{}, In: []graph.Type{f(150, 70), f(150, 65), ids(4)},
			Fill: fills{2: fill32(0, 100, 100, 149)}},
		{Op: route{Experts: 5}, In: []graph.Type{ids(600), ids(600)},
			Fill: fills{0: choices(5), 1: choices(5)}},
		{Op: routePart{3, 1}, In: []graph.Type{ids(1200), ids(600, 2), ids(7)}, Fill: fills{
			0: below(600), 1: choices(1200), 2: fill32(0, 200, 200, 500, 900, 1000, 1100)}},
		{Op: positions{Experts: 3, Capacity: 90}, In: []graph.Type{ids(2, 300), ids(2, 300)},
			Fill: fills{0: choices(3), 1: choices(3)}},
		{Op: embeddingGrad{Rows: 40}, In: []graph.Type{ids(600), f(600, 300)},
			Fill: fills{0: below(40)}},
		{Op: transpose{N: 2, Perm: [maxRank]int{1, 0}}, In: []graph.Type{f(257, 33)}},
	}
	for _, o := range []attention{{Scale: 0.1, Causal: true, Window: 100, Sinks: 3},
		{Scale: 0.1, HeadsFirst: true, Softcap: 2}} {
		s := Sample{Op: o, In: []graph.Type{f(1, 150, 2, 40), f(1, 150, 1, 40), f(1, 150, 1, 136)}}
		if o.HeadsFirst {
			s.In = []graph.Type{f(1, 4, 70, 130), f(1, 2, 90, 130), f(1, 2, 90, 7)}
		}
		list = append(list, s, gradSample(s))
	}
	for _, n := range []int{1, 7, 33, 257, 1500} {
		list = append(list,
			Sample{Op: softmax{}, In: []graph.Type{f(3, n)}},
			Sample{Op: softmaxGrad{}, In: []graph.Type{f(9, n), f(9, n)}},
			Sample{Op: layerNorm{1e-3}, In: []graph.Type{f(3, n), f(n), f(n)}},
			Sample{Op: layerNormGrad{0.1}, In: []graph.Type{f(3, n), f(n), f(3, n)}},
			Sample{Op: rmsScaleGrad{0.1}, In: []graph.Type{f(65, n), f(65, n)}},
			Sample{Op: sum{Lo: 0, Hi: 1}, In: []graph.Type{f(200, n)}},
			Sample{Op: sum{Lo: 1, Hi: 2}, In: []graph.Type{f(9, n)}},
			Sample{Op: arg{1, false}, In: []graph.Type{f(9, n)}},
			Sample{Op: topK{K: 1 + n/400}, In: []graph.Type{f(2, n)}},
			Sample{Op: crossEntropyGrad{}, In: []graph.Type{f(9, n), ids(9), f(9)},
				Fill: fills{1: below(n)}},
			Sample{Op: binary{add}, In: []graph.Type{f(3, n), f(n)}},
			Sample{Op: matMulChain{Chain: code(2, two(binary{add}, 0, 1), one(unary{gelu}, ^0))},
				In: []graph.Type{f(2, 3, 5), f(5, n), f(n)}},
		)
	}
	return list
}

// adafactorSample is an update of a parameter whose axes are factored if both are of 4 or more.
func adafactorSample(w graph.Type) Sample {
	o := adafactor{AdafactorConfig{MinDim: 4}.withDefaults()}
	s := Sample{Op: o, In: []graph.Type{w}, Fill: fills{}}
	for _, t := range AdafactorState(w, o.MinDim) {
		s.Fill[len(s.In)] = positive
		s.In = append(s.In, t)
	}
	s.Update = len(s.In)
	s.In = append(s.In, w, tensor.Of(graph.F32), tensor.Of(graph.F32))
	s.Fill[len(s.In)-1] = ones
	return s
}

// TestCUDASizes: rows as long as lanes, teams and more, sums in parts, products of several
// tiles; in any order of threads.
func TestCUDASizes(t *testing.T) {
	longtest.Skip(t)
	h := needHost(t)
	for _, s := range sizedSamples() {
		t.Run(s.name(), func(t *testing.T) {
			in := s.operands(1)
			got := s.onCUDA(t, h, in, memory{poison: 0xff}, -1)
			s.near(t, s.compute(t, in, nil), got)
			h.orders = 2
			defer func() { h.orders = 0 }()
			if !same(got, s.onCUDA(t, h, in, memory{poison: 0xff}, -1)) {
				t.Error("in a scattered order of threads the results differ")
			}
		})
	}
}

// specials are numbers at which functions are not smooth.
func specials() []float32 {
	inf := float32(math.Inf(1))
	return []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45,
		-1e-45, 1e-20, 88, 89, -87, -104, 1e10, -1e10, 3e38, -3e38, inf, -inf,
		float32(math.NaN())}
}

// eachPointwise runs a subtest for every elementwise operation, of operands whose elements a
// function gives.
func eachPointwise(t *testing.T, elements func(operand int) []float32) {
	h := needHost(t)
	first, second := elements(0), elements(1)
	seen := map[graph.Op]bool{}
	for _, s := range Samples() {
		_, ok := s.Op.(pointwise)
		_, windowed := s.Op.(noiseWindow)
		if d, shared := s.Op.(dropout); !ok || windowed || seen[s.Op] || shared && d.Shared != 0 {
			continue
		}
		seen[s.Op] = true
		operands := []tensor.View{tensor.FromF32(first, len(first))}
		if len(s.In) > 1 {
			operands = append(operands, tensor.FromF32(second, len(second)))
			if s.In[1].DType == graph.I32 {
				operands[1] = tensor.New(s.In[1])
			}
		}
		s.In = typesOfViews(operands)
		t.Run(s.name(), func(t *testing.T) {
			want := s.compute(t, operands, nil)[0].F32()
			got := s.onCUDA(t, h, operands, memory{poison: 0xff}, -1)[0].F32()
			for i, w := range want {
				if !sameFloat(w, got[i]) {
					t.Fatalf("of %g and %g: %g, and not %g", first[i], second[i], got[i], w)
				}
			}
		})
	}
}

// TestCUDASpecials: elementwise operations treat what is no number, infinite, zero, tiny and
// huge as the host does.
func TestCUDASpecials(t *testing.T) {
	x := specials()
	n := len(x)
	eachPointwise(t, func(operand int) []float32 {
		list := make([]float32, n*n)
		for k := range list {
			list[k] = x[[2]int{k % n, k / n}[operand]]
		}
		return list
	})
}

// TestCUDABits: elementwise operations have the host's bits, of any float32, of numbers around
// one and of small whole numbers. Both operands are drawn of each.
func TestCUDABits(t *testing.T) {
	n := longtest.Count(3*3*1000, 3*3*400_000)
	eachPointwise(t, func(operand int) []float32 {
		rng := rand.New(rand.NewPCG(5, uint64(operand)))
		draws := []func() float32{
			func() float32 { return math.Float32frombits(rng.Uint32()) },
			func() float32 { return float32(rng.NormFloat64() * 3) },
			func() float32 { return float32(rng.IntN(400) - 50) },
		}
		list := make([]float32, n)
		for k := range list {
			list[k] = draws[[2]int{k % 3, k / 3 % 3}[operand]]()
		}
		return list
	})
}

func typesOfViews(list []tensor.View) []graph.Type {
	var types []graph.Type
	for _, v := range list {
		types = append(types, v.Type)
	}
	return types
}

// TestCUDAConversions: from every type to every other, bit for bit.
func TestCUDAConversions(t *testing.T) {
	h := needHost(t)
	list := append(specials(), 255, 255.5, 256, 300, 65504, 65520, 2147483648, -2147483648,
		9.3e18, -9.3e18, 6e-8, 1e-7, 1.0009766, 1.0004883)
	numbers := tensor.FromF32(list, len(list)).To(tensor.F64)
	for _, from := range tensor.DTypes() {
		x := numbers.As(from)
		for _, to := range tensor.DTypes() {
			if from == to {
				continue
			}
			s := Sample{Op: cast{to}, In: []graph.Type{x.Type}}
			s.near(t, []tensor.View{x.To(to)}, s.onCUDA(t, h, []tensor.View{x}, memory{}, -1))
		}
	}
}

// TestCUDAKeepsToItsMemory: whatever indices there are, nothing outside the results is
// written, and nothing is read that is not there.
func TestCUDAKeepsToItsMemory(t *testing.T) {
	wild := func(rng *rand.Rand, x any) {
		list := []int32{-1, math.MinInt32, math.MaxInt32, 1 << 20, -5, 3, 100}
		for i := range x.([]int32) {
			x.([]int32)[i] = list[rng.IntN(len(list))]
		}
	}
	eachCUDA(t, func(t *testing.T, h *host, s Sample) {
		if !slices.ContainsFunc(s.In, func(u graph.Type) bool { return u.DType == graph.I32 }) {
			t.Skip("has no indices")
		}
		fill := fills{}
		for i, u := range s.In {
			if fill[i] = s.Fill[i]; u.DType == graph.I32 {
				fill[i] = wild
			}
		}
		s.Fill = fill
		s.onCUDA(t, h, s.operands(9), memory{poison: 0xff}, -1)
	})
}

// TestCUDAScratchIsDeclared: operations that need none declare none.
func TestCUDAScratchIsDeclared(t *testing.T) {
	eachCUDA(t, func(t *testing.T, _ *host, s Sample) {
		out, err := s.Op.Infer(s.In)
		if err != nil {
			t.Fatal(err)
		}
		if n := cuda.ScratchOf(s.Op, s.In, out); n < 0 || n%4 != 0 && s.In[0].DType.Size() >= 4 {
			t.Errorf("scratch of %d bytes", n)
		}
	})
}

// TestCUDANumbers: operations on numbers of every type, whatever their bits, have the host's.
func TestCUDANumbers(t *testing.T) {
	h := needHost(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, s := range Samples() {
		if o, ok := s.Op.(numeric); ok {
			in := s.operands(1)
			s.In = slices.Clone(s.In)
			for i, v := range in {
				v = tensor.New(graph.Of(v.Type.DType, 400))
				for k := range v.Data {
					v.Data[k] = byte(rng.Uint32()) >> (rng.IntN(3) * 7)
				}
				if size := int(v.Type.DType.Size()); o.divides(v.Type.DType) && i == 1 {
					for k := 0; k < len(v.Data); k += size {
						v.Data[k] |= 1
					}
				}
				in[i], s.In[i] = v, v.Type
			}
			s.near(t, s.compute(t, in, nil), s.onCUDA(t, h, in, memory{}, -1))
		}
	}
}

// TestGatedAssignIsHosted: an assignment behind a gate, which a GPU has no kernel for, is on the
// host in every plan, and an update of Adam is not.
func TestGatedAssignIsHosted(t *testing.T) {
	if cuda.IsExact(every{Op: assign{}, N: 2}) || !cuda.IsExact(every{Op: adam{}, N: 2}) {
		t.Error("a gated assignment may be on the device, or Adam may not")
	}
}
