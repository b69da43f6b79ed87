package gomem

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/tensor"
)

// Initialize sets every variable to its initial value and every constant to its
// data. A variable's random elements depend on the seed and its name alone, so
// models that share names start alike.
func (s *Session) Initialize(seed uint64) error {
	for _, b := range s.targets[0].result.Plan.Variables {
		n := s.graph.Node(b.Node)
		v := n.Data
		if n.Kind == graph.KindVariable {
			v = initial(n, seed)
		}
		if err := s.targets[0].exec.Write(b, v.Data); err != nil {
			return fmt.Errorf("initial value of %s: %w", n.Name, err)
		}
	}
	return nil
}

// initial draws a variable's first value.
func initial(n *graph.Node, seed uint64) tensor.View {
	v := tensor.New(n.Out[0])
	if n.Out[0].DType != graph.F32 {
		return v
	}
	h := fnv.New64a()
	h.Write([]byte(n.Name))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	x := v.F32()
	switch n.Init.Dist {
	case graph.Constant:
		for i := range x {
			x[i] = float32(n.Init.Scale)
		}
	case graph.Normal:
		for i := range x {
			x[i] = float32(n.Init.Scale * rng.NormFloat64())
		}
	case graph.Uniform:
		for i := range x {
			x[i] = float32(n.Init.Scale * (2*rng.Float64() - 1))
		}
	}
	return v
}
