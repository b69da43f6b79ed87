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
		if err := fillParts(s, n.Value(0), newDraft(n, seed).fill); err != nil {
			return fmt.Errorf("initial value of %s: %w", n.Name, err)
		}
	}
	return nil
}

// draft draws a variable's first value, one part after the other.
type draft struct {
	node *graph.Node
	rng  *rand.Rand
	runs []run
}

// run are elements that start alike, up to the one of a number.
type run struct {
	init graph.Init
	end  int64
}

// newDraft begins to draw. Random elements depend on the seed and the variable's name alone.
func newDraft(n *graph.Node, seed uint64) *draft {
	h := fnv.New64a()
	h.Write([]byte(n.Name))
	return &draft{n, rand.New(rand.NewPCG(seed, h.Sum64())), runsOf(n.Init, 0,
		int64(n.Out[0].Elems()))}
}

// runsOf are those of the elements from lo on to before hi.
func runsOf(init graph.Init, lo, hi int64) (all []run) {
	parts := int64(len(init.Each))
	if parts == 0 {
		return []run{{init, hi}}
	}
	for i, part := range init.Each {
		n, i := hi-lo, int64(i)
		all = append(all, runsOf(part, lo+i*n/parts, lo+(i+1)*n/parts)...)
	}
	return all
}

// fill draws the elements from the one of a number on, after those before them.
func (d *draft) fill(part Tensor, at int64) error {
	rest := part
	for len(rest.Data) > 0 {
		for d.runs[0].end <= at {
			d.runs = d.runs[1:]
		}
		n := int(min(d.runs[0].end-at, int64(rest.Type.Elems())))
		if err := d.draw(flat(rest, n), d.runs[0].init); err != nil {
			return &graph.Error{Node: d.node.Name, Op: d.node.Kind.String(), Pos: d.node.Pos,
				Err: err}
		}
		kind := tensor.Of(part.Type.DType, rest.Type.Elems()-n)
		rest = Tensor{Type: kind, Data: rest.Data[len(rest.Data)-int(kind.Bytes()):]}
		at += int64(n)
	}
	return nil
}

// draw draws elements that start alike. Small floating-point numbers are drawn as f32 and rounded
// to nearest even; integers and truth values are constants, or it is an error of the graph.
func (d *draft) draw(v Tensor, init graph.Init) error {
	switch v.Type.DType {
	case graph.F32:
		draw(v.F32(), init, d.rng)
	case graph.F64:
		draw(v.F64(), init, d.rng)
	case graph.BF16:
		vec.BF16FromF32(v.U16(), drawn(len(v.U16()), init, d.rng))
	case graph.F16:
		vec.F16FromF32(v.U16(), drawn(len(v.U16()), init, d.rng))
	case graph.I32:
		return set(v.I32(), init, math.MinInt32, math.MaxInt32)
	case graph.I64:
		return set(v.I64(), init, -1<<53, 1<<53)
	case graph.I8:
		return set(v.I8(), init, math.MinInt8, math.MaxInt8)
	case graph.I16:
		return set(v.I16(), init, math.MinInt16, math.MaxInt16)
	case graph.U8:
		return set(v.U8(), init, 0, math.MaxUint8)
	case graph.U16:
		return set(v.U16(), init, 0, math.MaxUint16)
	case graph.U32:
		return set(v.U32(), init, 0, math.MaxUint32)
	case graph.U64:
		return set(v.U64(), init, 0, 1<<53)
	default:
		return set(v.U8(), init, 0, 1)
	}
	return nil
}

// set fills x with the constant that init says, an integer within limits.
func set[T tensor.Integer](x []T, init graph.Init, least, most float64) error {
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
