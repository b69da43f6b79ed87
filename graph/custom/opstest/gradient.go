package opstest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/reference"
)

func addressOf(b []byte) int64 { return int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// scalar is a weighing of an operation's results, as a function of operands.
type scalar struct {
	graph *graph.Graph
	in    []graph.Value
	wrt   []int // operands that are differentiated
	y     graph.Value
	rng   *rand.Rand
}

// checkGradients compares derivatives along a random direction with finite differences.
func (s Sample) checkGradients(t *testing.T) {
	orders := 1
	if s.Second {
		orders = 2
	}
	for order := 1; order <= orders; order++ {
		if p := s.scalar(order); p.graph.Err() != nil {
			t.Fatal(p.graph.Err())
		} else if p.y.Valid() && len(p.wrt) > 0 {
			s.compare(t, p, order)
		}
	}
}

// scalar is the weighing whose gradient is of an order.
func (s Sample) scalar(order int) *scalar {
	p := &scalar{graph: graph.New(), rng: rand.New(rand.NewPCG(1, 2))}
	for i, u := range s.In {
		p.in = append(p.in, p.graph.Input(fmt.Sprint("x", i), u))
		if u.DType == graph.F32 && !slices.Contains(s.NoGrad, i) {
			p.wrt = append(p.wrt, i)
		}
	}
	n := p.graph.Apply(s.Op, p.in...)
	if n == nil {
		return p
	}
	for i := range n.Out {
		p.add(n.Value(i))
	}
	if order == 2 && p.y.Valid() {
		grads := autodiff.Grad(p.y, p.operands()...)
		p.y = graph.Value{}
		for _, d := range grads {
			p.add(d)
		}
	}
	return p
}

func (p *scalar) operands() (list []graph.Value) {
	for _, i := range p.wrt {
		list = append(list, p.in[i])
	}
	return list
}

// add adds the inner product of a value and random numbers.
func (p *scalar) add(v graph.Value) {
	if !v.Valid() || v.Type().DType != graph.F32 {
		return
	}
	w := tensor.New(v.Type())
	for i := range w.F32() {
		w.F32()[i] = float32(p.rng.NormFloat64())
	}
	sum := ops.Sum(ops.Mul(v, p.graph.Constant("weights", w)))
	if p.y.Valid() {
		sum = ops.Add(p.y, sum)
	}
	p.y = sum
}

func (s Sample) compare(t *testing.T, p *scalar, order int) {
	grads := autodiff.Grad(p.y, p.operands()...)
	roots := []graph.NodeID{p.y.Node.ID}
	if err := p.graph.Err(); err != nil {
		t.Fatal(err)
	}
	for _, d := range grads {
		if d.Valid() {
			roots = append(roots, d.Node.ID)
		}
	}
	live := p.graph.Ancestors(roots)
	for _, v := range p.in {
		live[v.Node.ID] = true
	}
	m, err := reference.New(p.graph, live, nil)
	if err != nil {
		t.Fatal(err)
	}
	base, direction, eps := s.operands(11), s.operands(12), orElse(s.Eps, 1e-2)
	at := func(h float64) float64 {
		for i, v := range p.in {
			x := m.Value(v)
			copy(x.Data, base[i].Data)
			for k := range direction[i].Type.Elems() {
				if slices.Contains(p.wrt, i) {
					x.F32()[k] += float32(h * float64(direction[i].F32()[k]))
				}
			}
		}
		if err := m.Step(); err != nil {
			t.Fatal(err)
		}
		return float64(m.Value(p.y).F32()[0])
	}
	at(0)
	analytic := 0.0
	for k, d := range grads {
		if d.Valid() {
			for i, v := range m.Value(d).F32() {
				analytic += float64(float64(v) * float64(direction[p.wrt[k]].F32()[i]))
			}
		}
	}
	numeric := (at(eps) - at(-eps)) / (2 * eps)
	if !(math.Abs(analytic-numeric) <= orElse(s.Tol, 1e-2)*(1+math.Abs(numeric))) {
		t.Errorf("gradient %d along a direction is %g, by finite differences %g", order, analytic,
			numeric)
	}
}
