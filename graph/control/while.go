package control

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// While runs a body as long as a condition of its states holds, a bool, but no more than bound
// times: going on then is an error of the step. The condition and the body have the operands that
// stay the same and the states; the body gives the states anew. While gives the last states, and
// how many iterations there were, i32[].
func While(same, states []graph.Value, bound int,
	condition func(same, states []graph.Value) graph.Value,
	body func(same, states []graph.Value) []graph.Value,
	options ...Options) (last []graph.Value, count graph.Value) {
	o := first(options)
	g := graphOf(same, states)
	last = make([]graph.Value, len(states))
	if g == nil {
		return last, graph.Value{}
	}
	if bound < 1 || len(states) == 0 || o.Reverse || o.Segments > 1 || o.Count.Valid() {
		g.Fail(fmt.Errorf("a loop of at most %d iterations and %d states: want one of each, and "+
			"none of a scan's options", bound, len(states)))
		return last, graph.Value{}
	}
	operands := append(types(same), types(states)...)
	n := len(same)
	b, lifted := newBody(g, operands, n, len(operands), func(in []graph.Value) []graph.Value {
		return body(in[:n], in[n:])
	})
	if b == nil {
		return last, graph.Value{}
	}
	c, more := newBody(g, operands, 0, 0, func(in []graph.Value) []graph.Value {
		return []graph.Value{condition(in[:n], in[n:])}
	})
	if c == nil {
		return last, graph.Value{}
	}
	op := while{b, c, bound, len(same), len(states), len(lifted), len(more), !o.Forward,
		span{0, bound}}
	made := graph.Apply(op,
		slices.Concat(same, states, lifted, more)...)
	if made == nil {
		return last, graph.Value{}
	}
	return results(made)[:len(states)], made.Value(len(states))
}

// while has operands: Same that are the same, the states, the constants of the body and those of
// the condition. Its results are the states, the number of iterations and, if it records, the
// states that each iteration began with. One that goes on with another has one more operand, the
// number of iterations before it, which is in its own number.
type while struct {
	Body, Condition            *Body
	Bound                      int
	Same, States, Lifted, More int
	Record                     bool
	span
}

// part is the loop of iterations lo to hi-1.
func (w while) part(lo, hi int) while {
	w.From, w.Bound = w.From+lo, hi-lo
	return w
}

// before is how many operands say how many iterations there were.
func (w while) before() int { return min(w.From, 1) }

func (while) Name() string { return "while" }

// Infer compares operands with the bodies'.
func (w while) Infer(in []graph.Type) ([]graph.Type, error) {
	fixed := w.Same + w.States
	want := fixed + w.Lifted + w.More + w.before()
	if len(in) != want || w.Body == nil || w.Condition == nil {
		return nil, fmt.Errorf("want %d operands, have %d", want, len(in))
	}
	if err := w.Body.matches(in[:fixed+w.Lifted]); err != nil {
		return nil, err
	}
	more := in[fixed+w.Lifted:][:w.More]
	if err := w.Condition.matches(slices.Concat(in[:fixed], more)); err != nil {
		return nil, err
	}
	if w.From > 0 && !same(in[len(in)-1], graph.Of(graph.I32)) {
		return nil, fmt.Errorf("the number of iterations is %s, want i32[]", in[len(in)-1])
	}
	if t := w.Condition.out[0].Type(); !same(t, graph.Of(graph.Bool)) {
		return nil, fmt.Errorf("its condition is %s, want bool[]", t)
	}
	if len(w.Body.out) != w.States {
		return nil, fmt.Errorf("its body gives %d states, not %d", len(w.Body.out), w.States)
	}
	out := slices.Clone(in[w.Same:fixed])
	for i, v := range w.Body.out {
		if !same(v.Type(), out[i]) {
			return nil, fmt.Errorf("state %d is %s, and becomes %s", i, out[i], v.Type())
		}
	}
	out = append(out, graph.Of(graph.I32))
	if w.Record {
		for _, t := range in[w.Same:fixed] {
			out = append(out, stacked(t, w.Bound))
		}
	}
	for _, t := range out {
		if err := t.Check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Cost is that of as many iterations as there may be.
func (w while) Cost(in, out []graph.Type) graph.Cost {
	b, c := w.Body.work(), w.Condition.work()
	n := int64(w.Bound)
	return graph.Cost{FLOPs: n*b.FLOPs + (n+1)*c.FLOPs, Bytes: n*b.Bytes + (n+1)*c.Bytes +
		moved(in, out), Scratch: w.scratch()}
}

// scratch is both frames.
func (w while) scratch() int64 { return w.conditionAt() + w.Condition.frame.bytes }

// conditionAt is where the condition's frame begins.
func (w while) conditionAt() int64 {
	return aligned.Up(w.Body.frame.bytes)
}

// errBound is the error of a loop that goes on.
func (w while) errBound() error {
	return fmt.Errorf("the loop is not over after %d iterations, its bound", w.Of)
}

// VJP is a scan over what was recorded, of as many iterations, from the last on.
func (w while) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	out := make([]graph.Value, len(n.In))
	if !w.Record {
		twin := w
		twin.Record = true
		if n = graph.Apply(twin, n.In...); n == nil {
			return out
		}
	}
	l := loop{body: w.Body, same: w.Same, states: w.States,
		in: n.In[:w.Same+w.States+w.Lifted], count: n.Value(w.States),
		of: w.span, records: results(n)[w.States+1:]}
	copy(out, l.gradient(dout[:w.States], dout[w.States+1:]))
	return out
}

func whileCPU(w while, c *kernel.Call) error {
	b, err := w.Body.machine(c.Scratch, c.In, c.Pool)
	if err != nil {
		return err
	}
	fixed := w.Same + w.States
	for i := w.Same; i < fixed; i++ {
		copy(b.in[i].Data, c.In[i].Data)
	}
	seen := slices.Concat(c.In[:w.Same], b.in[w.Same:fixed], c.In[fixed+w.Lifted:][:w.More])
	condition, err := w.Condition.machine(c.Scratch[w.conditionAt():], seen, c.Pool)
	if err != nil {
		return err
	}
	if w.Record {
		for _, v := range c.Out[w.States+1:] {
			clear(v.Data)
		}
	}
	count := 0
	if w.From > 0 {
		count = int(c.In[len(c.In)-1].I32()[0])
	}
	if count == w.From {
		count, err = w.run(b, condition, c.Out)
	}
	for i := range w.States {
		copy(c.Out[i].Data, b.in[w.Same+i].Data)
	}
	c.Out[w.States].I32()[0] = int32(count)
	return err
}

// run goes on as long as the condition holds, and says how many iterations there were with those
// before. At the end of its own it leaves the rest to those that go on with it, if there are any.
func (w while) run(b, condition *machine, out []tensor.View) (count int, err error) {
	for k := 0; k < w.Bound || w.From+k == w.Of; k++ {
		if err := condition.run(); err != nil {
			return 0, fmt.Errorf("condition of iteration %d: %w", w.From+k, err)
		}
		if condition.result(0)[0] == 0 {
			return w.From + k, nil
		}
		if k == w.Bound {
			return 0, w.errBound()
		}
		if err := w.iterate(b, out, k); err != nil {
			return 0, fmt.Errorf("iteration %d: %w", w.From+k, err)
		}
	}
	return w.From + w.Bound, nil
}

// iterate runs the body once.
func (w while) iterate(b *machine, out []tensor.View, count int) error {
	if w.Record {
		for i := range w.States {
			copy(row(out[w.States+1+i], count, w.Bound), b.in[w.Same+i].Data)
		}
	}
	if err := b.run(); err != nil {
		return err
	}
	for i := range w.States {
		copy(b.in[w.Same+i].Data, b.result(i))
	}
	return nil
}

func init() { kernel.Register(kernel.CPU, whileCPU) }
