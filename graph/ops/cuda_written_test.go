//go:build linux && amd64 && !nocuda

package ops

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/cuda"
	"github.com/gomem/gomem/internal/longtest"
)

// written is the kernel that is written for a sample, if there is one.
func (s Sample) written() *cuda.Written {
	out, err := s.Op.Infer(s.In)
	if err != nil || len(out) != 1 {
		return nil
	}
	var c cuda.Call
	for _, ty := range s.In {
		c.In = append(c.In, cuda.Operand{Type: ty})
	}
	c.Out = []cuda.Operand{{Type: out[0]}}
	commands, err := cuda.Commands(s.Op, &c)
	if err != nil || len(commands) != 1 {
		return nil
	}
	k, _ := commands[0].(cuda.Kernel)
	return k.Written
}

// chainSamples are elementwise operations and chains, and others that are drawn.
func chainSamples() []Sample {
	list := randomChains(longtest.Count(60, 600))
	for _, s := range Samples() {
		if s.written() != nil {
			list = append(list, s)
		}
	}
	return list
}

// drawnOps are operations that chains of a type are drawn of: of one operand, of two, and of one
// and a seed.
func drawnOps(of graph.Type) [3][]elementwise {
	var list [3][]elementwise
	for k := neg; k <= gelu; k++ {
		list[0] = append(list[0], unary{k})
	}
	for k := abs; k <= silu; k++ {
		list[0] = append(list[0], function{k})
	}
	list[0] = append(list[0], affine{Factor: 0.75}, affine{Factor: 1, Shift: 3}, clip{-1, 0.5},
		powScalar{2.5}, geluTanh{})
	for _, k := range []binaryKind{add, sub, mul, div, maximum, geq, minimum, power, weigh} {
		list[1] = append(list[1], binary{k})
	}
	for _, k := range []unaryKind{relu, tanh, sigmoid, gelu} {
		list[1] = append(list[1], slope{k})
	}
	list[1] = append(list[1], clipGrad{-1, 0.5}, siluGrad{}, geluTanhGrad{})
	d := dropout{Rate: 0.3, Salt: 9}
	list[2] = []elementwise{d, jitter{Eps: 0.01, Salt: 5}, noiseAt{d, 8}, noiseAt{d, 5}}
	if of.Size(0) == 2 {
		w := window{N: 3}
		for i := range of.Rank() {
			w.Size[i], w.At[i] = int32(of.Size(i)), int32(i)
			w.Whole[i] = w.Size[i] + 3
		}
		list[2] = []elementwise{noiseWindow{d, w}}
	}
	return list
}

// randomChains are chains of any operations on operands that are spread in any way, of fixed seeds.
func randomChains(n int) []Sample {
	var list []Sample
	for seed := uint64(1); len(list) < n; seed++ {
		rng := rand.New(rand.NewPCG(seed, 30))
		a, b, c := 1+rng.IntN(3), 1+rng.IntN(20), []int{1, 3, 4, 7, 8, 24, 33, 64}[rng.IntN(8)]
		shapes := [][]int{{a, b, c}, {a, b, c}, {b, c}, {c}, {a, b, 1}, {b, 1}, {1}}
		half := rng.IntN(2) == 1
		s := Sample{In: []graph.Type{tensor.Of(graph.I32, 2)}}
		for range 1 + rng.IntN(maxChainOperands-2) {
			s.In = append(s.In, tensor.Of(graph.F32, shapes[rng.IntN(len(shapes))]...))
		}
		s.In = append(s.In, tensor.Of(graph.F32, a, b, c))
		for i := range s.In[1:] {
			if half && rng.IntN(3) > 0 {
				s.In[i+1].DType = graph.BF16
			}
		}
		s.Op = drawnChain(rng, len(s.In), drawnOps(tensor.Of(graph.F32, a, b, c)), half)
		if _, err := s.Op.Infer(s.In); err == nil {
			list = append(list, s)
		}
	}
	return list
}

// drawnChain is a chain that begins with the last operand, reads the others, and the seed, which is
// the first, if it draws noise.
func drawnChain(rng *rand.Rand, operands int, ops [3][]elementwise, half bool) chain {
	last := reference(operands - 1)
	var list []instruction
	for i := range maxInstructions {
		earlier := reference(rng.IntN(operands-1) + 1)
		if i > 0 && rng.IntN(3) == 0 {
			earlier = ^reference(rng.IntN(i))
		}
		if unread := reference(i + 1); i < operands-2 {
			earlier = unread
		}
		family := ops[1]
		in, arity := [2]reference{last, earlier}, int8(2)
		switch {
		case i == operands-2:
			family, in[1] = ops[2], 0
		case i > operands-2 && rng.IntN(2) == 0:
			family, arity = ops[0], 1
		case rng.IntN(2) == 0:
			in[0], in[1] = in[1], in[0]
		}
		op := family[rng.IntN(len(family))]
		if half {
			op = inBF16{op, uint8(rng.IntN(2))}
		}
		list = append(list, instruction{Op: op, In: in, Arity: arity})
		last = ^reference(i)
		if i >= operands-1 && rng.IntN(3) == 0 {
			break
		}
	}
	return code(int8(operands), list...)
}

// TestCUDAWritten: the kernel that is written for a chain has the bits of the one that interprets
// it, which are the host's, wherever operands are, and in place too.
func TestCUDAWritten(t *testing.T) {
	longtest.Skip(t)
	h := needHost(t)
	samples := chainSamples()
	var list []*cuda.Written
	for _, s := range samples {
		w := s.written()
		if !slices.ContainsFunc(list, func(o *cuda.Written) bool { return o.Name == w.Name }) {
			list = append(list, w)
		}
	}
	t.Logf("%d samples, %d kernels", len(samples), len(list))
	compiled, err := startHost(cuda.WrittenSource(list))
	if err != nil {
		t.Fatal(err)
	}
	compiled.written = true
	for _, s := range samples {
		t.Run(s.name(), func(t *testing.T) {
			in := s.operands(1)
			want := s.compute(t, in, nil)
			if got := s.onCUDA(t, h, in, memory{poison: 0xff}, -1); !alike(want, got) {
				t.Fatalf("interpreted it is %v, want %v", got, want)
			}
			for _, shift := range []int64{0, 4} {
				got := s.onCUDA(t, compiled, in, memory{poison: 0xff, shift: shift}, -1)
				if !alike(want, got) {
					t.Fatalf("off by %d bytes it is %v, want %v", shift, got, want)
				}
			}
			out, _ := s.Op.Infer(s.In)
			for _, k := range s.Op.(graph.InPlacer).InPlace(s.In, out) {
				if !alike(want, s.onCUDA(t, compiled, in, memory{poison: 0x3e}, k)) {
					t.Errorf("over operand %d the result differs", k)
				}
			}
		})
	}
}

// alike compares bits; one NaN is as good as another.
func alike(want, got []tensor.View) bool {
	return slices.EqualFunc(want, got, func(x, y tensor.View) bool {
		return slices.EqualFunc(x.To(graph.F32).F32(), y.To(graph.F32).F32(), sameFloat)
	})
}

// TestCUDAWrittenOnce: chains that differ in sizes and constants have one kernel, and those that
// differ in what they do, or in how operands are spread, have two.
func TestCUDAWrittenOnce(t *testing.T) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	name := func(op graph.Op, in ...graph.Type) string {
		return Sample{Op: op, In: in}.written().Name
	}
	scale := func(x float32) chain {
		return code(2, two(binary{add}, 0, 1), one(affine{Factor: x}, ^0))
	}
	first := name(scale(2), f(9, 8), f(8))
	for what, other := range map[string]string{
		"a constant": name(scale(3), f(9, 8), f(8)), "sizes": name(scale(2), f(50, 7, 4), f(4)),
	} {
		if other != first {
			t.Errorf("%s makes another kernel", what)
		}
	}
	for what, other := range map[string]string{
		"a period of 7":   name(scale(2), f(9, 7), f(7)),
		"an operand held": name(scale(2), f(8, 9), f(8, 1)),
		"one for all":     name(scale(2), f(9, 8), f(1)),
		"2^31 elements":   name(scale(2), f(1<<28, 8), f(8)),
		"another function": name(code(2, two(binary{add}, 0, 1), one(unary{neg}, ^0)), f(9, 8),
			f(8)),
		"another operand": name(code(2, two(binary{add}, 0, 1), two(binary{mul}, ^0, 1)), f(9, 8),
			f(8)),
	} {
		if other == first {
			t.Errorf("%s makes no other kernel", what)
		}
	}
}
