package conv

import "github.com/gomem/gomem/internal/kernel/gemm"

// plan is how a convolution's destination is computed from its source, which are
// y and x forward and dx and dy backward. It depends on the shape alone.
type plan struct {
	rows, cols    axis
	batch, groups int
	taps, kw      int
	srcC, dstC    int // channels of a group
	views         []view
	backward      bool

	blocking
	packed bool // weights are packed first
	wTap   int  // elements from a tap of a packed row of weights to the next
	wRow   int  // and from a row to the next
}

// view is the destination elements of one phase: what they are sums of.
type view struct {
	terms []term
	sum   []gemm.Term // the terms as a product has them
}

// term is a tap k and where its shifted plane begins in a channel.
type term struct{ k, at int }

// blocking is how a plan is cut into tasks. A block is whole images, or some rows
// of one: planes stacked in one buffer, so that a shift moves all of them.
type blocking struct {
	images, blockRows      int // of a block
	imageBlocks, rowBlocks int
	dstBlock, chunk        int // channels of the destination and the source at a time

	pitch     int // from a row of a plane to the next
	imageRows int // from an image to the next
	plane     int // elements
	channel   int // elements of a channel's planes
	n         int // columns of a block's product: every place between its first and last element
	nRow      int // elements from a row of the product to the next
	outPitch  int // in a row of the product, from a row of the destination to the next
	outImage  int // and from an image to the next
}

// Bounds of a task, in elements, so that what it works on stays in the L2 cache.
const (
	most      = 512     // columns of a product, channels of a destination or a source
	planeSize = 5 << 14 // of the source's planes
	wideSize  = 1 << 16 // of the product
	enough    = 16      // tasks for any number of threads
	fewest    = 128     // columns, unless there are no more
)

// packFrom is the places of a destination from which packing the weights pays.
const packFrom = 64

// forwardPlan is the plan of y from x.
func forwardPlan(s Shape) *plan {
	return &plan{
		rows:  forward(s.InH, s.OutH(), s.KH, s.StrideH, s.PadTop, s.DilH),
		cols:  forward(s.InW, s.OutW(), s.KW, s.StrideW, s.PadLeft, s.DilW),
		batch: s.Batch, groups: s.Groups, taps: s.taps(), kw: s.KW,
		srcC: s.InC / s.Groups, dstC: s.OutC / s.Groups,
	}
}

// backwardPlan is the plan of dx from dy.
func backwardPlan(s Shape) *plan {
	return &plan{
		rows:  backward(s.OutH(), s.InH, s.KH, s.StrideH, s.PadTop, s.DilH),
		cols:  backward(s.OutW(), s.InW, s.KW, s.StrideW, s.PadLeft, s.DilW),
		batch: s.Batch, groups: s.Groups, taps: s.taps(), kw: s.KW,
		srcC: s.OutC / s.Groups, dstC: s.InC / s.Groups,
		backward: true,
	}
}

// block chooses the blocks and lists the views.
func (p *plan) block() {
	p.packed = p.srcC > 1 && p.taps > 1 && p.batch*p.rows.out*p.cols.out >= packFrom
	p.wTap = ceil(p.srcC, 16) * 16
	p.wRow = p.taps*p.wTap + 16 // rows begin in different sets of the cache
	p.dstBlock = split(p.dstC, most/2)
	views := len(p.rows.views) * len(p.cols.views)
	columns := max(fewest, min(p.mostColumns(), wideSize/p.dstBlock)/views)
	for p.cut(columns); p.tasks() < enough && columns > fewest; p.cut(columns) {
		columns = max(fewest, columns/2)
	}
	p.listViews()
}

// mostColumns bounds the columns of a block. A single source channel takes little
// room, and little time for every row.
func (p *plan) mostColumns() int {
	if p.srcC == 1 {
		return 4 * most
	}
	return most
}

// cut cuts the images into blocks of about so many columns.
func (p *plan) cut(columns int) {
	p.pitch = p.cols.span - p.cols.shared
	p.imageRows = p.rows.span - p.rows.shared
	p.blockRows, p.images = p.rows.out, 1
	if size := p.imageRows * p.pitch; p.rows.out*p.pitch > columns {
		p.blockRows = p.bestRows(max(0, columns-p.cols.out)/p.pitch + 1)
	} else {
		p.images = split(p.batch, columns/size)
	}
	p.measure()
}

// cutDense cuts the images into blocks of at most so many places, if a row has no
// more.
func (p *plan) cutDense(places int) {
	p.pitch = p.cols.span - p.cols.shared
	p.imageRows = p.rows.span - p.rows.shared
	p.blockRows, p.images = p.rows.out, 1
	if size := p.rows.out * p.cols.out; size > places {
		p.blockRows = split(p.rows.out, places/p.cols.out)
	} else {
		p.images = split(p.batch, places/size)
	}
	p.measure()
}

// measure finds the sizes of blocks.
func (p *plan) measure() {
	p.imageBlocks, p.rowBlocks = ceil(p.batch, p.images), ceil(p.rows.out, p.blockRows)
	p.n = ((p.images-1)*p.imageRows+p.blockRows-1)*p.pitch + p.cols.out
	p.nRow = ceil(p.n, 16) * 16
	p.outPitch, p.outImage = p.pitch, p.imageRows*p.pitch
	p.plane = ((p.images-1)*p.imageRows+p.blockRows+p.rows.span-p.rows.out)*p.pitch + p.cols.shared
	lines := ceil(len(p.rows.phases)*len(p.cols.phases)*p.plane, 16)
	p.channel = 16 * (lines | 1) // an odd number: channels begin in different sets of the cache
	p.chunk = split(p.srcC, min(most, planeSize/p.channel))
}

// tile is the columns of the widest tile of a product.
const tile = 32

// bestRows returns the rows of a block, at most so many, for which least is
// computed and copied for nothing: columns up to the end of a tile, and rows that
// two blocks have in common, of which four cost as much as one that is computed.
func (p *plan) bestRows(limit int) int {
	cost := func(rows int) int {
		return ceil((rows-1)*p.pitch+p.cols.out, tile)*tile + (p.rows.span-p.rows.out)*p.pitch/4
	}
	best, least := 0, 0
	for rows := 1; rows <= limit; rows++ {
		whole, rest := p.rows.out/rows, p.rows.out%rows
		sum := whole * cost(rows)
		if rest > 0 {
			sum += cost(rest)
		}
		if best == 0 || sum <= least {
			best, least = rows, sum
		}
	}
	return best
}

// tasks is the number of independent pieces of the destination.
func (p *plan) tasks() int {
	return p.groups * ceil(p.dstC, p.dstBlock) * p.imageBlocks * p.rowBlocks
}

// listViews lists the terms of every view.
func (p *plan) listViews() {
	for _, rowTaps := range p.rows.views {
		for _, colTaps := range p.cols.views {
			var v view
			for _, y := range rowTaps {
				for _, x := range colTaps {
					plane := y.plane*len(p.cols.phases) + x.plane
					at := plane*p.plane + (y.off-p.rows.first)*p.pitch + x.off - p.cols.first
					v.add(term{y.k*p.kw + x.k, at}, p.tapStride())
				}
			}
			p.views = append(p.views, v)
		}
	}
}

// add adds a term, whose weights are k strides from those of tap 0.
func (v *view) add(t term, stride int) {
	v.terms = append(v.terms, t)
	v.sum = append(v.sum, gemm.Term{A: t.k * stride, B: t.at})
}

// tapStride is the elements from a tap's weights to the next tap's.
func (p *plan) tapStride() int {
	if p.packed {
		return p.wTap
	}
	return 1
}

// Sizes of the parts of the scratch, in elements.
func (p *plan) planesSize() int { return p.chunk * p.channel }
func (p *plan) wideSize() int   { return p.dstBlock * p.nRow * len(p.views) }
func (p *plan) slotSize() int   { return p.planesSize() + p.wideSize() }
func (p *plan) zerosSize() int  { return ceil(p.cols.out, 16) * 16 }
func (p *plan) weightsSize() int {
	if !p.packed {
		return 0
	}
	return p.groups * p.dstC * p.wRow
}

// scratch is the elements of workspace that a destination takes.
func (p *plan) scratch() int {
	return p.zerosSize() + p.weightsSize() + min(MaxThreads, p.tasks())*p.slotSize()
}
