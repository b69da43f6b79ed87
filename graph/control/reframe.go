package control

import "github.com/gomem/gomem/graph"

// rebuilt is the body that computes the same in another graph.
func (b *Body) rebuilt(of func(graph.Value) graph.Value) *Body {
	c := &Body{lo: b.lo, hi: b.hi}
	for _, v := range b.in {
		c.in = append(c.in, of(v))
	}
	for _, v := range b.out {
		c.out = append(c.out, of(v))
	}
	c.settle(c.in[0].Graph())
	return c
}

// Inside are the results of the body.
func (s scan) Inside() []graph.Value { return s.Body.out }

// Frame is the body's.
func (s scan) Frame() int64 { return s.Body.frame.bytes }

// Reframed is the scan with another body.
func (s scan) Reframed(of func(graph.Value) graph.Value) graph.Op {
	s.Body = s.Body.rebuilt(of)
	return s
}

// Inside are the results of the body; the condition stays as it is.
func (w while) Inside() []graph.Value { return w.Body.out }

// Frame is the body's.
func (w while) Frame() int64 { return w.Body.frame.bytes }

// Reframed is the loop with another body.
func (w while) Reframed(of func(graph.Value) graph.Value) graph.Op {
	w.Body = w.Body.rebuilt(of)
	return w
}
