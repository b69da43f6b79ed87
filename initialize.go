package gomem

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/internal/tensor"
)

// Initialize sets every variable to its initial value and every constant to its
// data. A variable's random elements depend on the seed and its name alone, so
// models that share names start alike.
func (s *Session) Initialize(seed uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.device == nil {
		return fmt.Errorf("gomem: initialize: %w", ErrClosed)
	}
	if err := s.initialize(seed, true); err != nil {
		return fmt.Errorf("gomem: %w", err)
	}
	return nil
}

// initialize sets the constants and, if asked to, the variables.
func (s *Session) initialize(seed uint64, variables bool) error {
	for _, b := range s.targets[0].result.Plan.Variables {
		n := s.planned.Graph.Node(b.Node)
		v := n.Data
		if n.Kind == graph.KindVariable {
			if !variables {
				continue
			}
			v = initial(n, seed)
		}
		if err := s.targets[0].exec.Write(b, v.Data); err != nil {
			return fmt.Errorf("initial value of %s: %w", n.Name, err)
		}
		delete(s.torn, n.Name)
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
	draw(v.F32(), n.Init, rand.New(rand.NewPCG(seed, h.Sum64())))
	return v
}

// draw fills x as init says.
func draw(x []float32, init graph.Init, rng *rand.Rand) {
	if parts := len(init.Each); parts > 0 {
		for i, part := range init.Each {
			draw(x[i*len(x)/parts:(i+1)*len(x)/parts], part, rng)
		}
		return
	}
	switch init.Dist {
	case graph.Constant:
		for i := range x {
			x[i] = float32(init.Scale)
		}
	case graph.Normal:
		for i := range x {
			x[i] = float32(init.Scale * libm.Normal(rng))
		}
	case graph.Truncated:
		for i := range x {
			x[i] = float32(init.Scale * truncated(rng))
		}
	case graph.Uniform:
		for i := range x {
			x[i] = float32(2 * init.Scale * (float64(rng.Float64()) - 0.5))
		}
	}
}

// truncated draws from the standard normal distribution between −2 and 2.
func truncated(rng *rand.Rand) float64 {
	for {
		if x := libm.Normal(rng); math.Abs(x) <= 2 {
			return x
		}
	}
}
