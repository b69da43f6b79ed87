package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// mostPieces is into how many pieces an operation on bfloat16 is cut along an axis.
const mostPieces = 8

// piecewise is implemented by operations that come to the same bits piece by piece, cut along
// axes where graphs are not: images, channels, rows of a sum.
type piecewise interface {
	graph.Op
	// pieces are those of an operation on f32 of these types; there is none if it cannot be cut.
	pieces(in, out []graph.Type) []piece
}

// piece is an operation on some of each operand, for some of each result.
type piece struct {
	op      graph.Op
	in, out []stretch
	direct  []int // operands that the operation reads in bfloat16 as they are
}

// stretch is elements lo to hi-1 along an axis, or all if hi is zero; of the rows before the axis,
// from to end-1, or all if end is zero.
type stretch struct{ axis, lo, hi, from, end int }

// of is the type of what a stretch has of a value.
func (s stretch) of(t graph.Type) graph.Type {
	if s.hi == 0 {
		return t
	}
	if s.end > 0 {
		t = resized(t, 0, s.end-s.from)
	}
	return resized(t, s.axis, s.hi-s.lo)
}

// runs visits the contiguous elements of a stretch of a value of a type: so many from an element
// on, in parallel.
func (s stretch) runs(c *kernel.Call, t graph.Type, visit func(run, at, n int)) {
	rows, length, first := 1, t.Elems(), 0
	if s.hi > 0 {
		inner := graph.Type{Shape: t.Shape[s.axis+1:]}.Elems()
		length = t.Size(s.axis) * inner
		rows, first = t.Elems()/max(1, length), s.lo*inner
		if s.end > 0 {
			rows, first = s.end-s.from, first+s.from*length
		}
		n := (s.hi - s.lo) * inner
		c.Pool.For(rows, max(1, grain/max(1, n)), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				visit(r*n, first+r*length, n)
			}
		})
		return
	}
	c.Pool.For(length, grain, func(lo, hi int) { visit(lo, lo, hi-lo) })
}

// take copies a stretch of a value to f32.
func (s stretch) take(c *kernel.Call, v tensor.View, to []float32) {
	s.runs(c, v.Type, func(run, at, n int) {
		if half(v.Type) {
			vec.F32FromBF16(to[run:run+n], v.U16()[at:at+n])
		} else {
			copy(to[run:run+n], v.F32()[at:at+n])
		}
	})
}

// put copies f32 to a stretch of a value, rounded if it is of bfloat16.
func (s stretch) put(c *kernel.Call, v tensor.View, from []float32) {
	s.runs(c, v.Type, func(run, at, n int) {
		if half(v.Type) {
			vec.BF16FromF32(v.U16()[at:at+n], from[run:run+n])
		} else {
			copy(v.F32()[at:at+n], from[run:run+n])
		}
	})
}

// copied reports whether what a stretch has of an operand or result is copied, in f32.
func copied(s stretch, t graph.Type) bool {
	return half(t) || s.hi > 0 && t.DType == graph.F32
}

// copies reports whether a piece has a copy of an operand.
func (p piece) copies(operand int, t graph.Type) bool {
	s := p.in[operand]
	return copied(s, t) && (s.hi > 0 || !slices.Contains(p.direct, operand))
}

// pieces are those of the operation, if it has some that take less scratch.
func (o inBF16) pieces(in, out []graph.Type) []piece {
	op, ok := o.Op.(piecewise)
	if !ok || takesBF16(o.Op) && !o.rounds(0) {
		return nil
	}
	if p := op.pieces(inF32(in), inF32(out)); len(p) > 0 {
		return p
	}
	return nil
}

// room is the scratch that a piece takes, in bytes.
func (p piece) room(in, out []graph.Type) (bytes int64) {
	var inF, outF []graph.Type
	for i, t := range in {
		inF = append(inF, p.in[i].of(inF32(in)[i]))
		if p.copies(i, t) {
			bytes += padded(inF[i].Bytes())
		}
	}
	for i, t := range out {
		outF = append(outF, p.out[i].of(inF32(out)[i]))
		if copied(p.out[i], t) {
			bytes += padded(outF[i].Bytes())
		}
	}
	return bytes + p.op.Cost(inF, outF).Scratch
}

// run computes a piece.
func (p piece) run(c *kernel.Call) error {
	run, err := kernel.Lookup(kernel.CPU, p.op)
	if err != nil {
		return err
	}
	scratch := c.Scratch
	take := func(t graph.Type) tensor.View {
		t.DType = graph.F32
		n := t.Bytes()
		v := tensor.View{Type: t, Data: scratch[:n:n]}
		scratch = scratch[padded(n):]
		return v
	}
	inner := kernel.Call{Pool: c.Pool}
	for i, v := range c.In {
		if p.copies(i, v.Type) {
			x := take(p.in[i].of(v.Type))
			p.in[i].take(c, v, x.F32())
			v = x
		}
		inner.In = append(inner.In, v)
	}
	for i, v := range c.Out {
		if copied(p.out[i], v.Type) {
			v = take(p.out[i].of(v.Type))
		}
		inner.Out = append(inner.Out, v)
	}
	inner.Scratch = scratch
	if err := run(p.op, &inner); err != nil {
		return err
	}
	for i, v := range inner.Out {
		if copied(p.out[i], c.Out[i].Type) {
			p.out[i].put(c, c.Out[i], v.F32())
		}
	}
	return nil
}

// piecesAlong are pieces of an operation along an axis of so many elements, of as few as least or
// more: in and out say along which axis of each operand and result, or none below zero.
func piecesAlong(op graph.Op, size, least int, in, out []int) []piece {
	spans := func(axes []int, lo, hi int) (s []stretch) {
		for _, axis := range axes {
			if axis < 0 {
				s = append(s, stretch{})
			} else {
				s = append(s, stretch{axis: axis, lo: lo, hi: hi})
			}
		}
		return s
	}
	var list []piece
	for lo := 0; lo < size; lo += least {
		hi := min(size, lo+least)
		list = append(list, piece{op: op, in: spans(in, lo, hi), out: spans(out, lo, hi)})
	}
	return list
}

// eighth is the least of a size that a piece has.
func eighth(size int) int { return max(1, (size+mostPieces-1)/mostPieces) }
