package ops

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/longtest"
)

// TestPartsAreTheWhole is the law of rules, over all samples of all operations: parts that
// are computed apart and joined have the bits of the whole where results are divided, and
// are within rounding of it where they are added up.
func TestPartsAreTheWhole(t *testing.T) {
	for i, s := range append(slices.Clone(Samples()), lawSamples()...) {
		t.Run(s.name(), func(t *testing.T) {
			if i%8 > 0 {
				longtest.Skip(t)
			}
			l, ok := newLaw(t, s)
			if why := whole[kind(s.Op)]; !ok && why == "" {
				t.Fatal("there is no rule, and no reason why it is computed whole")
			} else if !ok {
				t.Skip(why)
			}
			l.check(t)
			for f := range l.rule.Factors {
				if big, ok := s.grown(l.rule, f); ok {
					if l, ok := newLaw(t, big); ok {
						l.check(t)
					}
				}
			}
		})
	}
}

// TestPartsOfProducts: the law for products of all forms and sizes, of which some parts
// would be added up in another order by themselves.
func TestPartsOfProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int {
			return rapid.SampledFrom([]int{1, 2, 4, 6, 8, 12, 16, 24, 30, 96, 512, 520, 1040}).
				Draw(t, name)
		}
		m, n, k := size("m"), size("n"), size("k")
		o := matMul{TransA: rapid.Bool().Draw(t, "TransA"), TransB: rapid.Bool().Draw(t, "TransB")}
		type2 := func(rows, cols int, trans bool, lead ...int) graph.Type {
			if trans {
				rows, cols = cols, rows
			}
			return tensor.Of(graph.F32, append(lead, rows, cols)...)
		}
		a, b := type2(m, k, o.TransA), type2(k, n, o.TransB)
		batch := rapid.SampledFrom([]int{2, 4}).Draw(t, "batch")
		var op graph.Op = o
		switch rapid.IntRange(0, 5).Draw(t, "form") {
		case 0:
			a = type2(m, k, o.TransA, batch)
		case 1:
			b = type2(k, n, o.TransB, batch)
		case 2:
			o.Reduce, op = true, matMul{o.TransA, o.TransB, true}
			fallthrough
		case 3:
			a, b = type2(m, k, o.TransA, 2, batch), type2(k, n, o.TransB, 2, batch)
		case 4:
			a, b = type2(m, k, o.TransA, 2, 1), type2(k, n, o.TransB, 1, batch)
			op = matMulBroadcast{o.TransA, o.TransB}
		}
		// Sums of positive numbers, up to 1040: no small result hides what rounding does.
		l, ok := newLaw(t, Sample{Op: op, In: []graph.Type{a, b},
			Fill: fills{0: positive, 1: positive}})
		if !ok {
			t.Fatal("no rule")
		}
		l.tolerance = 3e-6
		var cuts []cutting
		for f := range l.rule.Factors {
			if list := l.divisors(f); len(list) > 0 {
				cuts = append(cuts, cutting{f, rapid.SampledFrom(list).Draw(t, "parts")})
			}
		}
		if len(cuts) > 0 {
			l.divide(t, rapid.SampledFrom(cuts).Draw(t, "one"))
		}
		if len(cuts) > 1 {
			pair := rapid.Permutation(cuts).Draw(t, "two")
			l.divide(t, pair[0], pair[1])
		}
	})
}

// law is a sample with its rule and its results.
type law struct {
	Sample
	rule    graph.Rule
	in, out []tensor.View

	tolerance float64 // of sums, relative to the norm of the result
}

// tester is what a law needs of a test.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// newLaw computes a sample; ok is false if it is computed whole, or refuses the operands.
func newLaw(t tester, s Sample) (l law, ok bool) {
	t.Helper()
	op, ok := s.Op.(graph.Splitter)
	if !ok {
		return l, false
	}
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	l = law{Sample: s, in: s.operands(11), tolerance: 1e-6}
	if _, ok := s.Op.(lstmGrad); ok {
		l.tolerance = 3e-6 // the whole adds thousands of rows up one after the other
	}
	if l.rule, ok = op.Split(s.In, out); !ok {
		return l, false
	}
	l.form(t, out)
	l.out, err = s.results(l.in)
	return l, err == nil
}

// form checks that a rule says what rules may.
func (l law) form(t tester, out []graph.Type) {
	t.Helper()
	if len(l.rule.In) != len(l.In) || len(l.rule.Out) != len(out) {
		t.Fatalf("a rule of %d operands and %d results, there are %d and %d", len(l.rule.In),
			len(l.rule.Out), len(l.In), len(out))
	}
	values, axes := slices.Concat(l.In, out), slices.Concat(l.rule.In, l.rule.Out)
	for i, v := range values {
		if len(axes[i]) != v.Rank() {
			t.Fatalf("value %d is %s, the rule has %d axes of it", i, v, len(axes[i]))
		}
		for j, list := range axes[i] {
			size := 1
			for _, f := range list {
				size *= l.rule.Factors[f].Size
			}
			if len(list) > 0 && size != v.Size(j) {
				t.Fatalf("axis %d of value %d, %s, is the product %d of factors", j, i, v, size)
			}
		}
	}
	for f, one := range l.rule.Factors {
		for i := range l.rule.Out {
			if l.divides(f) && !one.Sum && !has(l.rule.Out[i], f) {
				t.Fatalf("factor %d is no sum, and divides no axis of result %d", f, i)
			}
		}
	}
}

// has reports whether some axis has a factor.
func has(axes [][]int, f int) bool {
	return slices.ContainsFunc(axes, func(list []int) bool { return slices.Contains(list, f) })
}

// divides reports whether a factor can be divided: it is the major one of all its axes.
func (l law) divides(f int) bool {
	some := false
	for _, axes := range slices.Concat(l.rule.In, l.rule.Out) {
		for _, list := range axes {
			if i := slices.Index(list, f); i > 0 {
				return false
			} else if i == 0 {
				some = true
			}
		}
	}
	return some
}

// divisors are the numbers of parts that a factor can have, few of the large ones unless
// tests may be long.
func (l law) divisors(f int) []int {
	var list []int
	if size := l.rule.Factors[f].Size; l.divides(f) {
		for n := 2; n <= size; n++ {
			if size%n == 0 && (n <= 8 || n == size && n < 80 || longtest.Enabled()) {
				list = append(list, n)
			}
		}
	}
	return list
}

// cutting divides a factor into so many parts.
type cutting struct{ factor, parts int }

// check divides by every factor, and by every two.
func (l law) check(t tester) {
	t.Helper()
	for f := range l.rule.Factors {
		for _, n := range l.divisors(f) {
			l.divide(t, cutting{f, n})
		}
		for g := range f {
			if a, b := l.divisors(f), l.divisors(g); len(a) > 0 && len(b) > 0 {
				l.divide(t, cutting{f, a[0]}, cutting{g, b[0]})
			}
		}
	}
}

// divide computes all parts, joins them and compares.
func (l law) divide(t tester, cuts ...cutting) {
	t.Helper()
	count := 1
	for _, c := range cuts {
		count *= c.parts
	}
	got := make([]tensor.View, len(l.out))
	for i, v := range l.out {
		got[i] = tensor.New(v.Type)
	}
	for i := range count {
		at, rest := make([]graph.Part, len(l.rule.Factors)), i
		for _, c := range cuts {
			at[c.factor] = graph.Part{N: c.parts, I: rest % c.parts}
			rest /= c.parts
		}
		l.part(t, at, got)
	}
	l.compare(t, got, cuts)
}

// part computes a part and puts its results where they belong.
func (l law) part(t tester, at []graph.Part, got []tensor.View) {
	t.Helper()
	local := Sample{Op: l.Op, Update: l.Update}
	var in []tensor.View
	for i, v := range l.in {
		v = portion(v, l.rule.In[i], at)
		in, local.In = append(in, v), append(local.In, v.Type)
	}
	if l.rule.Local != nil {
		local.Op = l.rule.Local(at)
	}
	out, err := local.results(in)
	if err != nil {
		t.Fatalf("part %v: %v", at, err)
	}
	for i, v := range out {
		axes := l.axes(i)
		if want := part(l.out[i].Type, axes, at); !v.Type.Equal(want) {
			t.Fatalf("part %v has a result %s, want %s", at, v.Type, want)
		}
		add := false
		for f, p := range at {
			add = add || p.N > 1 && l.rule.Factors[f].Sum && !has(axes, f)
		}
		put(got[i], v, axes, at, add)
	}
}

// axes are those of a result; those that an update writes are its first operands.
func (l law) axes(i int) [][]int {
	if l.Update > 0 {
		return l.rule.In[i]
	}
	return l.rule.Out[i]
}

// results are what an operation makes of operands, views too.
func (s Sample) results(in []tensor.View) ([]tensor.View, error) {
	out, err := s.Op.Infer(s.In)
	if err != nil {
		return nil, err
	}
	if view, ok := s.Op.(graph.Viewer); ok {
		var list []tensor.View
		for i, at := range view.View(s.In, out) {
			list = append(list, tensor.View{Type: out[i], Data: in[0].Data[at : at+out[i].Bytes()]})
		}
		return list, nil
	}
	fn, err := kernel.Lookup(kernel.CPU, s.Op)
	if err != nil {
		return nil, err
	}
	c := kernel.Call{Scratch: poisoned(s.Op.Cost(s.In, out).Scratch)}
	for _, v := range in {
		c.In = append(c.In, tensor.View{Type: v.Type, Data: slices.Clone(v.Data)})
	}
	for _, t := range out {
		c.Out = append(c.Out, tensor.View{Type: t, Data: poisoned(t.Bytes())})
	}
	if err := fn(s.Op, &c); err != nil {
		return nil, err
	}
	if s.Update > 0 {
		return c.In[:s.Update], nil
	}
	return c.Out, nil
}

// poisoned is memory with what was there before.
func poisoned(n int64) []byte {
	data := tensor.New(tensor.Of(tensor.U8, int(max(1, n)))).Data
	for i := range data {
		data[i] = 0xff
	}
	return data[:n]
}

// compare wants the bits of the whole, or nearly those where parts were added up.
func (l law) compare(t tester, got []tensor.View, cuts []cutting) {
	t.Helper()
	for i, want := range l.out {
		sum, exact := false, true
		for _, c := range cuts {
			if f := l.rule.Factors[c.factor]; f.Sum && !has(l.axes(i), c.factor) {
				sum, exact = true, exact && f.Exact
			}
		}
		switch {
		case string(got[i].Data) == string(want.Data):
		case !sum:
			t.Fatalf("%+v %v: result %d divided by %v has other bits", l.Op, l.In, i, cuts)
		default:
			if off := distance(got[i].F32(), want.F32()); off > l.tolerance || exact && off > 0 {
				t.Fatalf("%+v %v: result %d added up of %v is off by %g", l.Op, l.In, i, cuts, off)
			}
		}
	}
}

// distance is how far a is from b, relative to b's norm.
func distance(a, b []float32) float64 {
	var off, norm float64
	for i, v := range b {
		d := float64(a[i] - v)
		off, norm = off+d*d, norm+float64(v)*float64(v)
	}
	if off == 0 {
		return 0
	}
	return math.Sqrt(off / norm)
}

// portion is a part of an operand.
func portion(v tensor.View, axes [][]int, at []graph.Part) tensor.View {
	out := tensor.New(part(v.Type, axes, at))
	eachRun(v.Type, out.Type, axes, at, func(whole, own, n int) {
		copy(out.Data[own:own+n], v.Data[whole:])
	})
	return out
}

// put puts a part of a result to where it belongs, or adds it to what is there.
func put(to, v tensor.View, axes [][]int, at []graph.Part, add bool) {
	eachRun(to.Type, v.Type, axes, at, func(whole, own, n int) {
		if !add {
			copy(to.Data[whole:whole+n], v.Data[own:])
			return
		}
		for i, x := range v.F32()[own/4 : (own+n)/4] {
			to.F32()[whole/4+i] += x
		}
	})
}

// eachRun calls f for the rows of the last axis of a part: where they are in the whole and
// in the part, and how long they are, in bytes.
func eachRun(whole, own graph.Type, axes [][]int, at []graph.Part, f func(whole, own, n int)) {
	if own.Elems() == 0 {
		return
	}
	size := int(own.DType.Size())
	last := 1
	if own.Rank() > 0 {
		last = own.Size(-1)
	}
	for i := 0; i < own.Elems(); i += last {
		rest, to, step := i, 0, 1
		for k := own.Rank() - 1; k >= 0; k-- {
			_, lo := shareOf(whole.Size(k), axes[k], at)
			to += (lo + rest%own.Size(k)) * step
			rest /= own.Size(k)
			step *= whole.Size(k)
		}
		f(to*size, i*size, last*size)
	}
}

// grown is a sample with an axis four times as long wherever it has a factor; ok is false
// if its operation does not take such operands, as it has their size as an attribute.
func (s Sample) grown(r graph.Rule, f int) (Sample, bool) {
	big := s
	big.In = nil
	for i, t := range s.In {
		for j, list := range r.In[i] {
			if slices.Contains(list, f) {
				t = resized(t, j, 4*t.Size(j))
			}
		}
		big.In = append(big.In, t)
	}
	if slices.EqualFunc(big.In, s.In, graph.Type.Equal) {
		return s, false
	}
	_, err := s.Op.Infer(big.In)
	return big, err == nil
}

// lawSamples are samples of sizes that have divisors, or of which parts have other ways to
// compute by themselves.
func lawSamples() []Sample {
	f := func(sizes ...int) graph.Type { return tensor.Of(graph.F32, sizes...) }
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	seed := ids(2)
	add := func(lo, hi int, sizes ...int) Sample {
		return Sample{Op: sum{Lo: lo, Hi: hi}, In: []graph.Type{f(sizes...)}}
	}
	return []Sample{
		add(0, 1, 4096, 64), add(1, 2, 8, 4096, 32), add(1, 2, 8, 4096), add(0, 1, 600, 2*wide),
		add(0, 1, 600, wide), add(1, 2, 4, 12, 16), add(0, 2, 30, 40, 6),
		{Op: matMul{}, In: []graph.Type{f(4, 96, 64), f(64, 160)}},
		{Op: matMul{TransB: true}, In: []graph.Type{f(16, 600), f(32, 600)}},
		{Op: matMul{TransA: true}, In: []graph.Type{f(600, 192), f(600, 36)}},
		{Op: layerScaleGrad{0.1}, In: []graph.Type{f(256, 8, 64), f(256, 8, 64)}},
		{Op: reshape{sized([]int{4, 128, 8})}, In: []graph.Type{f(16, 32, 8)}},
		{Op: reshape{sized([]int{8, 6})}, In: []graph.Type{f(12, 4)}},
		{Op: reshape{sized([]int{2, 6, 1, 4})}, In: []graph.Type{f(12, 4)}},
		{Op: broadcast{sized([]int{4, 6, 8})}, In: []graph.Type{f(6, 1)}},
		{Op: fill{Value: 3, Shape: sized([]int{4, 6})}},
		{Op: noise{true, 3, sized([]int{4, 6, 15})}, In: []graph.Type{seed}},
		{Op: dropout{Rate: 0.4, Salt: 7, Shared: 0b010}, In: []graph.Type{f(4, 1, 6), seed}},
		{Op: dropout{Rate: 0.4, Salt: 7, Shared: 0b010}, In: []graph.Type{f(4, 8, 6), seed}},
		{Op: embedding{}, In: []graph.Type{f(12, 8), ids(4, 6)}, Fill: fills{1: below(12)}},
		{Op: embeddingGrad{Rows: 12}, In: []graph.Type{ids(4, 6), f(4, 6, 8)},
			Fill: fills{0: below(12)}},
		{Op: top2{Threshold: 0.2, Salt: 9}, In: []graph.Type{f(4, 6, 5), seed},
			Fill: fills{0: positive}},
		{Op: putLast{Size: 6}, In: []graph.Type{ids(4, 3), f(4, 3)}, Fill: fills{0: choices(6)}},
		{Op: oneHot{Depth: 6}, In: []graph.Type{ids(4, 3)}, Fill: fills{0: below(6)}},
		{Op: dispatch{Slots: 6}, In: []graph.Type{ids(2, 9), ids(2, 9)},
			Fill: fills{0: choices(6), 1: choices(6)}},
		{Op: combine{Slots: 6}, In: []graph.Type{ids(2, 9), ids(2, 9), f(2, 9), f(2, 9)},
			Fill: fills{0: choices(6), 1: choices(6)}},
		{Op: groupedMatMul{}, In: []graph.Type{f(40, 64), f(4, 64, 64), ids(5)},
			Fill: fills{2: fill32(3, 5, 5, 25, 38)}},
		{Op: groupedMatMul{Trans: true}, In: []graph.Type{f(40, 64), f(4, 6, 64), ids(5)},
			Fill: fills{2: fill32(0, 5, 5, 25, 40)}},
		{Op: groupedOuter{}, In: []graph.Type{f(40, 64), f(40, 8), ids(5)},
			Fill: fills{2: fill32(0, 5, 5, 25, 38)}},
		{Op: conv2D{Conv{Pad: SamePad(3)}.defaults()},
			In: []graph.Type{f(8, 6, 9, 9), f(12, 6, 3, 3)}},
		{Op: lstm{1}, In: []graph.Type{f(5, 32, 24), f(40, 64), f(64), f(32, 16), f(32, 16)},
			Fill: fills{1: tenth}},
		{Op: lstmGrad{1}, Fill: fills{1: tenth}, In: []graph.Type{f(5, 320, 24), f(40, 64),
			f(320, 16), f(320, 16), f(5, 320, 16), f(5, 320, 16), f(5, 320, 64), f(5, 320, 16)}},
		{Op: conv2D{Conv{}.defaults()}, In: []graph.Type{f(4, 4, 20, 20), f(64, 4, 1, 1)}},
		{Op: conv2D{Conv{Groups: 4}.defaults()},
			In: []graph.Type{f(4, 8, 7, 7), f(16, 2, 3, 3)}},
		{Op: conv2D{Conv{Pad: SamePad(3)}.defaults()},
			In: []graph.Type{f(4, 64, 8, 8), f(128, 64, 3, 3)}},
		{Op: convInputGrad{Conv{Pad: SamePad(3)}.defaults(), 9, 9},
			In: []graph.Type{f(8, 12, 9, 9), f(12, 6, 3, 3)}},
		{Op: convFilterGrad{Conv{Pad: SamePad(3)}.defaults(), 3, 3},
			In: []graph.Type{f(8, 6, 9, 9), f(8, 12, 9, 9)}},
		{Op: convFilterGrad{Conv{Pad: SamePad(3)}.defaults(), 3, 3},
			In: []graph.Type{f(4, 64, 8, 8), f(4, 256, 8, 8)}},
		{Op: scatter{1, sized([]int{4, 6})}, In: []graph.Type{ids(4, 8), f(4, 8)},
			Fill: fills{0: below(6)}},
	}
}
