package ops

import (
	"slices"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// TestTerms: what an operation makes of terms of operands in which its rule says that it is
// linear adds up to what it makes of their sums; and of operands that are zero but in places
// of their own, it makes results that are, and that have the elements of the whole.
func TestTerms(t *testing.T) {
	some := map[string]bool{}
	for _, s := range append(slices.Clone(Samples()), lawSamples()...) {
		l, ok := newLaw(t, s)
		if !ok || l.out[0].Type.DType != graph.F32 {
			continue
		}
		for _, set := range l.rule.Adds {
			some[kind(s.Op)] = true
			if off := l.inTerms(t, set, addend); off > 2e-6 {
				t.Errorf("%s: terms of operands %v are off by %g", s.name(), set, off)
			}
		}
		for _, set := range l.rule.Zeros {
			some[kind(s.Op)] = true
			if off := l.inTerms(t, set, place); off > 0 {
				t.Errorf("%s: places of operands %v are off by %g", s.name(), set, off)
			}
		}
	}
	for _, name := range []string{"binary", "unary", "slope", "affine", "reshape", "transpose",
		"sum", "sumRows", "combineRows", "dotRows"} {
		if !some[name] {
			t.Errorf("no sample of %s is made of terms", name)
		}
	}
}

// addend is one of three terms of x, element i of a value.
func addend(x float32, i, term int) float32 {
	first := float32(0.25 * float32(i%3) * x)
	switch term {
	case 0:
		return first
	case 1:
		return -0.5 * x
	}
	return x - first + 0.5*x
}

// place is x in the term that has place i, and zero in the others.
func place(x float32, i, term int) float32 {
	if i%3 == term {
		return x
	}
	return 0
}

// inTerms is how far the sum of what comes of three terms of some operands is from what
// comes of the whole.
func (l law) inTerms(t *testing.T, set []int,
	of func(x float32, i, term int) float32) (off float64) {
	t.Helper()
	sums := make([]tensor.View, len(l.out))
	for term := range 3 {
		in := slices.Clone(l.in)
		for _, k := range set {
			in[k] = tensor.New(l.in[k].Type)
			for i, x := range l.in[k].F32() {
				in[k].F32()[i] = of(x, i, term)
			}
		}
		out, err := l.results(in)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range out {
			if term == 0 {
				sums[i] = tensor.New(v.Type)
			}
			for k, x := range v.F32() {
				sums[i].F32()[k] += x
			}
		}
	}
	for i, want := range l.out {
		off = max(off, distance(sums[i].F32(), want.F32()))
	}
	return off
}

// TestRowsOf: the rows that operations read and fill are those that it says: others do not
// matter, and stay.
func TestRowsOf(t *testing.T) {
	seen := 0
	for _, s := range Samples() {
		r, ok := RowsOf(s.Op)
		if !ok {
			continue
		}
		seen++
		in := s.operands(7)
		before, err := s.results(in)
		if err != nil {
			t.Fatal(err)
		}
		offsets := in[r.Offsets].I32()
		outside := func(v tensor.View, change func(row int, x []float32)) {
			width := v.Type.Size(1)
			for row := range v.Type.Size(0) {
				if row < int(offsets[r.Expert]) || row >= int(offsets[r.Expert+1]) {
					change(row, v.F32()[row*width:(row+1)*width])
				}
			}
		}
		for _, k := range r.Rows {
			outside(in[k], func(_ int, x []float32) { x[0] += 5 })
		}
		after, err := s.results(in)
		if err != nil || string(after[0].Data) != string(before[0].Data) {
			t.Errorf("%s reads rows of others: %v", s.name(), err)
		}
		if r.Fills {
			width := in[0].Type.Size(1)
			outside(after[0], func(row int, x []float32) {
				if !slices.Equal(x, in[0].F32()[row*width:(row+1)*width]) {
					t.Errorf("%s changes row %d", s.name(), row)
				}
			})
		}
	}
	if seen == 0 || !Names(expertJoin{Experts: 1}) || Names(graph.Op(nil)) {
		t.Error("no operation on rows of experts, or none that is another's name")
	}
}

// TestGroupsOf: of rows, or of pairs of them, an operation makes rows in the same places, or
// weights, by expert: those of others do not matter.
func TestGroupsOf(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range lawSamples() {
		rows := GroupsOf(s.Op)
		if rows == nil {
			continue
		}
		seen[kind(s.Op)] = true
		in := s.operands(7)
		before, err := s.results(in)
		if err != nil {
			t.Fatal(err)
		}
		offsets := in[2].I32()
		lo, hi := int(offsets[1]), int(offsets[2]) // expert 1's, which has some
		for _, k := range rows {
			width := in[k].Type.Size(1)
			for i := lo * width; i < hi*width; i++ {
				in[k].F32()[i] += 5
			}
		}
		after, err := s.results(in)
		if err != nil {
			t.Fatal(err)
		}
		one := after[0].Type.Elems() / after[0].Type.Size(0)
		from, to := lo, hi
		if after[0].Type.Rank() == 3 {
			from, to = 1, 2
		}
		for i, x := range after[0].F32() {
			if outside := i/one < from || i/one >= to; outside && x != before[0].F32()[i] {
				t.Fatalf("%s: element %d is of another expert, and changes", s.name(), i)
			}
		}
	}
	if !seen["groupedMatMul"] || !seen["groupedOuter"] {
		t.Errorf("only %v", seen)
	}
}
