package ops

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// byImages are pieces of some images each, if those sum as all do; only operand 0 has images.
func byImages(op graph.Op, s conv.Shape, order func(conv.Shape) conv.Order) []piece {
	whole := order(s)
	for n := eighth(s.Batch); n < s.Batch; n++ {
		first, last := s, s
		if first.Batch, last.Batch = n, s.Batch%n; last.Batch == 0 {
			last.Batch = n
		}
		if order(first) == whole && order(last) == whole {
			return piecesAlong(op, s.Batch, n, []int{0, -1}, []int{0})
		}
	}
	return nil
}

// pieces are of some images each.
func (o conv2D) pieces(in, _ []graph.Type) []piece {
	s, err := o.shape(in)
	if err != nil {
		return nil
	}
	return byImages(o, s, conv.OrderForward)
}

// pieces are of some images each.
func (o convInputGrad) pieces(in, _ []graph.Type) []piece {
	s, err := o.shape(in)
	if err != nil {
		return nil
	}
	return byImages(o, s, conv.OrderGradInput)
}

// pieces are of some channels of the images, and some of the result's, if those sum as all do.
func (o convFilterGrad) pieces(in, _ []graph.Type) []piece {
	s, err := o.shape(in)
	if err != nil || s.Groups > 1 || s.Batch == 0 {
		return nil
	}
	var best []piece
	least := int64(s.Batch) * int64(s.InC*s.InH*s.InW+s.OutC*s.OutH()*s.OutW())
	for _, inC := range quarters(s.InC) {
		for _, outC := range quarters(s.OutC) {
			copied := int64(s.Batch) * int64(inC*s.InH*s.InW+outC*s.OutH()*s.OutW())
			if copied < least && sameOrder(s, inC, outC) {
				best, least = o.byChannels(s, inC, outC), copied
			}
		}
	}
	return best
}

// quarters are a quarter of some channels, a half of them, and all.
func quarters(channels int) []int {
	return []int{(channels + 3) / 4, (channels + 1) / 2, channels}
}

// sameOrder reports whether the gradient of filters of so many channels is summed as that of all.
func sameOrder(s conv.Shape, inC, outC int) bool {
	whole := conv.OrderGradFilter(s)
	for _, in := range []int{inC, s.InC - (s.InC-1)/inC*inC} {
		for _, out := range []int{outC, s.OutC - (s.OutC-1)/outC*outC} {
			part := s
			if part.InC, part.OutC = in, out; conv.OrderGradFilter(part) != whole {
				return false
			}
		}
	}
	return true
}

func (o convFilterGrad) byChannels(s conv.Shape, inC, outC int) (list []piece) {
	for c := 0; c < s.InC; c += inC {
		for k := 0; k < s.OutC; k += outC {
			x := stretch{axis: 1, lo: c, hi: min(s.InC, c+inC)}
			dy := stretch{axis: 1, lo: k, hi: min(s.OutC, k+outC)}
			dw := stretch{axis: 1, lo: x.lo, hi: x.hi, from: dy.lo, end: dy.hi}
			list = append(list, piece{op: o, in: []stretch{x, dy}, out: []stretch{dw}})
		}
	}
	return list
}

// pieces are of some channels each.
func (o batchNorm) pieces(in, _ []graph.Type) []piece {
	channels := in[0].Size(1)
	return piecesAlong(o, channels, eighth(channels), []int{1, 0, 0}, []int{1, 0, 0})
}

// pieces are of some channels each.
func (o batchNormGrad) pieces(in, _ []graph.Type) []piece {
	channels := in[0].Size(1)
	return piecesAlong(o, channels, eighth(channels), []int{1, 0, 0, 0, 1}, []int{1, 0, 0})
}

// pieces are of some rows each.
func (o layerOver) pieces(in, _ []graph.Type) []piece {
	if o.From == 0 {
		return nil
	}
	return piecesAlong(o, in[0].Size(0), eighth(in[0].Size(0)), []int{0, -1, -1}, []int{0})
}

// pieces of a sum over the rows of both matrices are of some rows of the result each, or of some
// columns, where that copies less than all of the result has.
func (o matMul) pieces(in, out []graph.Type) []piece {
	if !o.TransA || o.TransB || out[0].Rank() != 2 {
		return nil
	}
	m, n, last := out[0].Size(0), out[0].Size(1), in[0].Rank()-1
	k := in[0].Elems() / m
	rows, columns := eighth(m)*(k+n), eighth(n)*(k+m)
	var list []piece
	switch op := (matMulLike{o, m, n}); {
	case min(rows, columns) >= m*n:
	case rows < columns:
		list = piecesAlong(op, m, eighth(m), []int{last, -1}, []int{0})
	default:
		list = piecesAlong(op, n, eighth(n), []int{-1, last}, []int{1})
	}
	for i := range list {
		list[i].direct = true
	}
	return list
}
