package conv

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// patchFilterPlan computes the gradient of w in its own layout: the left operand
// is the gradient of the output where it lies, the right one a panel with a row
// for every place and a column for every input channel and tap. Tasks have
// channels of their own, so nothing is added up across them.
type patchFilterPlan struct {
	*plan
	inBlock, outBlock int // channels of a task
	panelPitch        int // elements from a row of the panel to the next
	stripPitch        int // from a row of a strip to the next
}

// strip is the columns of a panel that are transposed together.
const strip = 16

// Where patches are of use for the gradient of w, and the bounds of a task.
const (
	panelColumns = 128
	panelPlaces  = 1024
	panelSize    = 1 << 16 // elements of a panel, beyond which it has half the columns
	mostFilters  = 512     // output channels of a task
	leastFilters = 128     // and if there are too few tasks
	fewTasks     = 8       // below which places are better divided, too
)

// usePatchFilter says whether the gradient of w is better computed from patches.
func (p *plan) usePatchFilter() bool {
	q := &patchFilterPlan{plan: p}
	q.divide(panelColumns)
	return p.srcC > 1 && p.dstC >= manyChannels && q.tasks() >= fewTasks
}

// newPatchFilterPlan is the plan of the gradient of w.
func newPatchFilterPlan(pl *plan) *patchFilterPlan {
	p := &patchFilterPlan{plan: pl}
	p.divide(panelColumns)
	p.cutDense(panelPlaces)
	if panelColumns*p.images*p.places() > panelSize {
		// Every row of tiles reads the panel: from the L3 cache, if the L2 has no room.
		p.divide(panelColumns / 2)
	}
	p.listViews()
	p.panelPitch = 16 * (p.inBlock*p.taps/16 + 1 | 1) // an odd number of lines, as in a channel
	p.stripPitch = ceil(p.places(), 16)*16 + 16
	return p
}

// divide chooses the channels of a task, for a panel of so many columns.
func (p *patchFilterPlan) divide(columns int) {
	p.inBlock = split(p.srcC, max(1, columns/p.taps))
	limit := mostFilters
	for p.outBlock = split(p.dstC, limit); p.tasks() < enough &&
		limit > leastFilters; p.outBlock = split(p.dstC, limit) {
		limit /= 2
	}
}

// tasks is the number of independent pieces.
func (p *patchFilterPlan) tasks() int {
	return p.groups * ceil(p.srcC, p.inBlock) * ceil(p.dstC, p.outBlock)
}

// places is those that a block has of an image, size those of a whole image.
func (p *patchFilterPlan) places() int { return p.blockRows * p.cols.out }
func (p *patchFilterPlan) size() int   { return p.rows.out * p.cols.out }

// Sizes of the parts of the scratch, in elements.
func (p *patchFilterPlan) planesSize() int { return ceil(p.inBlock, strip) * strip * p.channel }
func (p *patchFilterPlan) stripSize() int  { return strip * p.stripPitch }
func (p *patchFilterPlan) panelSize() int  { return p.images * p.places() * p.panelPitch }
func (p *patchFilterPlan) slotSize() int   { return p.planesSize() + p.stripSize() + p.panelSize() }
func (p *patchFilterPlan) scratch() int    { return min(MaxThreads, p.tasks()) * p.slotSize() }

// patchFilterWork is a gradient in progress.
type patchFilterWork struct {
	*patchFilterPlan
	span
	x      Source
	dy, dw []float32
	terms  []gemm.Term // the images of a block
}

func (p *patchFilterPlan) sums() (images, elements int) {
	return p.images, p.groups * p.srcC * p.dstC * p.taps
}

// add adds the products of blocks.
func (p *patchFilterPlan) add(threads *pool.Pool, some span, x Source, dy, dw, scratch []float32) {
	w := &patchFilterWork{patchFilterPlan: p, span: some, x: x, dy: dy, dw: dw,
		terms: make([]gemm.Term, p.images)}
	for image := range w.terms {
		w.terms[image] = gemm.Term{A: image * p.groups * p.dstC * p.size(),
			B: image * p.size() * p.panelPitch}
	}
	share(threads, p.tasks(), func(slot, task int) {
		w.task(task, scratch[slot*p.slotSize():][:p.slotSize()])
	})
}

// task computes dw for some channels of a group.
func (w *patchFilterWork) task(i int, slot []float32) {
	inBlocks, outBlocks := ceil(w.srcC, w.inBlock), ceil(w.dstC, w.outBlock)
	g, c0, o0 := i/inBlocks/outBlocks, i%inBlocks*w.inBlock, i/inBlocks%outBlocks*w.outBlock
	c1, o1 := min(c0+w.inBlock, w.srcC), min(o0+w.outBlock, w.dstC)
	planes, slot := slot[:w.planesSize()], slot[w.planesSize():]
	patches, panel := slot[:w.stripSize()], slot[w.stripSize():]
	s := gemm.Sum{
		M: o1 - o0, N: (c1 - c0) * w.taps, RowA: w.size(), ColA: 1, B: panel, RowB: w.panelPitch,
		C: w.dw[((g*w.dstC+o0)*w.srcC+c0)*w.taps:], RowC: w.srcC * w.taps,
	}
	lo, hi := w.blocks(w.span)
	for j := lo; j < hi; j++ {
		b := w.placeIn(j, w.span)
		if w.stands() {
			w.transpose(panel, b, g*w.srcC+c0, g*w.srcC+c1)
		} else {
			w.fill(planes, w.x, b, g*w.srcC+c0, g*w.srcC+c1)
			for image := range b.images {
				w.panel(panel[image*w.size()*w.panelPitch:], patches,
					planes[image*w.imageRows*w.pitch:], b, s.N)
			}
		}
		s.K, s.Add, s.Terms = b.rows*w.cols.out, j > 0, w.terms[:b.images]
		s.A = w.dy[((b.image*w.groups+g)*w.dstC+o0)*w.size()+b.row*w.cols.out:]
		s.Compute()
	}
}

// stands says whether the panel is x as it stands, transposed.
func (w *patchFilterWork) stands() bool {
	return w.x.BF16 == nil && w.taps == 1 && w.rows.plain() && w.cols.plain()
}

// transpose writes the panel of channels c0 … c1 of such an x.
func (w *patchFilterWork) transpose(panel []float32, b place, c0, c1 int) {
	for image := range b.images {
		from := w.x.F32[((b.image+image)*w.groups*w.srcC+c0)*w.size()+b.row*w.cols.out:]
		gemm.Transpose(panel[image*w.size()*w.panelPitch:], w.panelPitch, from, w.size(), c1-c0,
			b.rows*w.cols.out)
	}
}

// panel writes an image's rows of the panel, with so many columns. What comes after
// them is not read.
func (w *patchFilterWork) panel(panel, patches, planes []float32, b place, columns int) {
	places := b.rows * w.cols.out
	if w.taps == 1 && w.pitch == w.cols.out { // the planes are the patches
		gemm.Transpose(panel, w.panelPitch, planes, w.channel, ceil(columns, strip)*strip, places)
		return
	}
	terms := w.views[0].terms
	for first := 0; first < columns; first += strip {
		for i := range min(strip, columns-first) {
			c, t := (first+i)/w.taps, (first+i)%w.taps
			w.patches(patches[i*w.stripPitch:], planes[c*w.channel+terms[t].at:], b)
		}
		gemm.Transpose(panel[first:], w.panelPitch, patches, w.stripPitch, strip, places)
	}
}
