package gomem

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/vec"
	"github.com/gomem/gomem/internal/libm"
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
		if n.Kind == graph.KindVariable {
			continue
		}
		if err := s.targets[0].exec.Write(b, n.Data.Data); err != nil {
			return fmt.Errorf("data of %s: %w", n.Name, err)
		}
	}
	for _, n := range s.graph.Variables() {
		if !variables || !s.has(n.Name) {
			continue
		}
		v, err := initial(n, seed)
		if err != nil {
			return err
		}
		if err := s.set(n.Value(0), v); err != nil {
			return fmt.Errorf("initial value of %s: %w", n.Name, err)
		}
	}
	return nil
}

// initial draws a variable's first value. Small floating-point numbers are drawn as
// f32 and rounded to nearest even; integers and truth values are constants, or it is an
// error of the graph.
func initial(n *graph.Node, seed uint64) (v tensor.View, err error) {
	v = tensor.New(n.Out[0])
	h := fnv.New64a()
	h.Write([]byte(n.Name))
	rng := rand.New(rand.NewPCG(seed, h.Sum64()))
	switch n.Out[0].DType {
	case graph.F32:
		draw(v.F32(), n.Init, rng)
	case graph.F64:
		draw(v.F64(), n.Init, rng)
	case graph.BF16:
		vec.BF16FromF32(v.U16(), drawn(len(v.U16()), n.Init, rng))
	case graph.F16:
		vec.F16FromF32(v.U16(), drawn(len(v.U16()), n.Init, rng))
	case graph.I32:
		err = set(v.I32(), n.Init, math.MinInt32, math.MaxInt32)
	case graph.I64:
		err = set(v.I64(), n.Init, -1<<53, 1<<53)
	case graph.I8:
		err = set(v.I8(), n.Init, math.MinInt8, math.MaxInt8)
	case graph.I16:
		err = set(v.I16(), n.Init, math.MinInt16, math.MaxInt16)
	case graph.U8:
		err = set(v.U8(), n.Init, 0, math.MaxUint8)
	case graph.U16:
		err = set(v.U16(), n.Init, 0, math.MaxUint16)
	case graph.U32:
		err = set(v.U32(), n.Init, 0, math.MaxUint32)
	case graph.U64:
		err = set(v.U64(), n.Init, 0, 1<<53)
	default:
		err = set(v.U8(), n.Init, 0, 1)
	}
	if err != nil {
		err = &graph.Error{Node: n.Name, Op: n.Kind.String(), Pos: n.Pos, Err: err}
	}
	return v, err
}

// set fills x with the constants that init says, integers within limits.
func set[T tensor.Integer](x []T, init graph.Init, least, most float64) error {
	if parts := len(init.Each); parts > 0 {
		for i, part := range init.Each {
			if err := set(x[i*len(x)/parts:(i+1)*len(x)/parts], part, least, most); err != nil {
				return err
			}
		}
		return nil
	}
	if init.Dist != graph.Constant {
		return errors.New("integers cannot be drawn: give them a constant initial value")
	}
	if !(least <= init.Scale && init.Scale <= most) || init.Scale != math.Trunc(init.Scale) {
		return fmt.Errorf("initial value %g is none of its type: give an integer that is",
			init.Scale)
	}
	for i := range x {
		x[i] = T(init.Scale)
	}
	return nil
}

// drawn is n numbers that are drawn as init says.
func drawn(n int, init graph.Init, rng *rand.Rand) []float32 {
	x := make([]float32, n)
	draw(x, init, rng)
	return x
}

// draw fills x as init says.
func draw[T float32 | float64](x []T, init graph.Init, rng *rand.Rand) {
	if parts := len(init.Each); parts > 0 {
		for i, part := range init.Each {
			draw(x[i*len(x)/parts:(i+1)*len(x)/parts], part, rng)
		}
		return
	}
	switch init.Dist {
	case graph.Constant:
		for i := range x {
			x[i] = T(init.Scale)
		}
	case graph.Normal:
		for i := range x {
			x[i] = T(init.Scale * libm.Normal(rng))
		}
	case graph.Truncated:
		for i := range x {
			x[i] = T(init.Scale * truncated(rng))
		}
	case graph.Uniform:
		for i := range x {
			x[i] = T(2 * init.Scale * (float64(rng.Float64()) - 0.5))
		}
	case graph.Positive:
		for i := range x {
			x[i] = T(init.Scale * rng.Float64())
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
