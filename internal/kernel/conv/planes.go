package conv

// place is a block's position: its first image and row, and how many there are.
type place struct{ image, images, row, rows int }

// place returns the i-th block.
func (p *plan) place(i int) place {
	image, row := i/p.rowBlocks*p.images, i%p.rowBlocks*p.blockRows
	return place{image, min(p.images, p.batch-image), row, min(p.blockRows, p.rows.out-row)}
}

// columns is the columns of a block's product, at most p.n.
func (p *plan) columns(b place) int {
	return ((b.images-1)*p.imageRows+b.rows-1)*p.pitch + p.cols.out
}

// fill writes the planes of channels c0 … c1 of src to dst, with their padding.
func (p *plan) fill(dst, src []float32, b place, c0, c1 int) {
	size, channels := p.rows.src*p.cols.src, p.groups*p.srcC
	for c := c0; c < c1; c++ {
		planes := dst[(c-c0)*p.channel:][:p.channel]
		for image := range b.images {
			p.fillImage(planes[image*p.imageRows*p.pitch:], src[((b.image+image)*channels+c)*size:][:size], b)
		}
	}
}

// fillImage writes one image's part of a channel's planes, in the order of its
// rows. What the last row shares with a next one ends it.
func (p *plan) fillImage(planes, src []float32, b place) {
	rows := b.rows + p.rows.span - p.rows.out
	for i := range rows {
		for phase, from := range p.rows.phases {
			row := from.first + (b.row+i+p.rows.first)*p.rows.step
			for j := range p.cols.phases {
				to := planes[(phase*len(p.cols.phases)+j)*p.plane+i*p.pitch:]
				if row < 0 || row >= p.rows.src {
					clear(to[:p.pitch])
				} else {
					p.fillRow(to[:p.pitch], src[row*p.cols.src:][:p.cols.src], &p.cols.phases[j])
				}
				if i == rows-1 {
					clear(to[p.pitch:][:p.cols.shared])
				}
			}
		}
	}
}

// fillRow writes a row of the source to a row of a plane.
func (p *plan) fillRow(to, src []float32, from *phase) {
	zero(to, from.lo, 1)
	if from.lo < from.hi {
		take(to[from.lo:from.hi], src[from.first+(from.lo+p.cols.first)*p.cols.step:], p.cols.step)
	}
	zero(to[from.hi:], len(to)-from.hi, 1)
}

// store writes destination channel c, of which wide has the product's rows: for
// every view one, at a distance of viewSize.
func (p *plan) store(dst, wide []float32, viewSize int, b place, c int) {
	size := p.rows.dst * p.cols.dst
	for image := range b.images {
		to := dst[((b.image+image)*p.groups*p.dstC+c)*size:][:size]
		for r := range p.rows.views {
			for i := range b.rows {
				row := r + (b.row+i)*p.rows.spread
				if row >= p.rows.dst {
					break
				}
				at := (image*p.imageRows + i) * p.pitch
				p.storeRow(to[row*p.cols.dst:][:p.cols.dst], wide[at:], viewSize, r*len(p.cols.views))
			}
		}
	}
}

// storeRow writes a row of the destination from its views, of which v is the
// first.
func (p *plan) storeRow(to, wide []float32, viewSize, v int) {
	if p.cols.spread == 1 && len(p.views[v].terms) > 0 {
		copy(to, wide[v*viewSize:])
		return
	}
	views := p.views[v : v+len(p.cols.views)]
	if p.cols.spread == 2 && len(views) == 2 && len(views[0].terms) > 0 && len(views[1].terms) > 0 {
		interleave(to, wide[v*viewSize:][:p.cols.out], wide[(v+1)*viewSize:][:p.cols.out])
		return
	}
	for i, view := range views {
		n := ceil(p.cols.dst-i, p.cols.spread)
		if len(view.terms) == 0 {
			zero(to[i:], n, p.cols.spread)
			continue
		}
		put(to[i:], wide[(v+i)*viewSize:][:n], p.cols.spread)
	}
}
