package gomlx

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// target is that of every plan.
const target = "eval"

// Builder makes a graph, operation by operation. Its methods are those of its parts, one for each
// family of operations.
type Builder struct {
	*computation
	others
	functions
	binaries
	comparisons
	moves
	reductions
	products
	windows
	indexing
	norms
	randoms
}

var _ backends.Builder = (*Builder)(nil)

// computation is a graph being built, which the parts of a builder share.
type computation struct {
	backend  *Backend
	name     string
	graph    *graph.Graph
	inputs   []graph.Value
	names    []string
	shapes   []shapes.Shape
	compiled bool
	origins
}

// op is a value of a computation: what GoMLX has as a backends.Op.
type op struct {
	of    *computation
	value graph.Value
}

// Builder begins a computation.
func (b *Backend) Builder(name string) backends.Builder {
	c := &computation{backend: b, name: name, graph: graph.New(), origins: newOrigins()}
	return &Builder{computation: c,
		others:    others{notimplemented.Builder{ErrFn: refuse}},
		functions: functions{c}, binaries: binaries{c}, comparisons: comparisons{c},
		moves: moves{c}, reductions: reductions{c}, products: products{c}, windows: windows{c},
		indexing: indexing{c}, norms: norms{c}, randoms: randoms{c}}
}

// values are those of operands, which must be of this computation.
func (c *computation) values(t backends.OpType, operands ...backends.Op) ([]graph.Value, error) {
	if c.compiled {
		return nil, fmt.Errorf("gomem: %s after computation %q was compiled", t, c.name)
	}
	var out []graph.Value
	for i, x := range operands {
		o, ok := x.(*op)
		if !ok || o == nil || o.of != c {
			return nil, fmt.Errorf("gomem: operand %d of %s is not of computation %q", i, t, c.name)
		}
		out = append(out, o.value)
	}
	return out, nil
}

// made is the operation of which v is the result, or the graph's error.
func (c *computation) made(t backends.OpType, v graph.Value, err error) (backends.Op, error) {
	if err == nil {
		err = c.graph.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("gomem: %s: %w", t, err)
	}
	return &op{c, v}, nil
}

// Name is the computation's.
func (c *computation) Name() string { return c.name }

// OpShape is the shape of a value.
func (c *computation) OpShape(x backends.Op) (shapes.Shape, error) {
	v, err := c.values(backends.OpTypeInvalid, x)
	if err != nil {
		return shapes.Invalid(), err
	}
	return shapeOf(v[0].Type()), nil
}

// Parameter makes an input, which every execution is given.
func (c *computation) Parameter(name string, shape shapes.Shape,
	sharding *backends.ShardingSpec) (backends.Op, error) {
	const t = backends.OpTypeParameter
	if sharding != nil {
		return nil, c.DistributedSPMD(0)
	}
	kind, err := typeOf(shape)
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	v := c.graph.Input(fmt.Sprintf("in%d", len(c.inputs)), kind)
	made, err := c.made(t, v, nil)
	if err == nil {
		c.inputs, c.names = append(c.inputs, v), append(c.names, name)
		c.shapes = append(c.shapes, shape.Clone())
	}
	return made, err
}

// Constant makes a value of a copy of a slice's elements.
func (c *computation) Constant(flat any, dims ...int) (backends.Op, error) {
	const t = backends.OpTypeConstant
	if _, err := c.values(t); err != nil {
		return nil, err
	}
	bytes, d, err := raw(flat)
	if err != nil {
		return c.made(t, graph.Value{}, err)
	}
	kind, _ := typeOf(shapes.Make(d, dims...))
	data := tensor.New(kind)
	if len(data.Data) != len(bytes) {
		err = fmt.Errorf("%d bytes for %s", len(bytes), kind)
	}
	copy(data.Data, bytes)
	return c.made(t, c.graph.Constant("constant", data), err)
}

// Identity is x.
func (c *computation) Identity(x backends.Op) (backends.Op, error) {
	v, err := c.values(backends.OpTypeIdentity, x)
	if err != nil {
		return nil, err
	}
	return &op{c, ops.StopGradient(v[0])}, nil
}

// DistributedSPMD is refused: there is one device.
func (c *computation) DistributedSPMD(int) error { return refuse(backends.OpTypeAllReduce) }

// DistributedAutoSharding is refused: there is one device.
func (c *computation) DistributedAutoSharding(...backends.Mesh) error {
	return refuse(backends.OpTypeAllReduce)
}

// DeviceAssignment takes the one device that there is.
func (c *computation) DeviceAssignment(devices ...backends.DeviceNum) error {
	if len(devices) != 1 || devices[0] != 0 {
		return fmt.Errorf("gomem: devices %v: there is one, number 0", devices)
	}
	return nil
}

// Compile plans the computation of values. The error wraps a *gomem.ErrOutOfMemory where a budget
// cannot be met, which says what would help.
func (c *computation) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (
	backends.Executable, error) {
	values, err := c.values(backends.OpTypeInvalid, outputs...)
	switch {
	case err != nil:
		return nil, err
	case len(shardings) > 0:
		return nil, c.DistributedSPMD(0)
	case len(outputs) == 0:
		return nil, errors.New("gomem: a computation of nothing")
	}
	c.compiled = true
	fetched := gomem.Target{Name: target, Fetches: values}
	planned, err := gomem.Plan(context.Background(), c.graph, c.backend.options, fetched)
	if err != nil {
		return nil, fmt.Errorf("computation %q: %w", c.name, err)
	}
	return &executable{backend: c.backend, name: c.name, inputs: c.inputs, names: c.names,
		shapes: c.shapes, outputs: values, planned: planned}, nil
}
