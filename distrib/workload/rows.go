package workload

import (
	"context"
	"math"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// table is rows of a parameter, or of memory that one worker has for itself, while a worker
// changes them: rows that it has touched are copies, and go out as updates.
type table struct {
	ref       distrib.Ref
	data      []float32 // all rows; only the synchronizer writes those of a parameter
	cols      int
	gradients bool

	work    []float32 // the copies, or sums of gradients
	touched []bool
	list    []int32

	local bool
	z     []float32 // AdaGrad's sums of squares, of a local table with gradients
}

// change is where the change of a row goes.
type change struct {
	to  []float32
	z   []float32 // AdaGrad's; nil: none
	sum bool      // of gradients
}

// change takes a step along a gradient, or adds it up.
func (c change) change(k int, g, rate float32) {
	switch {
	case c.sum:
		c.to[k] += g
	case c.z != nil:
		c.z[k] += float32(g * g)
		c.to[k] -= float32(rate*g) / float32(math.Sqrt(float64(c.z[k])))
	default:
		c.to[k] -= float32(rate * g)
	}
}

// newTable is rows [from, to) of a parameter.
func newTable(id distrib.ParamID, p *distrib.Param, from, to int, gradients bool) *table {
	return &table{ref: distrib.Ref{Param: id, Row: int32(from), N: int32(to - from)},
		data: p.Data, cols: p.Cols, gradients: gradients, work: make([]float32, len(p.Data)),
		touched: make([]bool, p.Rows)}
}

// newLocal is a worker's own memory.
func newLocal(data []float32, cols int, gradients bool) *table {
	t := &table{data: data, cols: cols, local: true}
	if gradients {
		t.z = slices.Repeat([]float32{1}, len(data))
	}
	return t
}

// pull brings what is new.
func (t *table) pull(ctx context.Context, s distrib.Synchronizer) error {
	if t.local || t.ref.N == 0 {
		return nil
	}
	_, err := s.Pull(ctx, t.ref)
	return err
}

// value is a row as it was pulled, or as it is in local memory.
func (t *table) value(row int32) []float32 { return rowOf(t.data, t.cols, row) }

// row is what a row's gradient is computed from, and where its change goes.
func (t *table) row(row int32) ([]float32, change) {
	if t.local {
		c := change{to: t.value(row)}
		if t.z != nil {
			c.z = rowOf(t.z, t.cols, row)
		}
		return c.to, c
	}
	w := rowOf(t.work, t.cols, row)
	if !t.touched[row] {
		t.touched[row] = true
		t.list = append(t.list, row)
		if t.gradients {
			clear(w)
		} else {
			copy(w, t.value(row))
		}
	}
	if t.gradients {
		return t.value(row), change{to: w, sum: true}
	}
	return w, change{to: w}
}

// push hands over what the touched rows came to, a row at a time.
func (t *table) push(ctx context.Context, s distrib.Synchronizer) error {
	slices.Sort(t.list)
	changes := make([]float32, len(t.list)*t.cols)
	for i, row := range t.list {
		t.touched[row] = false
		u := changes[i*t.cols : (i+1)*t.cols : (i+1)*t.cols]
		copy(u, rowOf(t.work, t.cols, row))
		if !t.gradients {
			for k, v := range t.value(row) {
				u[k] -= v
			}
		}
		ref := distrib.Ref{Param: t.ref.Param, Row: row, N: 1}
		if err := s.Push(ctx, ref, distrib.Dense(u)); err != nil {
			return err
		}
	}
	t.list = t.list[:0]
	return nil
}
