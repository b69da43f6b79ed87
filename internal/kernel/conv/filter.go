package conv

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// filterPlan is how the gradient of w is computed: the places of a block are the
// inner dimension, so the blocks are summed. They are cut into parts, whose number
// the shape sets, and the parts' sums are added in order at the end.
type filterPlan struct {
	*plan
	inBlock, outBlock int // channels of a task
	outRow            int // elements of a place's outputs in a slot
	parts             int
	single            bool // input channel in a group: no product of matrices
	gather            bool // shifted planes are copied to a panel, to be one tall product
}

// Bounds of a task.
const (
	mostIn  = 70 // five tiles
	mostOut = 128
)

// shallow is the number of input channels that do not fill a tile, and few enough
// that copies for every tap are small.
const shallow = 14

// partsSize is the elements of all partial sums that more than one part may take.
const partsSize = 1 << 20

// filterWayOf chooses how dw is computed.
func filterWayOf(s Shape) filterWay {
	switch {
	case s.pointwise():
		return standing{s}
	case s.tiled():
		return newTilePlan(s)
	}
	p := forwardPlan(s)
	if p.usePatchFilter() {
		return newPatchFilterPlan(p)
	}
	return newFilterPlan(p)
}

// filterWay is how dw is computed: images are added up one block after the other.
type filterWay interface {
	// scratch is the elements of workspace beside the sums.
	scratch() int
	// sums are the images of a block, and the elements of what they are added to.
	sums() (images, elements int)
	// add adds images to the sums, which it begins if there were none before.
	add(p *pool.Pool, some span, x Source, dy, sums, scratch []float32)
}

// span is some of the images, of which the first begins a block.
type span struct{ from, images int }

// newFilterPlan is the plan of dw.
func newFilterPlan(pl *plan) *filterPlan {
	p := &filterPlan{plan: pl}
	p.cut(p.mostColumns())
	p.listViews()
	p.single = p.srcC == 1
	p.gather = !p.single && p.srcC < shallow && p.srcC*p.taps <= most
	p.inBlock = p.srcC
	if !p.gather {
		p.inBlock = split(p.srcC, min(mostIn, planeSize/p.channel))
	}
	p.chunk = p.inBlock
	p.outBlock = split(p.dstC, mostOut)
	p.outRow = ceil(p.outBlock, 16) * 16
	p.parts = min(ceil(enough, p.blockTasks()), p.imageBlocks*p.rowBlocks,
		max(1, partsSize/p.filter()))
	return p
}

// blockTasks is the tasks of a part.
func (p *filterPlan) blockTasks() int {
	return p.groups * ceil(p.srcC, p.inBlock) * ceil(p.dstC, p.outBlock)
}

// filter is the elements of dw, and of a partial sum.
func (p *filterPlan) filter() int { return p.groups * p.srcC * p.dstC * p.taps }

func (p *filterPlan) panelSize() int {
	if !p.gather {
		return 0
	}
	return p.srcC * p.taps * p.nRow
}

func (p *filterPlan) slotSize() int {
	return p.planesSize() + p.panelSize() + max(p.n*p.outRow, p.outBlock*p.nRow)
}

func (p *filterPlan) scratch() int {
	return min(MaxThreads, p.parts*p.blockTasks()) * p.slotSize()
}

// sums: every part has its own, laid out by group, input channel, tap and output channel.
func (p *filterPlan) sums() (images, elements int) { return p.images, p.parts * p.filter() }

// ScratchGradFilter is the bytes of scratch that GradFilter needs.
func ScratchGradFilter(s Shape) int64 {
	if s.Batch == 0 {
		return 0
	}
	way, size := filterWayOf(s), 0
	if ends(way) {
		_, size = way.sums()
	}
	return 4 * int64(size+way.scratch())
}

// ends reports whether sums are another thing than dw.
func ends(w filterWay) bool {
	_, ok := w.(*filterPlan)
	return ok
}

// GradFilter computes dw, the gradient of w from x and dy, the gradient of y. It
// has the conditions of Forward.
func GradFilter(p *pool.Pool, s Shape, x, dy, dw, scratch []float32) {
	GradFilterOf(p, s, Source{F32: x}, dy, dw, scratch)
}

// GradFilterOf is GradFilter of images that may be of bfloat16: it has the bits of that of the
// same numbers as float32.
func GradFilterOf(p *pool.Pool, s Shape, x Source, dy, dw, scratch []float32) {
	x, dy, dw = x.from(0, s.in()), dy[:s.out()], dw[:s.filter()]
	if s.Batch == 0 {
		clear(dw)
		return
	}
	way, all := filterWayOf(s), span{images: s.Batch}
	if parts, ok := way.(*filterPlan); ok {
		_, size := way.sums()
		way.add(p, all, x, dy, scratch[:size], scratch[size:][:way.scratch()])
		parts.end(p, scratch, dw)
		return
	}
	way.add(p, all, x, dy, dw, scratch[:way.scratch()])
}

// FilterSums says in which parts the gradient of w can be added up: a part begins at a multiple of
// so many images, and adds to so many elements. These are the gradient, unless it ends with
// [EndFilter]. There must be images.
func FilterSums(s Shape) (images, elements int, end bool) {
	way := filterWayOf(s)
	images, elements = way.sums()
	return images, elements, ends(way)
}

// ScratchFilterPart is the bytes of scratch that AddFilter needs.
func ScratchFilterPart(s Shape) int64 { return 4 * int64(filterWayOf(s).scratch()) }

// AddFilter adds some images of a shape, from one on, to sums, which it begins if that is the first
// of all. After all images they are what GradFilter adds up, to the bit.
func AddFilter(p *pool.Pool, s Shape, from, images int, x Source, dy, sums, scratch []float32) {
	way := filterWayOf(s)
	way.add(p, span{from, images}, x, dy, sums, scratch[:way.scratch()])
}

// EndFilter computes dw of complete sums, which it uses as workspace.
func EndFilter(p *pool.Pool, s Shape, sums, dw []float32) {
	filterWayOf(s).(*filterPlan).end(p, sums, dw)
}

// end adds up the sums of all parts.
func (p *filterPlan) end(threads *pool.Pool, sums, dw []float32) {
	w := &filterWork{filterPlan: p, sums: sums}
	threads.For(p.filter(), grain, w.reduce)
	threads.Run(p.groups*ceil(p.dstC, transposeBlock), func(i int) { w.transpose(dw, i) })
}

// add adds images to the sums of their parts. Those of parts that do not begin yet are zero.
func (p *filterPlan) add(threads *pool.Pool, some span, x Source, dy, sums, slots []float32) {
	_, hi := p.blocks(some)
	for part := range p.parts {
		if some.from == 0 && part*p.imageBlocks*p.rowBlocks/p.parts >= hi {
			clear(sums[part*p.filter():][:p.filter()])
		}
	}
	w := &filterWork{filterPlan: p, span: some, x: x, dy: dy, sums: sums}
	share(threads, p.parts*p.blockTasks(), func(slot, task int) {
		w.task(task, slots[slot*p.slotSize():][:p.slotSize()])
	})
}

// filterWork is a gradient in progress. The sums are laid out by part, group,
// input channel, tap and output channel.
type filterWork struct {
	*filterPlan
	span
	x        Source
	dy, sums []float32
	one      [1]gemm.Term // a product of its own
}

// task sums a part for some channels of a group.
func (w *filterWork) task(i int, slot []float32) {
	inBlocks, outBlocks := ceil(w.srcC, w.inBlock), ceil(w.dstC, w.outBlock)
	part, rest := i/w.blockTasks(), i%w.blockTasks()
	c0, o0, g := rest%inBlocks*w.inBlock, rest/inBlocks%outBlocks*w.outBlock,
		rest/inBlocks/outBlocks
	c1, o1 := min(c0+w.inBlock, w.srcC), min(o0+w.outBlock, w.dstC)
	planes, panel, dy := slot[:w.planesSize()], slot[w.planesSize():][:w.panelSize()],
		slot[w.planesSize()+w.panelSize():]
	sums := w.sums[part*w.filter()+g*w.filter()/w.groups:][:w.filter()/w.groups]
	blocks := w.imageBlocks * w.rowBlocks
	first := part * blocks / w.parts
	lo, hi := w.blocks(w.span)
	for j := max(lo, first); j < min(hi, (part+1)*blocks/w.parts); j++ {
		b := w.placeIn(j, w.span)
		w.fill(planes, w.x, b, g*w.srcC+c0, g*w.srcC+c1)
		if w.single {
			w.rowsOf(dy, b, g, o0, o1)
			w.dots(sums, dy, planes, b, o0, o1, j > first)
			continue
		}
		w.columnsOf(dy, b, g, o0, o1)
		w.product(sums, dy, planes, panel, b, c0, c1, o0, o1, j > first)
	}
}

// product adds the products of a block to sums.
func (w *filterWork) product(sums, dy, planes, panel []float32, b place, c0, c1, o0, o1 int,
	add bool) {
	s := gemm.Sum{M: c1 - c0, N: o1 - o0, K: w.columns(b), Add: add, ColA: 1, B: dy, RowB: w.outRow,
		Terms: w.one[:]}
	if w.gather {
		w.expand(panel, planes, b)
		s.M, s.A, s.RowA, s.C, s.RowC = w.srcC*w.taps, panel, w.nRow, sums[o0:], w.dstC
		s.Compute()
		return
	}
	s.RowA, s.RowC = w.channel, w.taps*w.dstC
	for _, t := range w.views[0].terms {
		s.A, s.C = planes[t.at:], sums[(c0*w.taps+t.k)*w.dstC+o0:]
		s.Compute()
	}
}

// expand copies the shifted planes of all taps to the rows of a panel.
func (p *filterPlan) expand(panel, planes []float32, b place) {
	n := p.columns(b)
	for c := range p.srcC {
		for _, t := range p.views[0].terms {
			copy(panel[:n], planes[c*p.channel+t.at:])
			panel = panel[p.nRow:]
		}
	}
}

// dots is product for a single input channel.
func (w *filterWork) dots(sums, dy, planes []float32, b place, o0, o1 int, add bool) {
	n := w.columns(b)
	for o := o0; o < o1; o++ {
		for _, t := range w.views[0].terms {
			to, dot := &sums[t.k*w.dstC+o], vec.Dot(dy[(o-o0)*w.nRow:][:n], planes[t.at:][:n])
			if add {
				dot += *to
			}
			*to = dot
		}
	}
}

// rowsOf lays a block of dy out as the planes are, a row a channel, with zeros
// between images and rows.
func (w *filterWork) rowsOf(dst []float32, b place, g, o0, o1 int) {
	for o := o0; o < o1; o++ {
		to := dst[(o-o0)*w.nRow:][:w.columns(b)]
		clear(to)
		for image := range b.images {
			for i := range b.rows {
				copy(to[(image*w.imageRows+i)*w.pitch:],
					w.row(b, image, i, g*w.dstC+o)[:w.cols.out])
			}
		}
	}
}

// row returns dy from a row of a channel on.
func (w *filterWork) row(b place, image, i, o int) []float32 {
	return w.dy[(((b.image+image)*w.groups*w.dstC+o)*w.rows.out+b.row+i)*w.cols.out:]
}

// columnsOf is the transpose of rowsOf: a row a place.
func (w *filterWork) columnsOf(dst []float32, b place, g, o0, o1 int) {
	end := 0 // of the places written
	for image := range b.images {
		for i := range b.rows {
			at := (image*w.imageRows + i) * w.pitch
			clear(dst[end*w.outRow : at*w.outRow])
			end = at + w.cols.out
			gemm.Transpose(dst[at*w.outRow:end*w.outRow], w.outRow, w.row(b, image, i, g*w.dstC+o0),
				w.rows.out*w.cols.out, o1-o0, w.cols.out)
		}
	}
}

// grain is the least number of elements worth handing to another thread.
const grain = 1 << 13

// reduce adds elements lo … hi of all parts to the first.
func (w *filterWork) reduce(lo, hi int) {
	size := w.filter()
	for part := 1; part < w.parts; part++ {
		vec.Add(w.sums[lo:hi], w.sums[lo:hi], w.sums[part*size+lo:part*size+hi])
	}
}

// transposeBlock is the output channels that are read together, for long runs.
const transposeBlock = 64

// transpose lays some output channels of the sum out as dw.
func (w *filterWork) transpose(dw []float32, i int) {
	blocks, row := ceil(w.dstC, transposeBlock), w.srcC*w.taps
	g, o := i/blocks, i%blocks*transposeBlock
	size := w.filter() / w.groups
	gemm.Transpose(dw[g*size+o*row:], row, w.sums[g*size+o:], w.dstC, row,
		min(transposeBlock, w.dstC-o))
}

// standing is the way of products of matrices as they stand, an image each.
type standing struct{ Shape }

func (standing) scratch() int                   { return 0 }
func (s standing) sums() (images, elements int) { return 1, s.filter() }

// add adds the product of each image.
func (s standing) add(p *pool.Pool, some span, x Source, dy, dw, _ []float32) {
	s.each(func(g, in, out int) {
		for i := range some.images {
			from := x.from((i*s.InC+g*in)*s.pixels(), in*s.pixels())
			gemm.Product{M: out, N: in, K: s.pixels(), Alpha: 1,
				Beta: float32(min(some.from+i, 1)),
				A:    gemm.Matrix{F32: dy[(i*s.OutC+g*out)*s.pixels():], LD: s.pixels()},
				B:    gemm.Matrix{F32: from.F32, BF16: from.BF16, LD: s.pixels(), Trans: true},
				C:    dw[g*out*in:], LDC: in}.Compute(p)
		}
	})
}
