package gomlx

import (
	"context"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// executable is a computation that is planned.
type executable struct {
	backend *Backend
	name    string
	inputs  []graph.Value
	names   []string
	shapes  []shapes.Shape // of the inputs
	outputs []graph.Value
	planned *gomem.Planned
	session *gomem.Session // while it is among the backend's open
}

var _ backends.Executable = (*executable)(nil)

// Finalize closes the session, if one is open.
func (e *executable) Finalize() {
	e.backend.mu.Lock()
	defer e.backend.mu.Unlock()
	e.backend.close(e)
}

// Inputs are the parameters, in the order in which they were made.
func (e *executable) Inputs() ([]string, []shapes.Shape) { return e.names, e.shapes }

// Outputs are the shapes of what is computed.
func (e *executable) Outputs() []shapes.Shape {
	var out []shapes.Shape
	for _, v := range e.outputs {
		out = append(out, shapeOf(v.Type()))
	}
	return out
}

// bytes are what a session takes of a space.
func (e *executable) bytes(of space.ID) int64 { return e.planned.Peak(of) }

// Execute feeds the inputs, runs the plan once, and makes buffers of what it computes. Buffers
// that are donated are freed after that; after an error they are as they were.
func (e *executable) Execute(inputs []backends.Buffer, donate []bool,
	_ backends.DeviceNum) ([]backends.Buffer, error) {
	fed, err := e.feeds(inputs)
	if err != nil {
		return nil, err
	}
	e.backend.mu.Lock()
	defer e.backend.mu.Unlock()
	s, err := e.backend.session(e)
	if err != nil {
		return nil, err
	}
	results, err := s.Step(context.Background(), target, fed)
	if err != nil {
		return nil, fmt.Errorf("gomem: %s: %w", e.name, err)
	}
	for i, given := range donate {
		if given {
			inputs[i].(*buffer).free()
		}
	}
	var out []backends.Buffer
	for _, r := range results {
		out = append(out, &buffer{shape: shapeOf(r.Type), tensor: r})
	}
	return out, nil
}

// feeds are the tensors of the inputs.
func (e *executable) feeds(inputs []backends.Buffer) (gomem.Feeds, error) {
	if len(inputs) != len(e.inputs) {
		return nil, fmt.Errorf("gomem: %s: %d inputs, want %d", e.name, len(inputs), len(e.inputs))
	}
	fed := gomem.Feeds{}
	for i, x := range inputs {
		buf, err := bufferOf(x)
		if err != nil {
			return nil, fmt.Errorf("input %d of %s: %w", i, e.name, err)
		}
		if !buf.shape.Equal(e.shapes[i]) {
			return nil, fmt.Errorf("gomem: input %d of %s is %s, want %s", i, e.name, buf.shape,
				e.shapes[i])
		}
		fed[e.inputs[i]] = buf.tensor
	}
	return fed, nil
}
