package gomlx

import (
	"github.com/gomem/gomem/front/gomlx/internal/hlo"
	"github.com/gomem/gomem/graph"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// randoms are the operations of chance.
type randoms struct{ *computation }

// RNGBitGenerator is random bits of a shape, and the state after them. They are those of GoMLX's
// backend "go" for the state, so that models that either starts start alike.
func (c randoms) RNGBitGenerator(state backends.Op, shape shapes.Shape) (next, bits backends.Op,
	err error) {
	const t = backends.OpTypeRNGBitGenerator
	v, err := c.values(t, state)
	if err != nil {
		return nil, nil, err
	}
	kind, err := typeOf(shape)
	var after, drawn graph.Value
	if err == nil {
		after, drawn = hlo.Random(v[0], kind)
	}
	if next, err = c.made(t, after, err); err != nil {
		return nil, nil, err
	}
	return next, &op{c.computation, drawn}, nil
}
