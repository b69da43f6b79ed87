package conv

import (
	"math"

	"github.com/gomem/gomem/internal/kernel/vec"
)

// Source is images, of float32 or, instead, of bfloat16, which is widened as it is read.
type Source struct {
	F32  []float32
	BF16 []uint16
}

// take copies every step-th element of rows, from an element on, to rows of dst.
func (s Source) take(dst []float32, dstPitch, from, srcPitch, rows, n, step int) {
	if s.BF16 == nil {
		takeRows(dst, dstPitch, s.F32[from:], srcPitch, rows, n, step)
		return
	}
	for i := range rows {
		to, src := dst[i*dstPitch:][:n], s.BF16[from+i*srcPitch:]
		if step == 1 {
			vec.F32FromBF16(to, src[:n])
			continue
		}
		for j := range to {
			to[j] = math.Float32frombits(uint32(src[j*step]) << 16)
		}
	}
}

// from are the elements from one on, so many.
func (s Source) from(at, n int) Source {
	if s.BF16 == nil {
		return Source{F32: s.F32[at : at+n]}
	}
	return Source{BF16: s.BF16[at : at+n]}
}

// place is a block's position: its first image and row, and how many there are.
type place struct{ image, images, row, rows int }

// place returns the i-th block.
func (p *plan) place(i int) place {
	image, row := i/p.rowBlocks*p.images, i%p.rowBlocks*p.blockRows
	return place{image, min(p.images, p.batch-image), row, min(p.blockRows, p.rows.out-row)}
}

// blocks are those with the images of a span.
func (p *plan) blocks(some span) (lo, hi int) {
	return some.from / p.images * p.rowBlocks,
		ceil(some.from+some.images, p.images) * p.rowBlocks
}

// placeIn is the i-th block, in a span.
func (p *plan) placeIn(i int, some span) place {
	b := p.place(i)
	b.image -= some.from
	return b
}

// columns is the columns of a block's product, at most p.n.
func (p *plan) columns(b place) int {
	return ((b.images-1)*p.imageRows+b.rows-1)*p.pitch + p.cols.out
}

// fill writes the planes of channels c0 … c1 of src to dst, with their padding.
func (p *plan) fill(dst []float32, src Source, b place, c0, c1 int) {
	size, channels := p.rows.src*p.cols.src, p.groups*p.srcC
	for c := c0; c < c1; c++ {
		planes := dst[(c-c0)*p.channel:][:p.channel]
		for image := range b.images {
			p.fillImage(planes[image*p.imageRows*p.pitch:],
				src.from(((b.image+image)*channels+c)*size, size), b)
		}
	}
}

// fillImage writes one image's part of a channel's planes.
func (p *plan) fillImage(planes []float32, src Source, b place) {
	rows := b.rows + p.rows.span - p.rows.out
	for i, r := range p.rows.phases {
		first, end := max(r.lo-b.row, 0), min(r.hi-b.row, rows)
		y := r.first + (b.row+first+p.rows.first)*p.rows.step
		for j, c := range p.cols.phases {
			to := planes[(i*len(p.cols.phases)+j)*p.plane:][:rows*p.pitch+p.cols.shared]
			if first > 0 || end < rows || c.lo > 0 || c.hi < p.pitch || p.cols.shared > 0 {
				clear(to)
			}
			if first < end && c.lo < c.hi {
				x := c.first + (c.lo+p.cols.first)*p.cols.step
				src.take(to[first*p.pitch+c.lo:], p.pitch, y*p.cols.src+x,
					p.rows.step*p.cols.src, end-first, c.hi-c.lo, p.cols.step)
			}
		}
	}
}

// store writes destination channel c, of which wide has the product's rows: for
// every view one, at a distance of viewSize.
func (p *plan) store(dst, wide, zeros []float32, viewSize int, b place, c int) {
	size := p.rows.dst * p.cols.dst
	for image := range b.images {
		to := dst[((b.image+image)*p.groups*p.dstC+c)*size:][:size]
		from := wide[image*p.outImage:]
		for r := range p.rows.views {
			first := r + b.row*p.rows.spread
			if rows := min(b.rows, ceil(p.rows.dst-first, p.rows.spread)); rows > 0 {
				p.storeRows(to[first*p.cols.dst:], from, zeros, viewSize, r*len(p.cols.views), rows)
			}
		}
	}
}

// finish calls done, if there is one, for destination channels c0 … c1 of a block.
func (p *plan) finish(done func(lo, hi int), b place, c0, c1 int) {
	if done == nil {
		return
	}
	row, size := p.cols.dst, p.rows.dst*p.cols.dst
	first := b.row * p.rows.spread
	end := min(first+b.rows*p.rows.spread, p.rows.dst)
	for image := b.image; image < b.image+b.images; image++ {
		at := image * p.groups * p.dstC
		if end-first == p.rows.dst {
			done((at+c0)*size, (at+c1)*size)
			continue
		}
		for c := c0; c < c1; c++ {
			done((at+c)*size+first*row, (at+c)*size+end*row)
		}
	}
}

// storeRows writes rows of the destination from their views, of which v is the
// first.
func (p *plan) storeRows(to, wide, zeros []float32, viewSize, v, rows int) {
	pitch, views := p.rows.spread*p.cols.dst, p.views[v:v+len(p.cols.views)]
	// all is one row
	if p.rows.spread*p.cols.spread == 1 && p.outPitch == pitch && len(views[0].terms) > 0 {
		rows, pitch = 1, rows*pitch
		takeRows(to, pitch, wide[v*viewSize:], pitch, 1, pitch, 1)
		return
	}
	if p.cols.spread == 2 && len(views) == 2 && len(views[0].terms) > 0 {
		odd, oddPitch := zeros, 0
		if len(views[1].terms) > 0 {
			odd, oddPitch = wide[(v+1)*viewSize:], p.outPitch
		}
		interleaveRows(to, pitch, wide[v*viewSize:], p.outPitch, odd, oddPitch, rows, p.cols.dst)
		return
	}
	for i, view := range views {
		n := ceil(p.cols.dst-i, p.cols.spread)
		if len(view.terms) == 0 {
			clearRows(to[i:], pitch, rows, n, p.cols.spread)
			continue
		}
		putRows(to[i:], pitch, wide[(v+i)*viewSize:], p.outPitch, rows, n, p.cols.spread)
	}
}
