package control

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/cuda"
)

// Recurse is what a function gives of operands that calls itself, no more than depth calls within
// one another: one that would is an error of the step. The function gets its operands and itself,
// which takes values of the operands' types and gives some of the results' types, and has to end by
// a [Cond]. However often it calls itself, each depth is a body with one frame.
func Recurse(depth int, operands []graph.Value, gives []graph.Type,
	f func(in []graph.Value, self func(in []graph.Value) []graph.Value) []graph.Value,
) []graph.Value {
	g := graphOf(operands)
	none := make([]graph.Value, len(gives))
	if g == nil {
		return none
	}
	if depth < 1 {
		g.Fail(fmt.Errorf("a function that calls itself %d deep: want 1 or more", depth))
		return none
	}
	takes := types(operands)
	self := func(in []graph.Value) []graph.Value {
		return applied(beyond{depth, &signature{takes, gives}}, len(gives), in)
	}
	for range depth {
		deeper := self
		b, err := makeBody(takes, 0, 0, func(in []graph.Value) []graph.Value {
			return f(in, deeper)
		})
		if err == nil {
			err = (&signature{takes, gives}).gives(b)
		}
		if err != nil {
			g.Fail(err)
			return none
		}
		self = func(in []graph.Value) []graph.Value { return b.called(len(takes), in) }
	}
	return self(operands)
}

// applied is an operation's results, of which there are so many.
func applied(op graph.Op, count int, in []graph.Value) []graph.Value {
	if n := graph.Apply(op, in...); n != nil {
		return results(n)
	}
	return make([]graph.Value, count)
}

// signature is what a function that calls itself takes and gives.
type signature struct{ in, out []graph.Type }

// String tells signatures apart, so that graphs with them have a digest.
func (s *signature) String() string { return fmt.Sprint(s.in, s.out) }

// gives reports a body whose results are others, or that costs too much.
func (s *signature) gives(b *Body) error {
	if !slices.EqualFunc(types(b.out), s.out, same) {
		return fmt.Errorf("a function that calls itself gives %v, not %v", types(b.out), s.out)
	}
	if c := b.work(); c.FLOPs < 0 || c.Bytes < 0 {
		return errors.New("a function that calls itself so deep costs more than can be counted")
	}
	return nil
}

// beyond is the call that is one too deep.
type beyond struct {
	Depth int
	Types *signature
}

func (beyond) Name() string { return "call-beyond" }

func (o beyond) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.Types == nil || !slices.EqualFunc(in, o.Types.in, same) {
		return nil, fmt.Errorf("a function calls itself with %v, and not with its operands' types",
			in)
	}
	return o.Types.out, nil
}

func (beyond) Cost(_, _ []graph.Type) graph.Cost { return graph.Cost{} }

// VJP: what gives nothing has no gradient.
func (beyond) VJP(n *graph.Node, _ []graph.Value) []graph.Value {
	return make([]graph.Value, len(n.In))
}

func (o beyond) err() error {
	return fmt.Errorf("a function calls itself more than %d deep, its bound", o.Depth)
}

// call has the operands of a body, and its constants.
type call struct {
	Body     *Body
	Operands int
}

// called applies a body to operands.
func (b *Body) called(operands int, in []graph.Value) []graph.Value {
	g := graphOf(in)
	if g == nil {
		return make([]graph.Value, len(b.out))
	}
	return applied(call{b, operands}, len(b.out), slices.Concat(in, b.lifted(g, operands)))
}

func (call) Name() string { return "call" }

func (c call) Infer(in []graph.Type) ([]graph.Type, error) {
	if c.Body == nil {
		return nil, errors.New("no body")
	}
	if err := c.Body.matches(in); err != nil {
		return nil, err
	}
	return types(c.Body.out), nil
}

func (c call) Cost(_, out []graph.Type) graph.Cost {
	w := c.Body.work()
	return graph.Cost{FLOPs: w.FLOPs, Bytes: w.Bytes + moved(nil, out),
		Scratch: c.Body.frame.bytes}
}

// VJP is a call, too, of a body that computes this one once more, and then its gradient. All calls
// of a body have the same.
func (c call) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	out := make([]graph.Value, len(n.In))
	var given []graph.Value
	var of []int
	for i, d := range dout {
		if d.Valid() {
			given, of = append(given, d), append(of, i)
		}
	}
	b := c.back(of)
	if b.err != nil {
		n.Value(0).Graph().Fail(b.err)
		return out
	}
	if len(b.list) == 0 {
		return out
	}
	in := slices.Concat(n.In[:c.Operands], given)
	for k, d := range b.body.called(len(in), in) {
		out[b.list[k]] = d
	}
	return out
}

// back is the gradient of a body: of which operands there is one.
type back struct {
	body *Body
	list []int
	err  error
}

// back is the gradient for some results, made once.
func (c call) back(of []int) *back {
	b := c.Body
	b.mu.Lock()
	defer b.mu.Unlock()
	key := fmt.Sprint(of)
	if made, ok := b.backs[key]; ok {
		return made
	}
	made := &back{}
	for i, ok := range touches(b, c.Operands, of) {
		if ok {
			made.list = append(made.list, i)
		}
	}
	takes := types(b.in[:c.Operands])
	for _, i := range of {
		takes = append(takes, b.out[i].Type())
	}
	if len(made.list) > 0 {
		made.body, made.err = makeBody(takes, 0, 0, func(in []graph.Value) (d []graph.Value) {
			own := slices.Concat(in[:c.Operands], b.lifted(in[0].Graph(), c.Operands))
			grads := gradients(b, own, in[c.Operands:], of)
			for _, i := range made.list {
				d = append(d, orZeros(grads[i], own[i]))
			}
			return d
		})
	}
	if b.backs == nil {
		b.backs = map[string]*back{}
	}
	b.backs[key] = made
	return made
}

func callCPU(c call, k *kernel.Call) error {
	m, err := c.Body.machine(k.Scratch, k.In, k.Pool)
	if err != nil {
		return err
	}
	if err := m.run(); err != nil {
		return err
	}
	for i := range k.Out {
		copy(k.Out[i].Data, m.result(i))
	}
	return nil
}

// callCUDA has the commands of all calls within written out.
func callCUDA(o call, c *cuda.Call) ([]cuda.Command, error) {
	m := &onGPU{body: o.Body, memory: c.Scratch, operands: c.In}
	if err := m.run(c.TF32); err != nil {
		return nil, err
	}
	for k, v := range o.Body.out {
		if err := m.copy(c.Out[k].Addr, m.result(k).Addr, v.Type()); err != nil {
			return nil, err
		}
	}
	return m.list, nil
}

// beyondCUDA looks at anything, and says that it is too deep.
func beyondCUDA(o beyond, c *cuda.Call) ([]cuda.Command, error) {
	return []cuda.Command{cuda.Branch{Addr: c.In[0].Addr, Type: graph.Bool,
		Choose: func(int32) (lo, hi int, err error) { return 0, 0, o.err() }}}, nil
}

func init() {
	kernel.Register(kernel.CPU, callCPU)
	kernel.Register(kernel.CPU, func(o beyond, _ *kernel.Call) error { return o.err() })
	cuda.Register(callCUDA, func(c call, _, _ []graph.Type) int64 { return c.Body.frame.bytes })
	cuda.Register(beyondCUDA, nil)
	cuda.Exact(func(c call) bool { return exact(c.Body) })
	cuda.Exact[beyond](nil)
}
