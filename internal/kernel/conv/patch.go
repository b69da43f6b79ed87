package conv

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// patchPlan computes a destination as one product of matrices: the filters, and a
// panel with a row for every source channel and tap and a column for every place
// of a block.
type patchPlan struct {
	*plan
	whole       bool // one view, of all taps
	plain       bool // a channel's planes are its rows of the panel
	direct      bool // products are computed where they belong in the destination
	copied      bool // the filters of a product are copied; else gemm does, if it pays
	filterPitch int  // elements from a row of the copy to the next
	panelPitch  int  // from a row of the panel to the next
}

// Where patches are of use, and the bounds of a task.
const (
	fewSource    = 14  // channels of a source whose taps are too short for products of their own
	smallPlaces  = 256 // of an image that is joined with others
	manyChannels = 64  // of a destination that pay for a panel
	patchPlaces  = 400 // columns of a panel
	patchRows    = 512 // rows of a panel multiplied at a time
	leastDst     = 32  // channels of a destination in a task
	mostDst      = 256
	setStride    = 512 // a multiple of it between rows has them fall into few sets of the cache
)

// usePatches says whether a plan's destination is better computed from patches.
func (p *plan) usePatches() bool {
	if p.srcC == 1 || p.dstC < manyChannels {
		return false
	}
	if p.srcC < fewSource && !p.backward {
		return p.taps > 1
	}
	return p.taps == 1 || p.rows.out*p.cols.out <= smallPlaces
}

// newPatchPlan is the plan of a destination.
func newPatchPlan(pl *plan) *patchPlan {
	p := &patchPlan{plan: pl}
	p.cutDense(patchPlaces)
	p.n = p.images * p.blockRows * p.cols.out
	p.nRow = ceil(p.n, 16) * 16
	p.outPitch, p.outImage = p.cols.out, p.rows.out*p.cols.out
	p.panelPitch = 16 * (ceil(p.n, 16) | 1) // an odd number of lines, as in a channel
	p.listViews()
	for _, v := range p.views {
		for i, t := range v.terms {
			v.sum[i] = gemm.Term{A: t.k, B: t.k * p.panelPitch}
		}
	}
	p.chunk = split(p.srcC, max(1, patchRows/p.taps))
	p.whole = len(p.views) == 1 && len(p.views[0].terms) == p.taps
	p.plain = p.taps == 1 && p.pitch == p.cols.out && p.imageRows == p.rows.out &&
		p.channel == p.panelPitch
	p.direct = p.whole && p.images == 1 && p.chunk == p.srcC
	if p.copied = p.taps > 1; !p.backward {
		p.copied = p.srcC*p.taps%setStride == 0 && p.n > tile // else they are read once
	}
	p.filterPitch = ceil(p.chunk*p.taps, 16)*16 + 16
	return p
}

// divide chooses the channels of a task: as many as there are threads for, since every
// task goes through the whole panel, which is larger than the caches of a core. It changes
// no bit of the result.
func (p *patchPlan) divide(threads int) {
	p.dstBlock = p.dstC
	if !p.alone() {
		p.dstBlock = split(p.dstC, min(mostDst, max(leastDst, ceil(p.dstC, threads))))
	}
}

// alone says that a task makes the panel that it uses, and no other task does.
func (p *patchPlan) alone() bool { return p.srcC*p.taps <= patchRows && p.dstC <= 2*manyChannels }

// Sizes of the parts of the scratch, in elements.
func (p *patchPlan) panelSize() int { return p.srcC * p.taps * p.panelPitch }

func (p *patchPlan) copySize() int {
	if !p.copied {
		return 0
	}
	return p.dstBlock * p.filterPitch
}

func (p *patchPlan) productSize() int {
	if p.direct {
		return p.copySize()
	}
	return p.copySize() + p.wideSize()
}

func (p *patchPlan) slotSize() int {
	if p.alone() {
		return p.panelSize() + p.channel + p.productSize()
	}
	return max(p.channel, p.productSize())
}

// slots is how many of so many threads have work at a time.
func (p *patchPlan) slots(threads int) int {
	if p.alone() {
		return min(threads, p.groups*p.imageBlocks*p.rowBlocks)
	}
	return min(threads, max(ceil(p.srcC, expandChannels), ceil(p.dstC, p.dstBlock)))
}

// scratch is the elements of workspace that a destination takes, with any number of
// threads.
func (p *patchPlan) scratch() int {
	size := 0
	for threads := 1; threads <= MaxThreads; threads++ {
		p.divide(threads)
		size = max(size, p.slots(threads)*p.slotSize())
	}
	if !p.alone() {
		size += p.panelSize()
	}
	return p.zerosSize() + size
}

// expandChannels is the source channels that a task copies to the panel.
const expandChannels = 16

// patchWork is a convolution in progress.
type patchWork struct {
	*patchPlan
	filter
	src, dst     []float32
	zeros        []float32    // in the place of a view's row that has no terms
	panel, slots []float32    // the common panel, and the threads' parts of the scratch
	one          [1]gemm.Term // a product of its own
	done         func(lo, hi int)
}

// run computes the destination.
func (p *patchPlan) run(threads *pool.Pool, f filter, src, dst, scratch []float32,
	done func(lo, hi int)) {
	scratch = scratch[:p.scratch()]
	p.divide(min(threads.Threads(), MaxThreads))
	w := &patchWork{patchPlan: p, filter: f, src: src, dst: dst, zeros: scratch[:p.zerosSize()],
		done: done}
	clear(w.zeros)
	w.slots = scratch[p.zerosSize():]
	if p.alone() {
		blocks := p.imageBlocks * p.rowBlocks
		share(threads, p.groups*blocks, func(slot, task int) {
			w.block(slot, task/blocks, w.place(task%blocks))
		})
		return
	}
	w.panel, w.slots = w.slots[:p.panelSize()], w.slots[p.panelSize():]
	for g := range p.groups {
		for i := range p.imageBlocks * p.rowBlocks {
			w.together(threads, g, w.place(i))
		}
	}
}

// block computes a block of the places.
func (w *patchWork) block(slot, g int, b place) {
	memory := w.slot(slot)
	panel, memory := memory[:w.panelSize()], memory[w.panelSize():]
	w.expand(panel, memory, b, g, 0, w.srcC)
	w.product(panel, memory[w.channel:], b, g, 0, w.dstC)
}

// together computes a block of the places on all threads: first the panel, by source
// channels, and then the product, by the destination's.
func (w *patchWork) together(threads *pool.Pool, g int, b place) {
	share(threads, ceil(w.srcC, expandChannels), func(slot, task int) {
		c := task * expandChannels
		w.expand(w.panel, w.slot(slot), b, g, c, min(c+expandChannels, w.srcC))
	})
	share(threads, ceil(w.dstC, w.dstBlock), func(slot, task int) {
		d := task * w.dstBlock
		w.product(w.panel, w.slot(slot), b, g, d, min(d+w.dstBlock, w.dstC))
	})
}

// slot is a thread's part of the scratch.
func (w *patchWork) slot(i int) []float32 { return w.slots[i*w.slotSize():][:w.slotSize()] }

// expand writes the rows of source channels c0 … c1 to the panel.
func (w *patchWork) expand(panel, planes []float32, b place, g, c0, c1 int) {
	if w.plain {
		w.fill(panel[c0*w.panelPitch:], Source{F32: w.src}, b, g*w.srcC+c0, g*w.srcC+c1)
		return
	}
	size := b.rows * w.cols.out
	for c := c0; c < c1; c++ {
		w.fill(planes, Source{F32: w.src}, b, g*w.srcC+c, g*w.srcC+c+1)
		for _, v := range w.views {
			for _, t := range v.terms {
				row := panel[(c*w.taps+t.k)*w.panelPitch:]
				for image := range b.images {
					w.patches(row[image*size:], planes[t.at+image*w.imageRows*w.pitch:], b)
				}
			}
		}
	}
}

// patches copies what a tap of an image sees from the channel's planes.
func (p *plan) patches(to, planes []float32, b place) {
	takeRows(to, p.cols.out, planes, p.pitch, b.rows, p.cols.out, 1)
}

// product computes destination channels d0 … d1 of a block.
func (w *patchWork) product(panel, slot []float32, b place, g, d0, d1 int) {
	filters, wide := slot[:w.copySize()], slot[w.copySize():]
	if w.direct {
		size := w.rows.dst * w.cols.dst
		wide = w.dst[((b.image*w.groups+g)*w.dstC+d0)*size+b.row*w.cols.out:]
	}
	for c := 0; c < w.srcC; c += w.chunk {
		end := min(c+w.chunk, w.srcC)
		s := gemm.Sum{
			M: d1 - d0, N: b.images * b.rows * w.cols.out, Add: c > 0,
			A: w.group(w.plan, g)[d0*w.filter.dst+c*w.filter.src:], RowA: w.filter.dst,
			B: panel[c*w.taps*w.panelPitch:], RowC: w.resultRow(),
		}
		if w.copied {
			w.packFilters(filters, g, d0, d1, c, end)
			s.A, s.RowA = filters, w.filterPitch
		}
		for v := range w.views {
			s.C = wide[v*w.dstBlock*w.nRow:]
			w.sum(&s, &w.views[v], end-c)
		}
	}
	for d := d0; d < d1 && !w.direct; d++ {
		w.store(w.dst, wide[(d-d0)*w.nRow:], w.zeros, w.dstBlock*w.nRow, b, g*w.dstC+d)
	}
	w.finish(w.done, b, g*w.dstC+d0, g*w.dstC+d1)
}

// resultRow is the elements from a row of a product to the next.
func (p *patchPlan) resultRow() int {
	if p.direct {
		return p.rows.dst * p.cols.dst
	}
	return p.nRow
}

// sum computes the product of a view with so many source channels.
func (w *patchWork) sum(s *gemm.Sum, v *view, channels int) {
	if w.whole {
		s.K, s.ColA, s.RowB, s.Terms = channels*w.taps, 1, w.panelPitch, w.one[:]
	} else {
		s.K, s.ColA, s.RowB, s.Terms = channels, w.taps, w.taps*w.panelPitch, v.sum
	}
	if w.taps == 1 && !w.copied { // backward the filters' columns are read
		s.ColA = w.filter.src
	}
	s.Compute()
}

// packFilters copies the filters of destination channels d0 … d1 and source
// channels c0 … c1: a row a destination channel, the taps of a source channel
// adjacent.
func (w *patchWork) packFilters(to []float32, g, d0, d1, c0, c1 int) {
	from := w.group(w.plan, g)
	if !w.backward {
		takeRows(to, w.filterPitch, from[d0*w.filter.dst+c0*w.taps:], w.filter.dst, d1-d0,
			(c1-c0)*w.taps, 1)
		return
	}
	for c := c0; c < c1; c++ {
		takeRows(to[(c-c0)*w.taps:], w.filterPitch, from[c*w.filter.src+d0*w.taps:], w.taps,
			d1-d0, w.taps, 1)
	}
}
