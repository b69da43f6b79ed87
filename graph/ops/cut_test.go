package ops

import (
	stdbytes "bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/longtest"
)

// TestCuts: wherever an operation says that it can be cut, its parts give the bits
// of the whole.
func TestCuts(t *testing.T) {
	longtest.Skip(t)
	eachSample(t, func(t *testing.T, s Sample) {
		if _, ok := s.Op.(graph.Cutter); !ok {
			t.Skip("cannot be cut")
		}
		for _, s := range []Sample{s, s.enlarged()} {
			if len(s.operands(1)[0].Data) > 1<<22 {
				continue
			}
			checkCut(t, s, func(int) int { return 0 })
			checkCut(t, s, func(n int) int { return n / 2 })
			checkCut(t, s, func(n int) int { return n - 1 })
		}
	})
}

// TestCutProducts: so do products of all forms, and those with chains.
func TestCutProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int {
			return rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 20),
				rapid.IntRange(250, 600)).Draw(t, name)
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
		batch := rapid.SampledFrom([]int{2, 3, 8}).Draw(t, "batch")
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			a = type2(m, k, o.TransA, batch)
		case 1:
			b = type2(k, n, o.TransB, batch)
		case 2:
			o.Reduce = true
			fallthrough
		case 3:
			a, b = type2(m, k, o.TransA, 2, batch), type2(k, n, o.TransB, 2, batch)
		}
		s := Sample{Op: o, In: []graph.Type{a, b}}
		if out, err := o.Infer(s.In); err != nil {
			t.Fatal(err)
		} else if rapid.Bool().Draw(t, "a chain") && !o.Reduce {
			s.Op = matMulChain{o, code(2, two(binary{add}, 0, 1), one(unary{gelu}, ^0))}
			s.In = append(s.In, rapid.SampledFrom([]graph.Type{out[0],
				tensor.Of(graph.F32, n)}).Draw(t, "added"))
		}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "cut") }
		checkCut(t, s, pick)
	})
}

// checker is what a failed check needs.
type checker interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// checkCut compares two parts of a sample, cut at one of the possible places, with
// the whole.
func checkCut(t checker, s Sample, pick func(n int) int) {
	t.Helper()
	out, err := s.Op.Infer(s.In)
	if err != nil {
		t.Fatal(err)
	}
	op := s.Op.(graph.Cutter)
	c, ok := op.Cut(s.In, out)
	places := 0
	if ok {
		first := (c.Least + c.Align - 1) / c.Align
		places = (c.Rows-c.Least)/c.Align - first + 1
	}
	if places < 1 {
		return
	}
	at := (c.Least+c.Align-1)/c.Align*c.Align + pick(places)*c.Align
	in := s.operands(9)
	whole := execute(t, s.Op, in)
	var sum []tensor.View
	rows := make([][]byte, len(out))
	for _, part := range [][2]int{{0, at}, {at, c.Rows}} {
		args := append([]tensor.View{}, sum...)
		for i, v := range in {
			args = append(args, rowsOf(v, c.Rows, c.In[i], part[0], part[1]))
		}
		got := execute(t, op.Part(s.In, out, part[0], part[1]), args)
		for i, want := range c.Part(out, part[1]-part[0]) {
			if rows[i] = append(rows[i], got[i].Data...); !want.Equal(got[i].Type) {
				t.Fatalf("%v%v: a part is %s, want %s", s.Op, s.In, got[i].Type, want)
			}
		}
		if c.Sums() {
			sum, rows = got, [][]byte{got[0].Data}
		}
	}
	if c.Finish != nil {
		rows[0] = execute(t, c.Finish, sum)[0].Data
	}
	for i, x := range whole {
		if !stdbytes.Equal(x.Data, rows[i]) {
			t.Fatalf("%+v%v: cut after row %d of %d the bits are others", s.Op, s.In, at, c.Rows)
		}
	}
}

// rowsOf is some of the rows of a value.
func rowsOf(v tensor.View, rows, axes, lo, hi int) tensor.View {
	if axes == 0 {
		return v
	}
	row := len(v.Data) / rows
	return tensor.View{Type: graph.RowsOf(v.Type, axes, hi-lo), Data: v.Data[lo*row : hi*row]}
}

// execute is the operation's results.
func execute(t checker, op graph.Op, in []tensor.View) []tensor.View {
	t.Helper()
	var types []graph.Type
	for _, v := range in {
		types = append(types, v.Type)
	}
	out, err := op.Infer(types)
	if err != nil {
		t.Fatal(err)
	}
	fn, err := kernel.Lookup(kernel.CPU, op)
	if err != nil {
		t.Fatal(err)
	}
	c := kernel.Call{In: in,
		Scratch: tensor.New(tensor.Of(tensor.U8, max(1, int(op.Cost(types, out).Scratch)))).Data}
	for _, t := range out {
		c.Out = append(c.Out, tensor.New(t))
	}
	if err := fn(op, &c); err != nil {
		t.Fatal(err)
	}
	return c.Out
}
