package ops

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/longtest"
)

// eachInBF16 runs a subtest for every sample that computes from f32, with all its operands and
// results in bfloat16 that can be.
func eachInBF16(t *testing.T, f func(t *testing.T, plain, half Sample)) {
	for _, s := range Samples() {
		if _, already := s.Op.(inBF16); already || isView(s) || s.Update > 0 {
			continue
		}
		out, err := s.Op.Infer(s.In)
		if err != nil {
			t.Fatal(err)
		}
		o, in := inBF16{Op: s.Op}, slices.Clone(s.In)
		for i := range in {
			if in[i].DType == graph.F32 {
				in[i].DType = graph.BF16
			}
		}
		for i, ty := range out {
			if ty.DType == graph.F32 && i < 8 {
				o.Round |= 1 << i
			}
		}
		if _, err := o.Infer(in); err != nil || slices.EqualFunc(in, s.In, graph.Type.Equal) {
			continue
		}
		t.Run(s.name(), func(t *testing.T) { f(t, s, Sample{Op: o, In: in, Fill: s.Fill}) })
	}
}

// halved is operands of a sample rounded to bfloat16, and what they are in f32.
func halved(plain, half Sample, seed uint64) (narrow, wide []tensor.View) {
	for i, v := range plain.operands(seed) {
		narrow = append(narrow, v.As(half.In[i].DType))
		wide = append(wide, narrow[i].As(plain.In[i].DType))
	}
	return narrow, wide
}

// narrowed are results rounded to the types of others.
func narrowed(list []tensor.View, as []tensor.View) []tensor.View {
	out := slices.Clone(list)
	for i := range out {
		out[i] = out[i].As(as[i].Type.DType)
	}
	return out
}

// TestInBF16IsRounded: an operation in bfloat16 has the bits of the one in f32 on the same
// numbers, rounded once.
func TestInBF16IsRounded(t *testing.T) {
	count := 0
	eachInBF16(t, func(t *testing.T, plain, half Sample) {
		count++
		narrow, wide := halved(plain, half, 1)
		got := half.compute(t, narrow, nil)
		if !same(narrowed(plain.compute(t, wide, nil), got), got) {
			t.Error("other bits than those of f32 rounded")
		}
	})
	if count < 150 {
		t.Errorf("only %d samples", count)
	}
}

// TestInBF16Costs: in bfloat16 an operation computes what it does in f32, and has between half of
// its traffic and all of it.
func TestInBF16Costs(t *testing.T) {
	eachInBF16(t, func(t *testing.T, plain, half Sample) {
		plain.In = inF32(half.In)
		was, err := plain.Op.Infer(plain.In)
		out, also := half.Op.Infer(half.In)
		if err := errors.Join(err, also); err != nil {
			t.Fatal(err)
		}
		f32, got := plain.Op.Cost(plain.In, was), half.Op.Cost(half.In, out)
		if got.FLOPs != f32.FLOPs || got.Bytes > f32.Bytes || got.Bytes < f32.Bytes/2 {
			t.Errorf("%+v, in f32 %+v", got, f32)
		}
	})
}

// TestInBF16ByBlocks: in blocks of rows an operation has the same bits, in the scratch that it
// says.
func TestInBF16ByBlocks(t *testing.T) {
	longtest.Skip(t)
	blocks := 0
	eachInBF16(t, func(t *testing.T, plain, half Sample) {
		plain = plain.enlarged()
		for i, ty := range plain.In {
			half.In[i].Shape = ty.Shape
		}
		o := half.Op.(inBF16)
		out, err := o.Infer(half.In)
		if err != nil {
			t.Fatal(err)
		}
		direct := takesBF16(o.Op)
		x := o.tiling(half.In, out, 1<<16, direct)
		if !x.tiled() {
			return
		}
		blocks++
		narrow, wide := halved(plain, half, 2)
		scratch := o.most(x, func(b slab) int64 { return b.op.Cost(b.in, b.out).Scratch })
		c := kernel.Call{In: narrow, Scratch: make([]byte, scratch)}
		for _, ty := range out {
			c.Out = append(c.Out, tensor.New(ty))
		}
		if err := o.compute(x, &c); err != nil {
			t.Fatal(err)
		}
		if !same(narrowed(plain.compute(t, wide, nil), c.Out), c.Out) {
			t.Errorf("other bits in blocks of %d rows", x.rows)
		}
		all := x
		all.rows = 0
		if whole := o.most(all, func(b slab) int64 {
			return b.op.Cost(b.in, b.out).Scratch
		}); scratch >= whole {
			t.Errorf("%d bytes of scratch in blocks, %d as a whole", scratch, whole)
		}
	})
	if blocks < 20 {
		t.Errorf("only %d samples are computed in blocks", blocks)
	}
}

// TestInBF16Tiles: of operations that are cut into rows no more than an eighth is converted at a
// time, of small ones too, but for [leastTileBytes]; of large ones no more than a mebibyte.
func TestInBF16Tiles(t *testing.T) {
	for _, rows := range []int{1, 8, 100, 1 << 10, 1 << 14} {
		for _, columns := range []int{1, 32, 528, 4214} {
			x := tensor.Of(graph.BF16, rows, columns)
			o := InBF16(softmax{}, 1)
			all, got := int64(8*rows*columns), o.Cost([]graph.Type{x}, []graph.Type{x}).Scratch
			if row := all / int64(rows); got > max(all/8, leastTileBytes)+row+128 {
				t.Errorf("%v: %d bytes of scratch of %d", x, got, all)
			} else if got > max(tileBytes, all/mostTiles)+row+128 {
				t.Errorf("%v: %d bytes of scratch, want a mebibyte", x, got)
			}
		}
	}
}

// inForm is a sample with operands and results of a form in bfloat16, of which a star is by chance.
func inForm(t *testing.T, plain Sample, form string, rng *rand.Rand) Sample {
	t.Helper()
	out, err := plain.Op.Infer(plain.In)
	if err != nil {
		t.Fatal(err)
	}
	s, o := plain, inBF16{Op: plain.Op}
	for strings.Contains(form, "*") {
		form = strings.Replace(form, "*", string("hf"[rng.IntN(2)]), 1)
	}
	s.In = slices.Clone(plain.In)
	for i := range s.In {
		if form[i] == 'h' {
			s.In[i].DType = graph.BF16
		}
	}
	for i := range out {
		if form[len(s.In)+1+i] == 'h' {
			o.Round |= 1 << i
		}
	}
	s.Op = o
	if made, err := o.Infer(s.In); err != nil || !hasForm(form, s.In, made) {
		t.Fatalf("%v are not of the form %s, %v", s.In, form, err)
	}
	return s
}

// TestReadsBF16: a kernel that reads and writes bfloat16 as it is has the bits of the operation in
// f32 on the same numbers, rounded once, in place too.
func TestReadsBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for _, plain := range Samples() {
		op, ok := plain.Op.(in16)
		if !ok {
			continue
		}
		seen[kind(op)] = true
		t.Run(plain.name(), func(t *testing.T) {
			for range 1 + strings.Count(op.form16(), "*") {
				readsAsItIs(t, plain, inForm(t, plain, op.form16(), rng))
			}
		})
	}
	if len(seen) != 8 {
		t.Errorf("samples of %v", seen)
	}
}

// readsAsItIs compares an operation on bfloat16 with the one on f32.
func readsAsItIs(t *testing.T, plain, half Sample) {
	t.Helper()
	out, _ := half.Op.Infer(half.In)
	if _, ok := half.Op.(inBF16).asItIs(half.In, out); !ok {
		t.Fatalf("%v are converted", half.In)
	}
	narrow, wide := halved(plain, half, 1)
	got := half.compute(t, narrow, nil)
	if !same(narrowed(plain.compute(t, wide, nil), got), got) {
		t.Fatalf("of %v: other bits than those of f32 rounded", half.In)
	}
	for _, k := range half.Op.(graph.InPlacer).InPlace(half.In, out) {
		c := kernel.Call{In: slices.Clone(narrow),
			Scratch: tensor.New(tensor.Of(tensor.U8, int(half.Op.Cost(half.In, out).Scratch))).Data}
		c.In[k] = tensor.View{Type: narrow[k].Type, Data: slices.Clone(narrow[k].Data)}
		for i, ty := range out {
			v := tensor.New(ty)
			if i == 0 {
				v = c.In[k]
			}
			c.Out = append(c.Out, v)
		}
		if err := inBF16CPU(half.Op.(inBF16), &c); err != nil {
			t.Fatal(err)
		}
		if !same(c.Out, got) {
			t.Errorf("over operand %d of %v the result differs", k, half.In)
		}
	}
}

// TestInBF16Parts: parts of an operation in bfloat16 come to the bits of the whole, where
// results are sums over what is cut too.
func TestInBF16Parts(t *testing.T) {
	h := func(sizes ...int) graph.Type { return tensor.Of(graph.BF16, sizes...) }
	s := Sample{Op: inBF16{matMul{TransA: true}, 1}, In: []graph.Type{h(600, 3), h(600, 5)}}
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	op := s.Op.(graph.Cutter)
	c, ok := op.Cut(s.In, out)
	if !ok || !c.Sums() || c.Finish == nil || c.Sum.DType != graph.F32 {
		t.Fatalf("a weight's gradient is cut by %+v, %v", c, ok)
	}
	in := s.operands(3)
	for i := range in {
		copy(in[i].Data, ofAllSizes(in[i].Type.Elems()).Data)
	}
	var sum []tensor.View
	for lo := 0; lo < c.Rows; {
		hi := min(c.Rows, lo+max(c.Align, c.Rows/2/c.Align*c.Align))
		part := Sample{Op: op.Part(s.In, out, lo, hi)}
		operands := slices.Clone(sum)
		for i, v := range in {
			row := len(v.Data) / c.Rows
			operands = append(operands, tensor.View{Type: graph.RowsOf(v.Type, c.In[i], hi-lo),
				Data: in[i].Data[lo*row : hi*row]})
		}
		for _, v := range operands {
			part.In = append(part.In, v.Type)
		}
		sum = part.compute(t, operands, nil)
		lo = hi
	}
	got := Sample{Op: c.Finish, In: []graph.Type{c.Sum}}.compute(t, sum, nil)
	if !same(got, s.compute(t, in, nil)) {
		t.Error("in parts the bits are others")
	}
}

// ofAllSizes is numbers of bfloat16, large and small.
func ofAllSizes(n int) tensor.View {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Ldexp(float64(i*7919%1000-500), i%23-15))
	}
	return tensor.FromF32(x, n).To(graph.BF16)
}

// TestBadInBF16: what is no operation, or has no such results, is refused.
func TestBadInBF16(t *testing.T) {
	h, f := tensor.Of(graph.BF16, 3), tensor.Of(graph.F32, 3)
	for name, c := range map[string]struct {
		op graph.Op
		in []graph.Type
	}{
		"nothing":         {inBF16{}, []graph.Type{h}},
		"a view":          {inBF16{reshape{}, 1}, []graph.Type{h}},
		"twice":           {inBF16{inBF16{unary{tanh}, 1}, 1}, []graph.Type{h}},
		"a second result": {inBF16{unary{tanh}, 2}, []graph.Type{h}},
		"another type":    {inBF16{unary{tanh}, 1}, []graph.Type{tensor.Of(graph.F16, 3)}},
		"indices rounded": {inBF16{compare{}, 1}, []graph.Type{h, h}},
		"two operands":    {inBF16{unary{tanh}, 1}, []graph.Type{h, f}},
	} {
		if out, err := c.op.Infer(c.in); err == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
}

// TestChainsInBF16: a chain in bfloat16 has the bits of its operations one by one.
func TestChainsInBF16(t *testing.T) {
	h := func(sizes ...int) graph.Type { return tensor.Of(graph.BF16, sizes...) }
	c := code(3, two(inBF16{binary{mul}, 1}, 0, 1), one(inBF16{unary{tanh}, 1}, ^0),
		two(inBF16{binary{add}, 1}, ^1, 2), one(inBF16{unary{exp}, 0}, ^2))
	s := Sample{Op: c, In: []graph.Type{h(300, 17), h(17), h(300, 1)}}
	in := s.operands(1)
	for i := range in {
		copy(in[i].Data, ofAllSizes(in[i].Type.Elems()).Data)
	}
	alone := func(op graph.Op, list ...tensor.View) tensor.View {
		step := Sample{Op: op}
		for _, v := range list {
			step.In = append(step.In, v.Type)
		}
		return step.compute(t, list, nil)[0]
	}
	want := alone(inBF16{unary{exp}, 0}, alone(inBF16{binary{add}, 1},
		alone(inBF16{unary{tanh}, 1}, alone(inBF16{binary{mul}, 1}, in[0], in[1])), in[2]))
	if got := s.compute(t, in, nil); !same(got, []tensor.View{want}) {
		t.Error("the bits are others")
	}
}

// TestInBF16Gradients: gradients are those of f32 on the same numbers, rounded.
func TestInBF16Gradients(t *testing.T) {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.BF16, 3, 4))
	w := g.Input("w", tensor.Of(graph.F32, 4, 5))
	y := apply(inBF16{matMul{}, 1}, x, w)
	d := g.Input("d", y.Type())
	grads := y.Node.Op.VJP(y.Node, []graph.Value{d})
	if err := g.Err(); err != nil {
		t.Fatal(err)
	}
	for i, v := range []graph.Value{x, w} {
		if !grads[i].Type().Equal(v.Type()) {
			t.Errorf("the gradient of %s is %s", v.Type(), grads[i].Type())
		}
	}
}
