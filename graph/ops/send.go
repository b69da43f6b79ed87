package ops

import (
	"errors"
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Send hands x, f32, to the network, and returns what [Await] takes: a value in flight,
// which nothing else may read. Every worker sends the same names in the same order. The
// name is that of the variable that x is for. A gate lets the exchange happen in some
// executions only; in the others, and where there is one worker, Await gives x back.
// The node is of the update phase. No gradient passes.
func Send(x graph.Value, name string, how graph.How, gate ...Gate) (pending graph.Value) {
	if !x.Valid() {
		return graph.Value{}
	}
	op, in := send{Label: name, How: how}, []graph.Value{x}
	for _, g := range gate {
		if g.Every != 0 {
			op.Every, in = g.Every, append(in, g.Step)
		}
	}
	x.Graph().InPhase(graph.Update, func() { pending = apply(op, in...) })
	return pending
}

// Await is what the exchange has made of what [Send] sent: of the mean of all workers, the
// same bits on each of them. It waits for the network, and for nothing else.
func Await(pending graph.Value) (x graph.Value) {
	if !pending.Valid() {
		return graph.Value{}
	}
	pending.Graph().InPhase(graph.Update, func() { x = apply(await{}, pending) })
	return x
}

type send struct {
	Label string
	How   graph.How
	Every int
}

func (send) Name() string { return "send" }

// Exchange is what is sent.
func (o send) Exchange() graph.Exchange {
	return graph.Exchange{Name: o.Label, How: o.How, Every: o.Every}
}

func (o send) Infer(in []graph.Type) ([]graph.Type, error) {
	dtypes := []graph.DType{graph.F32}
	if o.Every != 0 {
		dtypes = append(dtypes, graph.F32)
	}
	if err := want(in, dtypes...); err != nil {
		return nil, err
	}
	switch err := o.How.Check(); {
	case err != nil:
		return nil, err
	case o.How.Fold > graph.Sum:
		return nil, fmt.Errorf("a %s is of parts or blocks: see SendPart and the collectives",
			o.How.Fold)
	case o.Label == "":
		return nil, errors.New("what is sent has no name")
	case o.Every < 0:
		return nil, fmt.Errorf("an exchange every %d executions, want 1 or more", o.Every)
	case o.Every > 0 && in[1].Rank() != 0:
		return nil, fmt.Errorf("the count of executions is %s, want f32[]", in[1])
	}
	return in[:1], nil
}

// Cost is that of a copy; in place there is none.
func (send) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// InPlace: where x is needed no more, the network has its bytes.
func (send) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (send) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

type await struct{}

func (await) Name() string { return "await" }

// Awaits marks the operation as a graph.Awaiter.
func (await) Awaits() {}

func (await) Infer(in []graph.Type) ([]graph.Type, error) { return in, want(in, graph.F32) }

func (await) Cost(in, out []graph.Type) graph.Cost { return passed(in, out) }

// InPlace: always so in a plan.
func (await) InPlace(_, _ []graph.Type) []int { return []int{0} }

func (await) VJP(*graph.Node, []graph.Value) []graph.Value { return none(1) }

// passed is the cost of a copy of operand 0.
func passed(in, out []graph.Type) graph.Cost { return graph.Cost{Bytes: bytes(in[:1], out)} }

// The kernels are those of a world of one worker.

func sendCPU(_ send, c *kernel.Call) error   { return pass(c) }
func awaitCPU(_ await, c *kernel.Call) error { return pass(c) }

// pass gives operand 0 on, unless it is in place already.
func pass(c *kernel.Call) error {
	copy(c.Out[0].Data, c.In[0].Data)
	return nil
}

func init() {
	kernel.Register(kernel.CPU, sendCPU)
	kernel.Register(kernel.CPU, awaitCPU)
	x, scalar := tensor.Of(graph.F32, 5, 17), tensor.Of(graph.F32)
	register(
		Sample{Op: send{Label: "w"}, In: []graph.Type{x}, NoGrad: []int{0}},
		Sample{Op: send{Label: "w", How: graph.How{Fold: graph.Sum, Via: "ring"}, Every: 2},
			In: []graph.Type{x, scalar}, NoGrad: []int{0, 1}},
		Sample{Op: await{}, In: []graph.Type{x}, NoGrad: []int{0}})
}
