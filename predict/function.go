package predict

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/nn"
)

// Function is a network that makes tensors of tensors. Its methods may not be called at the same
// time.
type Function struct {
	session *gomem.Session
	model   *nn.Model
}

// FunctionTarget is what a function computes: what an evaluation of the model gives as it is.
func FunctionTarget(m *nn.Model) gomem.Target {
	return gomem.Target{Name: answer, Fetches: m.EvalOutputs}
}

// OpenFunction takes the memory for a plan of [FunctionTarget] and gives the model the weights
// that load sets.
func OpenFunction(planned *gomem.Planned, o gomem.Options, m *nn.Model,
	load Weights) (*Function, error) {
	o.NoInitialize = true
	s, err := gomem.Open(planned, o)
	if err != nil {
		return nil, err
	}
	if err := load(s, s.Variables()); err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	return &Function{s, m}, nil
}

// Close frees the memory.
func (f *Function) Close() error { return f.session.Close() }

// Usage is what is needed of each memory.
func (f *Function) Usage() []gomem.Usage { return f.session.Usage() }

// Apply computes the outputs of inputs, which are those of the model in their order. They have its
// types, or any number of rows, as many each, in place of the batch that the model has along axis
// 0: so have the outputs then. The last batch is filled up with zeros, so it must be that rows do
// not depend on each other.
func (f *Function) Apply(ctx context.Context, inputs []gomem.Tensor) ([]gomem.Tensor, error) {
	rows, batch, err := f.rows(inputs)
	if err != nil {
		return nil, err
	}
	if rows == batch {
		return f.once(ctx, inputs)
	}
	var out []gomem.Tensor
	for _, v := range f.model.EvalOutputs {
		t := v.Type()
		if t.Rank() == 0 || t.Size(0) != batch {
			return nil, fmt.Errorf("output %s has no axis of the %d rows of a batch, and there "+
				"are %d rows: give a batch of as many", t, batch, rows)
		}
		out = append(out, tensor.New(withRows(t, rows)))
	}
	for first := 0; first < rows; first += batch {
		n := min(batch, rows-first)
		some := make([]gomem.Tensor, len(inputs))
		for i, v := range f.model.Data {
			some[i] = tensor.New(v.Type())
			copy(some[i].Data, part(inputs[i], first, n))
		}
		answers, err := f.once(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, a := range answers {
			copy(part(out[i], first, n), a.Data)
		}
	}
	return out, nil
}

// once executes the function.
func (f *Function) once(ctx context.Context, inputs []gomem.Tensor) ([]gomem.Tensor, error) {
	feeds := gomem.Feeds{f.model.Seed: gomem.Pair(0, 0)}
	for i, v := range f.model.Data {
		feeds[v] = inputs[i]
	}
	return f.session.Step(ctx, answer, feeds)
}

// rows is how many rows inputs have, and a batch: the same number where inputs are of the model's
// types.
func (f *Function) rows(inputs []gomem.Tensor) (rows, batch int, err error) {
	if len(inputs) != len(f.model.Data) {
		return 0, 0, fmt.Errorf("%d inputs, and the network has %d", len(inputs), len(f.model.Data))
	}
	same := true
	for i, v := range f.model.Data {
		same = same && inputs[i].Type.Equal(v.Type())
	}
	for i, v := range f.model.Data {
		t, have := v.Type(), inputs[i].Type
		switch {
		case same:
			continue
		case t.Rank() == 0 || have.Rank() == 0 || t.DType != have.DType ||
			!slices.Equal(t.Sizes()[1:], have.Sizes()[1:]):
			return 0, 0, fmt.Errorf("input %q is %s, not %s", v.Node.Name, have, t)
		case i == 0:
			rows, batch = have.Size(0), t.Size(0)
		case have.Size(0) != rows || t.Size(0) != batch:
			return 0, 0, fmt.Errorf("input %q is %s in place of %s, and others have %d rows in "+
				"place of %d", v.Node.Name, have, t, rows, batch)
		}
	}
	return rows, batch, nil
}

// withRows is a type with another number of rows.
func withRows(t tensor.Type, rows int) tensor.Type {
	sizes := t.Sizes()
	sizes[0] = rows
	return tensor.Of(t.DType, sizes...)
}

// part is the bytes of n rows.
func part(v gomem.Tensor, first, n int) []byte {
	each := int(withRows(v.Type, 1).Bytes())
	return v.Data[first*each:][:n*each]
}
