package conv

import (
	"sync/atomic"

	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// MaxThreads is how many threads of a pool a convolution uses at most: each needs
// its part of the scratch, which must not depend on the pool.
const MaxThreads = 16

// ScratchForward is the bytes of scratch that Forward needs. The shape must be
// valid, here as everywhere.
func ScratchForward(s Shape) int64 {
	if s.Batch == 0 || s.pointwise() {
		return 0
	}
	if s.few() {
		return 4 * int64(s.scratchFew())
	}
	return 4 * int64(forwardPlan(s).way().scratch())
}

// ScratchGradInput is the bytes of scratch that GradInput needs.
func ScratchGradInput(s Shape) int64 {
	if s.Batch == 0 || s.pointwise() {
		return 0
	}
	return 4 * int64(backwardPlan(s).way().scratch())
}

// Forward computes y, the convolution of x and w. It panics if a slice is shorter
// than the shape says or the scratch shorter than ScratchForward, whose contents
// do not matter. All of y is written.
//
// Done, if it is not nil, is called for every element of y once it is complete, in ranges from
// lo to hi-1, while they are in the cache, and may change those. Calls are made by several
// threads at once.
func Forward(p *pool.Pool, s Shape, x, w, y, scratch []float32, done func(lo, hi int)) {
	x, w, y = x[:s.in()], w[:s.filter()], y[:s.out()]
	switch {
	case s.Batch == 0:
		return
	case s.pointwise():
		s.each(func(g, in, out int) {
			gemm.BatchF32(p, false, false, s.Batch, out, s.pixels(), in, 1, w[g*out*in:], in, 0,
				x[g*in*s.pixels():], s.pixels(), s.InC*s.pixels(), 0, y[g*out*s.pixels():],
				s.pixels(), s.OutC*s.pixels())
		})
	case s.few():
		forwardFew(p, s, x, w, y, scratch)
	default:
		inC := s.InC / s.Groups
		f := filter{w: w, dst: inC * s.taps(), src: s.taps()}
		forwardPlan(s).way().run(p, f, x, y, scratch, done)
		return
	}
	if done != nil {
		p.For(s.out(), grain, done)
	}
}

// GradInput computes dx, the gradient of x from dy, the gradient of y. It has the
// conditions of Forward.
func GradInput(p *pool.Pool, s Shape, dy, w, dx, scratch []float32) {
	dy, w, dx = dy[:s.out()], w[:s.filter()], dx[:s.in()]
	switch {
	case s.Batch == 0:
		return
	case s.pointwise():
		s.each(func(g, in, out int) {
			gemm.BatchF32(p, true, false, s.Batch, in, s.pixels(), out, 1, w[g*out*in:], in, 0,
				dy[g*out*s.pixels():], s.pixels(), s.OutC*s.pixels(), 0, dx[g*in*s.pixels():],
				s.pixels(), s.InC*s.pixels())
		})
		return
	}
	inC := s.InC / s.Groups
	f := filter{w: w, dst: s.taps(), src: inC * s.taps()}
	backwardPlan(s).way().run(p, f, dy, dx, scratch, nil)
}

// pointwiseFrom is the places of an image from which a plain product does not lose
// by columns that fill no tile, nor by reading the filters again for every image.
const pointwiseFrom = 257

// pointwise says whether the convolution is a product of matrices as it stands.
func (s Shape) pointwise() bool {
	return s.taps() == 1 && s.StrideH == 1 && s.StrideW == 1 && s.InC > s.Groups &&
		s.pixels() >= pointwiseFrom &&
		s.PadTop == 0 && s.PadLeft == 0 && s.PadBottom == 0 && s.PadRight == 0
}

// pixels is the elements of an input channel.
func (s Shape) pixels() int { return s.InH * s.InW }

// each calls fn for every group, with the channels that a group has.
func (s Shape) each(fn func(g, in, out int)) {
	for g := range s.Groups {
		fn(g, s.InC/s.Groups, s.OutC/s.Groups)
	}
}

// filter is a group's weights and the strides of its channels, those of the
// convolution's destination and of its source. Taps are adjacent.
type filter struct {
	w        []float32
	dst, src int
}

// work is a convolution in progress.
type work struct {
	*plan
	filter
	src, dst []float32
	zeros    []float32 // in the place of a view's row that has no terms
	weights  []float32 // packed
	done     func(lo, hi int)
}

// way is how a destination is computed.
type way interface {
	// scratch is the elements of workspace.
	scratch() int
	// run computes dst, and has done, if it is not nil, called for what is complete.
	run(p *pool.Pool, f filter, src, dst, scratch []float32, done func(lo, hi int))
}

// way chooses how the destination is computed.
func (p *plan) way() way {
	if p.usePatches() {
		return newPatchPlan(p)
	}
	p.block()
	return p
}

// run computes the destination.
func (p *plan) run(threads *pool.Pool, f filter, src, dst, scratch []float32,
	done func(lo, hi int)) {
	scratch = scratch[:p.scratch()]
	w := &work{plan: p, filter: f, src: src, dst: dst, zeros: scratch[:p.zerosSize()], done: done}
	clear(w.zeros)
	w.weights = scratch[p.zerosSize():][:p.weightsSize()]
	slots := scratch[p.zerosSize()+p.weightsSize():]
	if p.packed {
		threads.Run(p.groups*p.dstC, w.pack)
	}
	share(threads, p.tasks(), func(slot, task int) {
		w.task(task, slots[slot*p.slotSize():][:p.slotSize()])
	})
}

// share runs n tasks on the threads of a pool, up to MaxThreads, each with a slot
// of its own.
func share(p *pool.Pool, n int, fn func(slot, task int)) {
	var next atomic.Int64
	p.Run(min(p.Threads(), MaxThreads, n), func(slot int) {
		for task := int(next.Add(1)) - 1; task < n; task = int(next.Add(1)) - 1 {
			fn(slot, task)
		}
	})
}

// group returns the weights of a group.
func (f *filter) group(p *plan, g int) []float32 { return f.w[g*p.srcC*p.dstC*p.taps:] }

// pack packs the weights of a destination channel: tap by tap, the channels of the
// source adjacent.
func (w *work) pack(i int) {
	from := w.group(w.plan, i/w.dstC)[i%w.dstC*w.filter.dst:]
	gemm.Transpose(w.weights[i*w.wRow:], w.wTap, from, w.filter.src, w.srcC, w.taps)
}

// task computes a block of the destination's channels and places.
func (w *work) task(i int, slot []float32) {
	blocks := w.imageBlocks * w.rowBlocks
	b, rest := w.place(i%blocks), i/blocks
	channelBlocks := ceil(w.dstC, w.dstBlock)
	g, d0 := rest/channelBlocks, rest%channelBlocks*w.dstBlock
	d1 := min(d0+w.dstBlock, w.dstC)
	planes, wide := slot[:w.planesSize()], slot[w.planesSize():]
	for c := 0; c < w.srcC; c += w.chunk {
		end := min(c+w.chunk, w.srcC)
		w.fill(planes, Source{F32: w.src}, b, g*w.srcC+c, g*w.srcC+end)
		for v := range w.views {
			w.product(wide[v*w.dstBlock*w.nRow:], planes, b, &w.views[v], g, d0, d1, c, end)
		}
	}
	for d := d0; d < d1; d++ {
		w.store(w.dst, wide[(d-d0)*w.nRow:], w.zeros, w.dstBlock*w.nRow, b, g*w.dstC+d)
	}
	w.finish(w.done, b, g*w.dstC+d0, g*w.dstC+d1)
}

// product adds source channels c0 … c1 to destination channels d0 … d1 of a view.
func (w *work) product(wide, planes []float32, b place, v *view, g, d0, d1, c0, c1 int) {
	if len(v.terms) == 0 {
		return
	}
	if w.srcC == 1 { // there is nothing to keep in registers
		for d := d0; d < d1; d++ {
			sumTaps(wide[(d-d0)*w.nRow:][:w.columns(b)], planes,
				w.group(w.plan, g)[d*w.filter.dst:], v.terms)
		}
		return
	}
	s := gemm.Sum{
		M: d1 - d0, N: w.columns(b), K: c1 - c0, Terms: v.sum, Add: c0 > 0,
		A: w.group(w.plan, g)[d0*w.filter.dst+c0*w.filter.src:], RowA: w.filter.dst,
		ColA: w.filter.src,
		B:    planes, RowB: w.channel, C: wide, RowC: w.nRow,
	}
	if w.packed {
		s.A, s.RowA, s.ColA = w.weights[(g*w.dstC+d0)*w.wRow+c0:], w.wRow, 1
	}
	s.Compute()
}
