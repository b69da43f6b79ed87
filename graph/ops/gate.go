package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Gate lets an update happen in some executions only: in every Every-th, where
// Step, f32[], counts them from 1. The zero Gate lets all pass.
type Gate struct {
	Every int
	Step  graph.Value
}

// Gated is the update that an operation is, behind a gate.
func Gated(op graph.Op, vars []graph.Value, gate Gate, reads ...graph.Value) *graph.Node {
	return behind([]Gate{gate}, op, vars, reads...)
}

// behind applies an update operation behind a gate, if there is one.
func behind(gates []Gate, op graph.Op, vars []graph.Value, reads ...graph.Value) *graph.Node {
	for _, gate := range gates {
		if gate.Every != 0 {
			op, reads = every{Op: op, N: gate.Every}, append(reads, gate.Step)
		}
	}
	return update(op, vars, reads...)
}

// every is an update operation that is executed if its last operand, f32[], is a
// multiple of N, and else changes nothing. The other operands are the operation's.
type every struct {
	Op graph.Op
	N  int
}

func (o every) Name() string { return "every-" + o.Op.Name() }

func (o every) Infer(in []graph.Type) ([]graph.Type, error) {
	if o.N < 1 {
		return nil, fmt.Errorf("an update every %d executions, want 1 or more", o.N)
	}
	if len(in) == 0 {
		return nil, arity(in, 1)
	}
	last := len(in) - 1
	if !in[last].Equal(tensor.Of(graph.F32)) {
		return nil, fmt.Errorf("the count of executions is %s, want f32[]%s", in[last],
			convertible(in[last], graph.F32))
	}
	return o.Op.Infer(in[:last])
}

// Cost is that of the execution that updates.
func (o every) Cost(in, out []graph.Type) graph.Cost { return o.Op.Cost(in[:len(in)-1], out) }

func (every) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

// open reports whether the update is due.
func (o every) open(step tensor.View) bool { return int64(step.F32()[0])%int64(o.N) == 0 }

// CheckData wants what the operation does, where it is executed.
func (o every) CheckData(in []tensor.View) error {
	last := len(in) - 1
	inner, ok := o.Op.(graph.Checker)
	if !ok || in[last].Data == nil || !o.open(in[last]) {
		return nil
	}
	return inner.CheckData(in[:last])
}

func everyCPU(o every, c *kernel.Call) error {
	last := len(c.In) - 1
	if !o.open(c.In[last]) {
		return nil
	}
	inner, err := kernel.Lookup(kernel.CPU, o.Op)
	if err != nil {
		return err
	}
	call := *c
	call.In = c.In[:last]
	return inner(o.Op, &call)
}

func init() {
	kernel.Register(kernel.CPU, everyCPU)
	w, scalar := tensor.Of(graph.F32, 5, 17), tensor.Of(graph.F32)
	register(
		Sample{Op: every{Op: adam{Beta1: 0.9, Beta2: 0.98, Eps: 1e-9}, N: 1},
			In:     []graph.Type{w, w, w, w, scalar, scalar, scalar},
			Update: 3, Fill: fills{2: positive, 5: ones, 6: ones}},
	)
}
