package ops

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// window is a part of a value whose elements number a random stream: a part draws what its
// elements have in the whole.
type window struct {
	N               int8 // axes
	Size, Whole, At [maxRank]int32
}

// windowOf is the part of a value of type t; ok is false if that is all of it.
func windowOf(t graph.Type, axes [][]int, at []graph.Part) (w window, ok bool) {
	w.N = int8(t.Rank())
	for i := range t.Rank() {
		n, lo := shareOf(t.Size(i), axes[i], at)
		w.Size[i], w.Whole[i], w.At[i] = int32(n), int32(t.Size(i)), int32(lo)
	}
	return w, divided(at, axes...)
}

// check reports a window that is not one of a value with these axes.
func (w window) check(sizes []int) error {
	if int(w.N) != len(sizes) {
		return fmt.Errorf("a window of %d axes on %v", w.N, sizes)
	}
	for i, n := range sizes {
		if int(w.Size[i]) != n || w.At[i] < 0 || w.Size[i] > w.Whole[i]-w.At[i] {
			return fmt.Errorf("axis %d has %d elements, the window %d from %d on, of %d", i, n,
				w.Size[i], w.At[i], w.Whole[i])
		}
	}
	return nil
}

// elems is how many there are in the window.
func (w window) elems() int {
	n := 1
	for _, size := range w.Size[:w.N] {
		n *= int(size)
	}
	return n
}

// visit calls f for runs of elements lo to hi-1 of the window that lie together in the
// whole: where a run begins, how long it is, and the number of its first element there.
func (w window) visit(lo, hi int, f func(at, n, from int)) {
	run, outer := 1, int(w.N)
	for outer > 0 && (outer == int(w.N) || w.Size[outer] == w.Whole[outer]) {
		outer--
		run *= int(w.Size[outer])
	}
	for at := lo; at < hi; {
		in := at % run
		n := min(run-in, hi-at)
		f(at, n, w.from(at/run, outer)+in)
		at += n
	}
}

// from is the number in the whole of the first element of a run, the axes from outer on.
func (w window) from(run, outer int) int {
	from, step := 0, 1
	for i := int(w.N) - 1; i >= 0; i-- {
		at := int(w.At[i])
		if i < outer {
			at += run % int(w.Size[i])
			run /= int(w.Size[i])
		}
		from += at * step
		step *= int(w.Whole[i])
	}
	return from
}

// noiseWindow is a random operation on a part of a value: each element draws the noise that
// it has in the whole. Where elements share noise, the window is one of the noise.
type noiseWindow struct {
	Of  elementwise
	Win window
}

func (o noiseWindow) Name() string { return o.Of.Name() }

// shared is the dropout whose elements share noise, if it is one.
func (o noiseWindow) shared() (d dropout, ok bool) {
	d, ok = o.Of.(dropout)
	return d, ok && d.Shared != 0
}

func (o noiseWindow) Infer(in []graph.Type) ([]graph.Type, error) {
	switch o.Of.(type) {
	case dropout, jitter:
	default:
		return nil, fmt.Errorf("no random operation")
	}
	out, err := o.Of.Infer(in)
	if err != nil {
		return nil, err
	}
	noise := in[0]
	if d, ok := o.shared(); ok {
		noise = d.noise(in[0])
	}
	return out, o.Win.check(noise.Sizes())
}

// Cost: the scratch holds noise that elements share.
func (o noiseWindow) Cost(in, out []graph.Type) graph.Cost {
	c := o.Of.Cost(in, out)
	if d, ok := o.shared(); ok {
		c.Scratch = d.noise(in[0]).Bytes()
	}
	return c
}

// InPlace: every element depends on its own operand alone.
func (noiseWindow) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: the same noise on the gradient.
func (o noiseWindow) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(o, dout[0], n.In[1]), {}}
}

func (o noiseWindow) tile(dst, x, _ []float32, seed []int32, at int) {
	o.Win.visit(at, at+len(dst), func(lo, n, from int) {
		o.Of.tile(dst[lo-at:lo-at+n], x[lo-at:lo-at+n], nil, seed, from)
	})
}

// Cut is between any elements, unless they share noise.
func (o noiseWindow) Cut(in, out []graph.Type) (graph.Cut, bool) {
	if _, ok := o.shared(); ok {
		return graph.Cut{}, false
	}
	return cutElements(in, out, out[0].Rank())
}

// Part draws the noise of its own elements.
func (o noiseWindow) Part(in, out []graph.Type, lo, _ int) graph.Op {
	c, _ := o.Cut(in, out)
	return noiseFrom(o, lo*rowElems(c, out))
}

func noiseWindowCPU(o noiseWindow, c *kernel.Call) error {
	if d, ok := o.shared(); ok {
		d.multiply(c, func(noise []float32, key uint64, lo int) {
			o.Win.visit(lo, lo+len(noise), func(at, n, from int) {
				part := noise[at-lo : at-lo+n]
				vec.Dropout(part, part, 1-d.Rate, key, uint64(from))
			})
		})
		return nil
	}
	x, seed, out := c.In[0].F32(), c.In[1].I32(), c.Out[0].F32()
	c.Pool.For(len(out), grain, func(lo, hi int) { o.tile(out[lo:hi], x[lo:hi], nil, seed, lo) })
	return nil
}

// Split is along all axes; along those that share noise, parts draw the same.
func (o dropout) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitNoise(o, in, out, func(axes [][]int, at []graph.Part) (window, bool) {
		noise := o.noise(in[0])
		if noise.Elems() == in[0].Elems() { // as without axes that share any
			return windowOf(in[0], axes, at)
		}
		own := slices.Clone(axes)
		for i := range own {
			if o.Shared>>i&1 == 1 {
				own[i] = nil
			}
		}
		w, _ := windowOf(noise, own, at)
		return w, divided(at, axes...)
	})
}

// Split is along all axes.
func (o jitter) Split(in, out []graph.Type) (graph.Rule, bool) {
	return splitNoise(o, in, out, func(axes [][]int, at []graph.Part) (window, bool) {
		return windowOf(in[0], axes, at)
	})
}

// splitNoise is the rule of a random operation, whose parts have windows.
func splitNoise(op elementwise, in, out []graph.Type,
	view func(axes [][]int, at []graph.Part) (window, bool)) (graph.Rule, bool) {
	if in[0].Rank() > maxRank {
		return graph.Rule{}, false
	}
	r, ok := splitElements(in, out, 1)
	r.Local = func(at []graph.Part) graph.Op {
		w, some := view(r.Out[0], at)
		if !some {
			return op
		}
		if d, ok := op.(dropout); ok && d.noise(in[0]).Elems() == in[0].Elems() {
			d.Shared = 0
			return noiseWindow{d, w}
		}
		return noiseWindow{op, w}
	}
	return r, ok
}

// noisePart is a part of a random value.
type noisePart struct {
	Noise noise
	Win   window
}

func (o noisePart) Name() string { return o.Noise.Name() }

func (o noisePart) Infer(in []graph.Type) ([]graph.Type, error) {
	out, err := o.Noise.Infer(in)
	if err != nil {
		return nil, err
	}
	sizes := out[0].Sizes()
	for i := range min(len(sizes), int(o.Win.N)) {
		if sizes[i] != int(o.Win.Whole[i]) {
			return nil, fmt.Errorf("a window on %d elements along axis %d of %s", o.Win.Whole[i], i,
				out[0])
		}
		sizes[i] = int(o.Win.Size[i])
		out[0].Shape[i].Size = sizes[i]
	}
	return out, o.Win.check(sizes)
}

func (o noisePart) Cost(in, out []graph.Type) graph.Cost { return o.Noise.Cost(in, out) }

func (noisePart) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return none(len(n.In)) }

func noisePartCPU(o noisePart, c *kernel.Call) error {
	out, key, draw := c.Out[0].F32(), streamKey(c.In[0].I32(), o.Noise.Salt), o.Noise.draw()
	c.Pool.For(len(out), grain, func(lo, hi int) {
		o.Win.visit(lo, hi, func(at, n, from int) { draw(out[at:at+n], key, from) })
	})
	return nil
}

// Split is along all axes.
func (o noise) Split(in, out []graph.Type) (r graph.Rule, ok bool) {
	axes := eachAxis(&r, out[0])
	r.In, r.Out = [][][]int{entire(in[0])}, [][][]int{axes}
	r.Local = func(at []graph.Part) graph.Op {
		if w, some := windowOf(out[0], axes, at); some {
			return noisePart{o, w}
		}
		return o
	}
	return r, true
}

func init() {
	kernel.Register(kernel.CPU, noiseWindowCPU)
	kernel.Register(kernel.CPU, noisePartCPU)
	seed, x := tensor.Of(graph.I32, 2), tensor.Of(graph.F32, 2, 3, 17)
	w := window{N: 3, Size: [maxRank]int32{2, 3, 17}, Whole: [maxRank]int32{4, 6, 17},
		At: [maxRank]int32{2, 1}}
	shared := window{N: 3, Size: [maxRank]int32{2, 1, 17}, Whole: [maxRank]int32{4, 1, 34},
		At: [maxRank]int32{1, 0, 17}}
	noisy := func(op graph.Op) Sample {
		return Sample{Op: op, In: []graph.Type{x, seed}, NoGrad: []int{1}, Second: true}
	}
	register(
		noisy(noiseWindow{dropout{Rate: 0.4, Salt: 7}, w}),
		noisy(noiseWindow{dropout{Rate: 0.4, Salt: 7, Shared: 0b010}, shared}),
		noisy(noiseWindow{jitter{Eps: 0.01, Salt: 5}, w}),
		Sample{Op: noisePart{noise{true, 3, sized([]int{4, 6, 17})}, w}, In: []graph.Type{seed},
			NoGrad: []int{0}},
	)
}
