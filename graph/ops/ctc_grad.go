package ops

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/libm"
)

// ctcGrad is the gradient of the logits, for the operands of CTCLoss and the
// gradient of the losses: at every frame the softmax less the probabilities of the
// symbols given the labels, by the forward-backward algorithm.
type ctcGrad struct{}

func (ctcGrad) Name() string { return "ctc-grad" }

func (ctcGrad) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 5); err != nil {
		return nil, err
	}
	if err := checkCTC(in); err != nil {
		return nil, err
	}
	if want := tensor.Of(graph.F32, in[0].Size(1)); !in[4].Equal(want) {
		return nil, fmt.Errorf("gradient of losses is %s, want %s", in[4], want)
	}
	return in[:1:1], nil
}

// gradScratch is the lattice, two rows of the mirrored one, and the probabilities
// of a frame.
func (s ctcSize) gradScratch() int { return (s.t+2)*s.states() + s.v }

func (ctcGrad) Cost(in, out []graph.Type) graph.Cost {
	s := ctcSizeOf(in[0], in[1])
	return graph.Cost{FLOPs: 3 * s.flops(), Bytes: bytes(in, out),
		Scratch: 8 * int64(s.blocks()) * int64(s.gradScratch())}
}

// InPlace: a frame is done with when it is overwritten, the last first.
func (ctcGrad) InPlace(_, _ []graph.Type) []int { return []int{0} }

// VJP: there is none.
func (ctcGrad) VJP(n *graph.Node, _ []graph.Value) []graph.Value { return noSecond(n) }

func ctcGradCPU(_ ctcGrad, c *kernel.Call) error {
	s, item, err := ctcItems(c.In)
	if err != nil {
		return err
	}
	d, out := c.In[4].F32(), c.Out[0].F32()
	s.each(c, s.gradScratch(), func(k int, buf []float64) {
		p := item(k)
		to := p
		to.logits = out[k*s.v:]
		p.gradient(to, float64(d[k]), buf)
		for t := p.frames; t < s.t; t++ {
			clear(to.frame(t))
		}
	})
	return nil
}

// gradient writes the frames of to.
func (p ctcItem) gradient(to ctcItem, d float64, buf []float64) {
	if d == 0 || !p.readable() {
		for t := range p.frames {
			clear(to.frame(t))
		}
		return
	}
	n := p.states()
	lattice, rest := buf[:p.frames*n], buf[p.frames*n:]
	var last []float64
	for t := range p.frames {
		row := lattice[t*n : (t+1)*n]
		p.advance(row, last, t, false)
		last = row
	}
	total := p.total(last)
	row, spare, symbols := rest[:n], rest[n:2*n], rest[2*n:2*n+p.v]
	var after []float64
	for t := p.frames - 1; t >= 0; t-- {
		p.advance(row, after, t, true)
		shares := newShares(p.frame(t))
		p.posterior(symbols, lattice[t*n:(t+1)*n], row, shares, total)
		frame := to.frame(t)
		for k, q := range symbols {
			frame[k] = float32(d * (libm.Exp(shares.log(k)) - q))
		}
		row, after, spare = spare, row, row
	}
}

// posterior is the probability of every symbol at a frame given the labels, from
// the rows of the lattice and of the mirrored one, both of which count the frame's
// shares.
func (p ctcItem) posterior(symbols, row, mirrored []float64, shares shares, total float64) {
	clear(symbols)
	for s, a := range row {
		b, k := mirrored[len(row)-1-s], p.symbol(s, false)
		if !math.IsInf(a, -1) && !math.IsInf(b, -1) {
			symbols[k] += libm.Exp(a + b - shares.log(k) - total)
		}
	}
}

// ctcVariants are operands of CTCLoss.
func ctcVariants() [][]graph.Type {
	variant := func(t, b, v, l int) []graph.Type {
		n := tensor.Of(graph.I32, b)
		return []graph.Type{tensor.Of(graph.F32, t, b, v), tensor.Of(graph.I32, b, l), n, n}
	}
	return [][]graph.Type{variant(7, 3, 5, 3), variant(5, 1, 2, 2), variant(17, 5, 29, 3),
		variant(5, 17, 3, 1)}
}

// ctcFills draws labels, and lengths such that some alignment is there: as many
// frames as labels and blanks between them, or more.
func ctcFills(s ctcSize) fills {
	between := func(lo, hi int) func(*rand.Rand, any) {
		return func(rng *rand.Rand, x any) {
			for i := range x.([]int32) {
				x.([]int32)[i] = int32(lo + rng.IntN(hi-lo+1))
			}
		}
	}
	return fills{1: between(0, s.v-2), 2: between(0, s.l), 3: between(2*s.l-1, s.t)}
}

func init() {
	kernel.Register(kernel.CPU, ctcGradCPU)
	for _, in := range ctcVariants() {
		s := ctcSizeOf(in[0], in[1])
		losses := tensor.Of(graph.F32, s.b)
		register(Sample{Op: ctcGrad{}, In: append(in, losses), Fill: ctcFills(s),
			NoGrad: []int{0, 1, 2, 3, 4}})
	}
}
