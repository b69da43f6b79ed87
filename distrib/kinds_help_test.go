package distrib_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// longRows is a kind of one's own: rows of int64 numbers, of which no filter keeps any back.
type longRows struct{}

type longs []int64

func (longRows) Name() string                 { return "int64" }
func (longRows) Zero(cols int) distrib.Update { return make(longs, cols) }
func (longRows) Most(cols int) int            { return 10 * cols }

func (longRows) Check(u distrib.Update, cols int) error {
	if x, ok := u.(longs); !ok || len(x) != cols {
		return fmt.Errorf("%T is no row of %d int64", u, cols)
	}
	return nil
}

func (longRows) Decode(b []byte, cols int) (distrib.Update, error) {
	if len(b) < cols {
		return nil, errors.New("too few bytes")
	}
	x := make(longs, cols)
	for i := range x {
		v, n := binary.Varint(b)
		if n <= 0 {
			return nil, errors.New("no number")
		}
		x[i], b = v, b[n:]
	}
	if len(b) > 0 {
		return nil, errors.New("too many bytes")
	}
	return x, nil
}

func (u longs) AddTo(dst []float32, _ int, scale float32) {
	for i, v := range u {
		dst[i] += scale * float32(v)
	}
}

func (u longs) Norm() float64 { return distrib.AsDense(u).Norm() }
func (u longs) Elements() int { return len(u) }
func (u longs) Bytes() int    { return 8 * len(u) }
func (u longs) WireSize() int { return len(u.AppendWire(nil)) }

func (u longs) AppendWire(b []byte) []byte {
	for _, v := range u {
		b = binary.AppendVarint(b, v)
	}
	return b
}

func (u longs) Plus(other distrib.Update, owned bool) distrib.Update {
	if !owned {
		u = slices.Clone(u)
	}
	for i, v := range other.(longs) {
		u[i] += v
	}
	return u
}

func (u longs) Sums() (sum, size float64) {
	for _, v := range u {
		sum, size = sum+float64(v), size+math.Abs(float64(v))
	}
	return sum, size
}

// allKinds are the kinds that laws must hold for; nil is dense numbers.
func allKinds() []distrib.Kind {
	return []distrib.Kind{distrib.SparseRows{}, distrib.IntRows{}, longRows{}}
}

// tableOf is a parameter of zeros with rows of a kind.
func tableOf(kind distrib.Kind, name string, rows, cols int) *distrib.Param {
	p := zeros(name, rows, cols)
	if p.Kind = kind; kind != nil {
		p.Data = nil
	}
	return p
}

// ofKind is an update of a row as one of a kind.
func ofKind(kind distrib.Kind, d distrib.Dense) distrib.Update {
	switch kind.(type) {
	case distrib.SparseRows:
		s := distrib.Sparse{N: len(d)}
		for i, v := range d {
			if v != 0 {
				s.Idx, s.Val = append(s.Idx, uint32(i)), append(s.Val, v)
			}
		}
		return s
	case distrib.IntRows:
		x := distrib.Ints{N: len(d)}
		for i, v := range d {
			if v != 0 {
				x.Idx, x.Val = append(x.Idx, uint32(i)), append(x.Val, int32(v))
			}
		}
		return x
	case longRows:
		x := make(longs, len(d))
		for i, v := range d {
			x[i] = int64(v)
		}
		return x
	}
	return d
}

// valuesOf are a worker's rows as numbers.
func valuesOf(p *distrib.Param) []float32 {
	if p.Kind == nil {
		return p.Data
	}
	all := make([]float32, 0, p.Rows*p.Cols)
	for _, u := range p.Cells {
		all = append(all, distrib.AsDense(u)...)
	}
	return all
}
