package conv

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// Where a convolution is computed place by place: at few places, which would leave most lanes of a
// tile idle, and with filters so long that reading them from memory is most of the time.
const (
	fewPlaces  = 14
	longFilter = 1024
)

// few says whether the convolution is a product of vectors: every filter, read once and in its own
// order, with what it sees at each place.
func (s Shape) few() bool {
	return s.places() <= fewPlaces && s.row() >= longFilter && s.OutC/s.Groups >= manyChannels
}

// places is the columns of the product: those of all images.
func (s Shape) places() int { return s.Batch * s.OutH() * s.OutW() }

// row is the elements of a filter, and of what it sees at a place.
func (s Shape) row() int { return s.InC / s.Groups * s.taps() }

// fewPitch is the elements from what is seen at a place to the next: an odd number of lines.
func (s Shape) fewPitch() int { return 16 * (ceil(s.row(), 16) | 1) }

// scratchFew is the elements of workspace: what is seen, and a result whose images are not where
// they belong yet.
func (s Shape) scratchFew() int { return s.places() * (s.fewPitch() + s.OutC/s.Groups) }

// product is that of a group's filters with what they see.
func (s Shape) product() gemm.Product {
	return gemm.Product{M: s.OutC / s.Groups, N: s.places(), K: s.row(), Alpha: 1,
		A: gemm.Matrix{LD: s.row()}, B: gemm.Matrix{LD: s.fewPitch(), Trans: true},
		LDC: s.places()}
}

// forwardFew computes y.
func forwardFew(p *pool.Pool, s Shape, x, w, y, scratch []float32) {
	pitch := s.fewPitch()
	seen, result := scratch[:s.places()*pitch], scratch[s.places()*pitch:]
	inC, outC, size := s.InC/s.Groups, s.OutC/s.Groups, s.OutH()*s.OutW()
	for g := range s.Groups {
		p.For(inC, max(1, grain/(s.places()*s.taps())), func(lo, hi int) {
			for image := range s.Batch {
				for c := lo; c < hi; c++ {
					from := x[(image*s.InC+g*inC+c)*s.pixels():][:s.pixels()]
					s.see(seen[image*size*pitch+c*s.taps():], from, pitch)
				}
			}
		})
		product := s.product()
		product.A.F32, product.B.F32 = w[g*outC*s.row():], seen
		if product.C = result; s.Batch == 1 { // it has the order of y
			product.C = y[g*outC*size:]
		}
		product.Compute(p)
		for image := range s.Batch * min(1, s.Batch-1) {
			takeRows(y[(image*s.OutC+g*outC)*size:], size, result[image*size:], s.places(), outC,
				size, 1)
		}
	}
}

// see writes what the taps see of a channel of an image: a row a place.
func (s *Shape) see(to, from []float32, pitch int) {
	rows, cols := s.OutH(), s.OutW()
	for i := range rows {
		for j := range cols {
			s.seen(to[(i*cols+j)*pitch:][:s.taps()], from, i*s.StrideH-s.PadTop,
				j*s.StrideW-s.PadLeft)
		}
	}
}

// seen writes what the taps see at a place whose first one is at row y and column x.
func (s *Shape) seen(to, from []float32, y, x int) {
	for ky := range s.KH {
		row := to[ky*s.KW:][:s.KW]
		at := y + ky*s.DilH
		if at < 0 || at >= s.InH {
			clear(row)
			continue
		}
		line := from[at*s.InW:][:s.InW]
		for kx := range row {
			row[kx] = 0
			if col := x + kx*s.DilW; col >= 0 && col < s.InW {
				row[kx] = line[col]
			}
		}
	}
}
