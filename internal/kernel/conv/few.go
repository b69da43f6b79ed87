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
	seen, result := scratch[:s.places()*s.fewPitch()], scratch[s.places()*s.fewPitch():]
	inC, outC, size := s.InC/s.Groups, s.OutC/s.Groups, s.OutH()*s.OutW()
	for g := range s.Groups {
		p.For(inC, max(1, grain/(s.places()*s.taps())), func(lo, hi int) {
			for image := range s.Batch {
				for c := lo; c < hi; c++ {
					from := x[(image*s.InC+g*inC+c)*s.pixels():][:s.pixels()]
					s.see(seen[image*size*s.fewPitch()+c*s.taps():], from)
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
func (s Shape) see(to, from []float32) {
	for i := range s.OutH() {
		for j := range s.OutW() {
			row := to[(i*s.OutW()+j)*s.fewPitch():][:s.taps()]
			for tap := range row {
				y := i*s.StrideH + tap/s.KW*s.DilH - s.PadTop
				x := j*s.StrideW + tap%s.KW*s.DilW - s.PadLeft
				if row[tap] = 0; y >= 0 && y < s.InH && x >= 0 && x < s.InW {
					row[tap] = from[y*s.InW+x]
				}
			}
		}
	}
}
