package conv

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
)

// tilePlan is how the gradient of w is computed where patches lie side by side, as those that a
// vision transformer begins with: a patch is in the images once, so all that is needed is to have
// each as a row, for a product of matrices. Some rows of places of an image are laid out at a time,
// and added up one after the other.
type tilePlan struct {
	Shape
	lines int // rows of places at a time, of which an image has a multiple
}

// tileSize is the most elements that more than one row of places is laid out in.
const tileSize = 1 << 18

// shortRun is the elements of a row of a patch that are too few to be copied at once.
const shortRun = 8

// tiled reports whether patches lie side by side, and are large.
func (s Shape) tiled() bool {
	return s.StrideH == s.KH && s.StrideW == s.KW && s.DilH == 1 && s.DilW == 1 &&
		s.PadTop == 0 && s.PadLeft == 0 && s.PadBottom == 0 && s.PadRight == 0 && s.KW >= shortRun
}

func newTilePlan(s Shape) *tilePlan {
	p := &tilePlan{Shape: s, lines: s.OutH()}
	for p.lines > 1 && (p.scratch() > tileSize || s.OutH()%p.lines != 0) {
		p.lines--
	}
	return p
}

// row is the elements of a patch.
func (p *tilePlan) row() int { return p.InC / p.Groups * p.taps() }

func (p *tilePlan) scratch() int { return p.lines * p.OutW() * p.row() }

// product is that of the places that are laid out with the gradient of y there.
func (p *tilePlan) product() gemm.Product {
	return gemm.Product{M: p.OutC / p.Groups, N: p.row(), K: p.lines * p.OutW(), Alpha: 1}
}

func (p *tilePlan) sums() (images, elements int) { return 1, p.filter() }

// add adds the products of places.
func (p *tilePlan) add(threads *pool.Pool, some span, x Source, dy, dw, scratch []float32) {
	in, places, product := p.InC/p.Groups, p.OutH()*p.OutW(), p.product()
	product.B = gemm.Matrix{F32: scratch, LD: p.row()}
	product.LDC = p.row()
	var image, group, line int
	lay := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			place, c := i/in, i%in
			at := ((image*p.InC+group*in+c)*p.InH+(line+place/p.OutW())*p.KH)*p.InW +
				place%p.OutW()*p.KW
			x.take(scratch[i*p.taps():], p.KW, at, p.InW, p.KH, p.KW, 1)
		}
	}
	for group = range p.Groups {
		product.C = dw[group*product.M*product.N:]
		product.Beta = float32(min(some.from, 1))
		for image = range some.images {
			for line = 0; line < p.OutH(); line += p.lines {
				threads.For(product.K*in, max(1, grain/p.taps()), lay)
				first := (image*p.OutC+group*product.M)*places + line*p.OutW()
				product.A = gemm.Matrix{F32: dy[first:], LD: places}
				product.Compute(threads)
				product.Beta = 1
			}
		}
	}
}
