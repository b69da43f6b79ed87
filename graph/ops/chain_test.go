package ops

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// values are values of a graph with their bits.
type values map[graph.Value]tensor.View

// launch applies an operation by its kernel.
func (m values) launch(t *rapid.T, a Application, threads *pool.Pool) tensor.View {
	c := kernel.Call{Pool: threads}
	var in []graph.Type
	for _, v := range a.In {
		c.In = append(c.In, m[v])
		in = append(in, v.Type())
	}
	out, err := a.Op.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	fn, err := kernel.Lookup(kernel.CPU, a.Op)
	if err != nil {
		t.Fatal(err)
	}
	c.Out = []tensor.View{tensor.New(out[0])}
	c.Scratch = tensor.New(tensor.Of(graph.U8, int(a.Op.Cost(in, out).Scratch))).Data
	if err := fn(a.Op, &c); err != nil {
		t.Fatal(err)
	}
	return c.Out[0]
}

// TestFusedBits: any operations fused one after another give the bits that they
// give one by one, on any number of threads.
func TestFusedBits(t *testing.T) {
	threads := pool.New(2)
	defer threads.Close()
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 300).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "cols")
		g, m := graph.New(), values{}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "data"), 1))
		input := func(ty graph.Type) graph.Value {
			v, data := g.Input(fmt.Sprint("x", g.Len()), ty), tensor.New(ty)
			if ty.DType == graph.I32 {
				below(1000)(rng, data.I32())
			} else {
				for i := range data.F32() {
					data.F32()[i] = float32(rng.NormFloat64())
				}
			}
			m[v] = data
			return v
		}
		f := func(sizes ...int) graph.Value { return input(tensor.Of(graph.F32, sizes...)) }
		now := Application{unary{tanh}, []graph.Value{f(rows, cols)}}
		if rapid.Bool().Draw(t, "product") {
			now = Application{matMul{}, []graph.Value{f(rows, 3), f(3, cols)}}
		}
		last := g.Apply(now.Op, now.In...).Value(0)
		m[last] = m.launch(t, now, nil)
		others := []graph.Value{f(rows, cols), f(cols), f(rows, 1), f(),
			input(tensor.Of(graph.I32, 2)), last}
		for range rapid.IntRange(1, maxInstructions).Draw(t, "length") {
			next := draw(t, last, others)
			fused, ok := Fuse(now, next, last)
			if !ok {
				return
			}
			v := g.Apply(next.Op, next.In...).Value(0)
			m[v] = m.launch(t, next, nil)
			if ty := fused.Type(); !ty.Equal(v.Type()) {
				t.Fatalf("%s infers %s, want %s", fused.Op, ty, v.Type())
			}
			for _, p := range []*pool.Pool{nil, threads} {
				if got := m.launch(t, fused, p); !same([]tensor.View{got}, []tensor.View{m[v]}) {
					t.Fatalf("%s gives other bits", fused.Op)
				}
			}
			now, last = fused, v
			others[len(others)-1] = v
		}
	})
}

// TestLargeProducts: products that are finished block by block have the same
// bits as those that are not.
func TestLargeProducts(t *testing.T) {
	const rows, cols = 1031, 1021
	bias := two(binary{add}, 0, 1)
	for _, c := range []struct {
		chain chain
		row   int // columns of the chain's second operand; 0 if there is none
	}{
		{code(2, bias), cols}, {code(2, two(binary{add}, 1, 0), one(unary{gelu}, ^0)),
			cols}, {code(1, one(unary{relu}, 0)), 0},
		{code(2, two(binary{sub}, 0, 1)), cols}, {code(2, bias, one(affine{Factor: 2}, ^0)), cols},
		{code(2, bias, one(function{silu}, ^0)), cols}, {code(1, one(clip{-1, 1}, 0)), 0},
		{code(2, bias, two(binary{mul}, ^0, 1)),
			cols}, {code(2, bias, one(unary{tanh}, ^0), one(unary{neg}, ^1)), cols},
	} {
		s := Sample{Op: matMulChain{Chain: c.chain},
			In: []graph.Type{tensor.Of(graph.F32, rows, 3), tensor.Of(graph.F32, 3, cols)}}
		if c.row > 0 {
			s.In = append(s.In, tensor.Of(graph.F32, c.row))
		}
		in := s.operands(3)
		got := s.compute(t, in, nil)
		product := Sample{Op: matMul{}, In: s.In[:2]}
		args := append(product.compute(t, in[:2], nil), in[2:]...)
		elements := Sample{Op: c.chain, In: append([]graph.Type{args[0].Type}, s.In[2:]...)}
		if !same(got, elements.compute(t, args, nil)) {
			t.Errorf("%s gives other bits", s.Op)
		}
	}
}

// TestLargeConvolutions: so have convolutions, by every way that they are computed.
func TestLargeConvolutions(t *testing.T) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	threads := pool.New(2)
	defer threads.Close()
	for _, s := range []Sample{
		{Op: conv2D{Conv{Pad: SamePad(3)}.defaults()}, In: []graph.Type{f(2, 3, 100, 90),
			f(60, 3, 3, 3)}},
		{Op: conv2D{Conv{Pad: SamePad(3)}.defaults()}, In: []graph.Type{f(2, 3, 100, 90),
			f(66, 3, 3, 3)}},
		{Op: conv2D{Conv{}.defaults()}, In: []graph.Type{f(2, 3, 100, 90), f(60, 3, 1, 1)}},
		{Op: conv2D{Conv{Groups: 3, Pad: SamePad(3)}.defaults()}, In: []graph.Type{
			f(2, 3, 100, 90), f(60, 1, 3, 3)}},
	} {
		in := s.operands(3)
		alone := s.compute(t, in, nil)
		y := alone[0].Type
		rest := []graph.Type{f(y.Size(1), 1, 1), y}
		more := Sample{In: rest}.operands(5)
		c := code(3, two(binary{add}, 0, 1), two(binary{add}, 2, ^0), one(function{silu}, ^1))
		elements := Sample{Op: c, In: append([]graph.Type{y}, rest...)}
		want := elements.compute(t, append(alone, more...), nil)
		joined := Sample{Op: convChain{s.Op.(conv2D), c}, In: append(s.In, rest...)}
		if len(want[0].Data) < epilogueBytes {
			t.Fatalf("%s is too small to be finished block by block", y)
		}
		for _, p := range []*pool.Pool{nil, threads} {
			if !same(joined.compute(t, append(in, more...), p), want) {
				t.Errorf("%s of %s gives other bits", joined.Op, s.In)
			}
		}
	}
}

// draw draws an elementwise operation on v and perhaps another value.
func draw(t *rapid.T, v graph.Value, others []graph.Value) Application {
	seed := others[4]
	switch rapid.IntRange(0, 8).Draw(t, "family") {
	case 0:
		return Application{unary{rapid.SampledFrom([]unaryKind{neg, square, relu, tanh, sigmoid,
			gelu}).Draw(t, "unary")}, []graph.Value{v}}
	case 1:
		return Application{affine{Factor: 0.75}, []graph.Value{v}}
	case 2:
		return Application{affine{Factor: 1, Shift: 3}, []graph.Value{v}}
	case 3:
		return Application{dropout{Rate: 0.3, Salt: 9}, []graph.Value{v, seed}}
	case 4:
		k := rapid.SampledFrom([]unaryKind{relu, tanh, sigmoid, gelu}).Draw(t, "slope")
		return Application{slope{k}, []graph.Value{others[0], v}}
	case 5:
		return Application{function{rapid.SampledFrom([]functionKind{abs, round, cosine, silu,
			softplus}).Draw(t, "function")}, []graph.Value{v}}
	case 6:
		return Application{rapid.SampledFrom([]graph.Op{clip{-1, 0.5}, powScalar{2},
			geluTanh{}}).Draw(t, "one"), []graph.Value{v}}
	case 7:
		return Application{rapid.SampledFrom([]graph.Op{clipGrad{-1, 0.5}, siluGrad{},
			geluTanhGrad{}}).Draw(t, "two"), []graph.Value{others[0], v}}
	}
	in := []graph.Value{v, rapid.SampledFrom([]graph.Value{others[0], others[1], others[2],
		others[3], v}).Draw(t, "other")}
	if rapid.Bool().Draw(t, "exchanged") {
		in[0], in[1] = in[1], in[0]
	}
	return Application{binary{rapid.SampledFrom([]binaryKind{add, sub, mul, div, maximum,
		geq, minimum, power}).Draw(t, "binary")}, in}
}

// TestFuseLimits: what does not fit into an operation is not fused.
func TestFuseLimits(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 4, 4))
	apply := func(op graph.Op, in ...graph.Value) (Application, graph.Value) {
		return Application{op, in}, g.Apply(op, in...).Value(0)
	}
	fused, v := apply(unary{neg}, x)
	length := 1
	for ; ; length++ {
		next, u := apply(unary{neg}, v)
		longer, ok := Fuse(fused, next, v)
		if !ok {
			break
		}
		fused, v = longer, u
	}
	if length != maxInstructions {
		t.Errorf("a chain has up to %d instructions", length)
	}
	fused, v = apply(unary{neg}, x)
	operands := 1
	for ; ; operands++ {
		next, u := apply(binary{add}, v, g.Input(fmt.Sprint("y", g.Len()), x.Type()))
		wider, ok := Fuse(fused, next, v)
		if !ok {
			break
		}
		fused, v = wider, u
	}
	if operands != maxChainOperands {
		t.Errorf("a chain has up to %d operands", operands)
	}
	product, p := apply(matMul{}, x, x)
	total, s := apply(sum{}, x)
	shared, d := apply(dropout{Rate: 0.5, Shared: 1}, x, g.Input("seed", tensor.Of(graph.I32, 2)))
	for name, pair := range map[string][2]Application{
		"into a product":      {{unary{neg}, []graph.Value{x}}, product},
		"a sum":               {total, {unary{neg}, []graph.Value{s}}},
		"into a sum":          {product, total},
		"shared noise":        {shared, {unary{neg}, []graph.Value{d}}},
		"product to product":  {product, {matMul{}, []graph.Value{p, x}}},
		"an operation on nil": {{}, {unary{neg}, []graph.Value{x}}},
	} {
		if a, ok := Fuse(pair[0], pair[1], pair[1].In[0]); ok {
			t.Errorf("%s: %s", name, a.Op)
		}
	}
	if ty := (Application{binary{add}, []graph.Value{x}}).Type(); ty.Rank() != 0 {
		t.Errorf("an operation without its operands has type %s", ty)
	}
}

// TestBadChains: a chain that makes no sense is an error, not a panic.
func TestBadChains(t *testing.T) {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	row, negate := []graph.Type{f(3, 4)}, one(unary{neg}, 0)
	wide := negate
	wide.Arity = 3
	for want, c := range map[string]struct {
		chain chain
		in    []graph.Type
	}{
		"a chain of 0 instructions":     {chain{Operands: 1}, row},
		"a chain of -1 instructions":    {chain{N: -1, Operands: 1}, row},
		"a chain of 9 instructions":     {chain{N: 9, Operands: 1}, row},
		"on 0 operands":                 {code(0, negate), nil},
		"on 7 operands":                 {code(7, negate), row},
		"want 1 operands, have 2":       {code(1, negate), append(row, row...)},
		"no elementwise operation":      {chain{N: 1, Operands: 1}, row},
		"instruction 0: no elementwise": {code(1, wide), row},
		"there is no b":                 {code(1, one(unary{neg}, 1)), row},
		"there is no %0":                {code(1, one(unary{neg}, ^0)), row},
		"there is no %127":              {code(1, one(unary{neg}, -128)), row},
		"no elementwise op": {code(2, two(dropout{Shared: 1}, 0, 1)),
			[]graph.Type{f(2), tensor.Of(graph.I32, 2)}},
		"unknown function": {code(1, one(unary{99}, 0)), row},
		"gives f32[4], the last f32[3 4]": {code(2, one(unary{neg}, 0), two(binary{add}, ^0, 1)),
			[]graph.Type{f(4), f(3, 4)}},
		"in more than one way": {code(2, two(binary{add}, 0, 1)),
			[]graph.Type{f(2, 3, 4), f(2, 1, 4)}},
		"operand 1 is not read": {code(2, negate), append(row, tensor.Of(graph.U8, 3))},
	} {
		if _, err := c.chain.Infer(c.in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
	o := matMulChain{Chain: code(2, two(binary{add}, 0, 1))}
	for want, in := range map[string][]graph.Type{
		"want 2 operands":         {f(3, 4)},
		"inner dimensions differ": {f(3, 4), f(3, 4), f(4)},
		"the matmul is f32[1 5]":  {f(1, 4), f(4, 5), f(3, 5)},
	} {
		if _, err := o.Infer(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, have %v", want, err)
		}
	}
}

// TestChainText: chains are named after what they do and print as programs.
func TestChainText(t *testing.T) {
	c := code(2, two(binary{add}, 0, 1), one(unary{relu}, ^0))
	o := matMulChain{Chain: c}
	if c.Name() != "add+relu" || o.Name() != "matmul+add+relu" || o.Operations() != 3 {
		t.Errorf("they are called %s and %s (%d operations)", c.Name(), o.Name(), o.Operations())
	}
	if want := "{%0=add{Kind:0}(a b) %1=relu{Kind:6}(%0)}"; c.String() != want {
		t.Errorf("it prints as %s, want %s", c, want)
	}
}
