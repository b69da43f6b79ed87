package control

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Options are those of a loop.
type Options struct {
	// Reverse runs a Scan from the last element to the first.
	Reverse bool
	// Segments is how many operations a Scan is made of, one after the other: what one of them
	// takes on the device is as much less. 0 means 1.
	Segments int
	// Count, i32[], is how many iterations a Scan has, the first ones of those that there are
	// elements for; rows that it does not reach are zeros. The zero Value: all.
	Count graph.Value
	// Forward records no states: a gradient has to run the loop once more.
	Forward bool

	of span // the loop that it is iterations of; none: it is all of it
}

// span is which iterations of a longer loop a loop is: from one on, of so many that a count may
// have.
type span struct{ From, Of int }

// reached is how many iterations of a loop a count leaves to so many of them.
func (s span) reached(count int32, length int) int {
	return min(max(int(count)-s.From, 0), length)
}

// Scan runs a body for every element along axis 0 of some operands, xs, all of one length. The body
// has operands of three kinds: what is the same in each iteration, the states, which it gives anew,
// of their types, and an element of each of xs, without axis 0. It gives the states, and a row for
// each of ys, which are stacked along a new axis 0, those of a reversed loop by their elements too.
func Scan(same, states, xs []graph.Value,
	body func(same, states, xs []graph.Value) (next, ys []graph.Value),
	options ...Options) (last, ys []graph.Value) {
	o := first(options)
	g := graphOf(same, states, xs)
	if g == nil {
		return make([]graph.Value, len(states)), nil
	}
	length, operands, err := elements(same, states, xs)
	if err != nil {
		g.Fail(err)
		return make([]graph.Value, len(states)), nil
	}
	rows := 0
	fixed := len(same) + len(states)
	whole := func(in []graph.Value) []graph.Value {
		next, ys := body(in[:len(same)], in[len(same):fixed], in[fixed:])
		rows = len(ys)
		return slices.Concat(next, ys)
	}
	b, lifted := newBody(g, operands, len(same), len(operands), whole)
	if b == nil {
		return make([]graph.Value, len(states)), make([]graph.Value, rows)
	}
	s := scan{Body: b, Length: length, Same: len(same), States: len(states), Xs: len(xs),
		Lifted: len(lifted), Record: !o.Forward, Reverse: o.Reverse, Counted: o.Count.Valid(),
		span: o.of}
	if s.Of == 0 {
		s.Of = length
	}
	if len(b.out) != s.States+rows {
		g.Fail(fmt.Errorf("the body of a scan gives %d states, not %d", len(b.out)-rows, s.States))
		return make([]graph.Value, len(states)), make([]graph.Value, rows)
	}
	return s.segments(max(1, o.Segments), same, states, xs, lifted, o.Count)
}

func first(options []Options) Options {
	if len(options) == 0 {
		return Options{}
	}
	return options[0]
}

// graphOf is the graph of some values; nil where one is no value, or there are none.
func graphOf(lists ...[]graph.Value) (g *graph.Graph) {
	for _, list := range lists {
		for _, v := range list {
			if !v.Valid() {
				return nil
			}
			g = v.Graph()
		}
	}
	return g
}

// elements are the types of a body's operands, and how many iterations there are.
func elements(same, states, xs []graph.Value) (length int, list []graph.Type, err error) {
	list = append(types(same), types(states)...)
	if len(xs) == 0 {
		return 0, nil, fmt.Errorf("a scan has nothing to go along: see While")
	}
	length = -1
	for _, x := range xs {
		t := x.Type()
		switch {
		case t.Rank() == 0:
			return 0, nil, fmt.Errorf("a scan goes along axis 0, and %s has none", t)
		case length >= 0 && t.Size(0) != length:
			return 0, nil, fmt.Errorf("a scan goes along %d elements and along %d", length,
				t.Size(0))
		}
		length = t.Size(0)
		list = append(list, element(t))
	}
	if length == 0 {
		return 0, nil, fmt.Errorf("a scan goes along no elements")
	}
	return length, list, nil
}

// element is a row's type.
func element(t graph.Type) graph.Type { return graph.Type{DType: t.DType, Shape: t.Shape[1:]} }

// stacked is the type of so many rows.
func stacked(t graph.Type, n int) graph.Type {
	return graph.Type{DType: t.DType, Shape: append([]graph.Dim{{Size: n}}, t.Shape...)}
}

// scan has operands: Same that are the same, the states, Xs to go along, the Lifted constants of
// the body and, if Counted, the number of iterations. Its results are the states, the rows, and the
// states that each iteration began with, if it records.
type scan struct {
	Body                     *Body
	Length                   int
	Same, States, Xs, Lifted int
	Record, Reverse, Counted bool
	span
}

func (scan) Name() string { return "scan" }

// rows is how many results have a row of each iteration, but for records.
func (s scan) rows() int { return len(s.Body.out) - s.States }

// results is how many there are.
func (s scan) results() int {
	if s.Record {
		return len(s.Body.out) + s.States
	}
	return len(s.Body.out)
}

// part is the scan of iterations lo to hi-1.
func (s scan) part(lo, hi int) scan {
	s.From, s.Length = s.From+lo, hi-lo
	return s
}

// segments applies the scan to parts of what it goes along.
func (s scan) segments(parts int, same, states, xs, lifted []graph.Value,
	count graph.Value) (last, ys []graph.Value) {
	parts = min(parts, s.Length)
	rows := make([][]graph.Value, s.rows())
	last = states
	for k := range parts {
		if s.Reverse {
			k = parts - 1 - k
		}
		lo, hi := k*s.Length/parts, (k+1)*s.Length/parts
		in := append(append([]graph.Value{}, same...), last...)
		for _, x := range xs {
			if parts > 1 {
				x = ops.Slice(x, 0, lo, hi)
			}
			in = append(in, x)
		}
		in = append(in, lifted...)
		if s.Counted {
			in = append(in, count)
		}
		n := graph.Apply(s.part(lo, hi), in...)
		if n == nil {
			return make([]graph.Value, s.States), make([]graph.Value, s.rows())
		}
		last = results(n)[:s.States]
		for i := range rows {
			rows[i] = append(rows[i], n.Value(s.States+i))
		}
	}
	for _, r := range rows {
		if s.Reverse {
			r = reversed(r)
		}
		if len(r) == 1 {
			ys = append(ys, r[0])
		} else {
			ys = append(ys, ops.Concat(0, r...))
		}
	}
	return last, ys
}

func reversed(list []graph.Value) []graph.Value {
	out := make([]graph.Value, len(list))
	for i, v := range list {
		out[len(list)-1-i] = v
	}
	return out
}

func results(n *graph.Node) []graph.Value {
	out := make([]graph.Value, len(n.Out))
	for i := range out {
		out[i] = n.Value(i)
	}
	return out
}

// Infer compares operands with the body's.
func (s scan) Infer(in []graph.Type) ([]graph.Type, error) {
	want := s.Same + s.States + s.Xs + s.Lifted
	if s.Counted {
		want++
	}
	if len(in) != want || s.Body == nil {
		return nil, fmt.Errorf("want %d operands, have %d", want, len(in))
	}
	if s.Counted && !same(in[want-1], graph.Of(graph.I32)) {
		return nil, fmt.Errorf("the number of iterations is %s, want i32[]", in[want-1])
	}
	each := append([]graph.Type{}, in[:s.Same+s.States]...)
	for _, t := range in[s.Same+s.States:][:s.Xs] {
		if t.Rank() == 0 || t.Size(0) != s.Length {
			return nil, fmt.Errorf("%s has no %d elements to go along", t, s.Length)
		}
		each = append(each, element(t))
	}
	each = append(each, in[s.Same+s.States+s.Xs:][:s.Lifted]...)
	if err := s.Body.matches(each); err != nil {
		return nil, err
	}
	return s.types(in)
}

// types are those of the results.
func (s scan) types(in []graph.Type) (out []graph.Type, err error) {
	for i, v := range s.Body.out {
		switch {
		case i >= s.States:
			out = append(out, stacked(v.Type(), s.Length))
		case !same(v.Type(), in[s.Same+i]):
			return nil, fmt.Errorf("state %d is %s, and becomes %s", i, in[s.Same+i], v.Type())
		default:
			out = append(out, in[s.Same+i])
		}
	}
	if s.Record {
		for i := range s.States {
			out = append(out, stacked(in[s.Same+i], s.Length))
		}
	}
	for _, t := range out {
		if err := t.Check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Cost is that of all iterations; the scratch is the frame.
func (s scan) Cost(in, out []graph.Type) graph.Cost {
	c := s.Body.work()
	n := int64(s.Length)
	return graph.Cost{FLOPs: n * c.FLOPs, Bytes: n*c.Bytes + moved(in, out),
		Scratch: s.Body.frame.bytes}
}

// moved is what is copied into frames and out of them.
func moved(in, out []graph.Type) (n int64) {
	for _, t := range append(append([]graph.Type{}, in...), out...) {
		n += 2 * t.Bytes()
	}
	return n
}

// CheckData wants no more iterations than there are elements.
func (s scan) CheckData(in []tensor.View) error {
	if !s.Counted || in[len(in)-1].Data == nil {
		return nil
	}
	if n := in[len(in)-1].I32()[0]; n < 0 || int(n) > s.Of {
		return fmt.Errorf("%d iterations of %d", n, s.Of)
	}
	return nil
}

// row is element i of what has rows.
func row(v tensor.View, i int, rows int) []byte {
	size := len(v.Data) / rows
	return v.Data[i*size : (i+1)*size]
}

func scanCPU(s scan, c *kernel.Call) error {
	if err := s.CheckData(c.In); err != nil {
		return err
	}
	m, err := s.Body.machine(c.Scratch, c.In, c.Pool)
	if err != nil {
		return err
	}
	n := s.Length
	if s.Counted {
		n = s.reached(c.In[len(c.In)-1].I32()[0], s.Length)
		for _, v := range c.Out[s.States:] {
			clear(v.Data)
		}
	}
	for i := s.Same; i < s.Same+s.States; i++ {
		copy(m.in[i].Data, c.In[i].Data)
	}
	for k := range n {
		at := k
		if s.Reverse {
			at = n - 1 - k
		}
		if err := s.iterate(m, c, at); err != nil {
			return fmt.Errorf("iteration %d: %w", k, err)
		}
	}
	for i := range s.States {
		copy(c.Out[i].Data, m.in[s.Same+i].Data)
	}
	return nil
}

// iterate runs the body for the elements of a place.
func (s scan) iterate(m *machine, c *kernel.Call, at int) error {
	fixed := s.Same + s.States
	for i := range s.Xs {
		copy(m.in[fixed+i].Data, row(c.In[fixed+i], at, s.Length))
	}
	if s.Record {
		for i := range s.States {
			copy(row(c.Out[s.States+s.rows()+i], at, s.Length), m.in[s.Same+i].Data)
		}
	}
	if err := m.run(); err != nil {
		return err
	}
	for i := range s.rows() {
		copy(row(c.Out[s.States+i], at, s.Length), m.result(s.States+i))
	}
	for i := range s.States {
		copy(m.in[s.Same+i].Data, m.result(i))
	}
	return nil
}

func init() { kernel.Register(kernel.CPU, scanCPU) }
