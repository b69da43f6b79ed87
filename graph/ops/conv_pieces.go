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

// pieces are of some channels of the result, if those are summed as all are. Images are read as
// they are.
func (o convFilterGrad) pieces(in, _ []graph.Type) []piece {
	s, err := o.shape(in)
	if err != nil {
		return nil
	}
	n, whole := s.OutC, conv.OrderGradFilter(s)
	for _, parts := range []int{8, 4, 2} {
		part := s
		part.OutC = s.OutC / parts
		if s.Groups == 1 && s.OutC%parts == 0 && conv.OrderGradFilter(part) == whole {
			n = part.OutC
			break
		}
	}
	list := piecesAlong(o, s.OutC, n, []int{-1, 1}, []int{0})
	if n == s.OutC {
		list = []piece{{op: o, in: make([]stretch, 2), out: make([]stretch, 1)}}
	}
	for i := range list {
		list[i].direct = []int{0}
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
		list[i].direct = []int{0, 1}
	}
	return list
}
