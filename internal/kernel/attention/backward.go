package attention

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Gradients are operands and results of Backward, beside queries, keys and values.
type Gradients struct {
	Sums  Rows // what Forward computed
	DOut  Rows // the gradient of its result
	Delta Rows // Σ of result·gradient over every row, less the gradient of Sums
	DQ    Rows
	DK    Rows
	DV    Rows
}

// tiles is how many a task of the gradient has in scratch: weights and their gradients, weights
// without what is dropped, and the slope of the cap.
func (x *Problem) tiles() int {
	n := 2
	if x.drops() {
		n++
	}
	if x.Softcap > 0 {
		n++
	}
	return n
}

// apartTasks is how many tasks there are if gradients of keys and of queries are computed apart.
func (x *Problem) apartTasks() int {
	return x.Batch * max(x.Groups*blocks(x.Keys, keyBlock), x.Heads*blocks(x.Queries, queryBlock))
}

// ScratchBackward is the bytes of scratch that Backward takes.
func ScratchBackward(x Problem) int64 {
	return 4 * int64(min(lanes, x.apartTasks())) * int64(x.backwardElems())
}

func (x *Problem) backwardElems() int { return x.tiles() * x.tileElems() }

// Backward computes the gradients of q, k and v. scratch has ScratchBackward bytes.
func Backward(p *pool.Pool, x Problem, q, k, v Rows, d Gradients, scratch []float32) {
	g := backward{Problem: x, Gradients: d, q: q, k: k, v: v, logit: x.logits()}
	g.slope = gemm.Product{M: min(x.Queries, queryBlock), N: min(x.Keys, keyBlock),
		K: x.ValueSize, B: gemm.Matrix{Trans: true}}.Order()
	elems, groups := x.backwardElems(), x.Batch*x.Groups
	if groups >= p.Threads() {
		each(p, groups, elems, scratch, func(task int, own []float32) {
			b, group := task/x.Groups, task%x.Groups
			g.clearQueries(b, group)
			for k0 := 0; k0 < x.Keys; k0 += keyBlock {
				g.keyGradients(b, group, k0, true, own)
			}
		})
		return
	}
	per := blocks(x.Keys, keyBlock)
	each(p, groups*per, elems, scratch, func(task int, own []float32) {
		g.keyGradients(task/per/x.Groups, task/per%x.Groups, task%per*keyBlock, false, own)
	})
	per = blocks(x.Queries, queryBlock)
	each(p, x.Batch*x.Heads*per, elems, scratch, func(task int, own []float32) {
		g.queryGradients(task/per/x.Heads, task/per%x.Heads, task%per*queryBlock, own)
	})
}

// backward is one computation of gradients.
type backward struct {
	Problem
	Gradients
	q, k, v      Rows
	logit, slope gemm.Order
}

// clearQueries begins the gradients of the queries of a group of heads.
func (g *backward) clearQueries(b, group int) {
	per := g.Heads / g.Groups
	for h := group * per; h < (group+1)*per; h++ {
		for i := range g.Queries {
			clear(g.DQ.at(b, h, i)[:g.Size])
		}
	}
}

// keyGradients computes those of a block of keys and values, and adds to those of queries what
// comes from it, if it is to.
func (g *backward) keyGradients(b, group, k0 int, queries bool, own []float32) {
	t := tile{b: b, g: group, k0: k0, k1: min(k0+keyBlock, g.Keys)}
	for i := t.k0; i < t.k1; i++ {
		clear(g.DK.at(b, group, i)[:g.Size])
		clear(g.DV.at(b, group, i)[:g.ValueSize])
	}
	per := g.Heads / g.Groups
	for t.h = group * per; t.h < (group+1)*per; t.h++ {
		for t.q0 = 0; t.q0 < g.Queries; t.q0 += queryBlock {
			t.q1 = min(t.q0+queryBlock, g.Queries)
			dropped, slopes, seen := g.tile(&t, own)
			if !seen {
				continue
			}
			g.addValues(dropped, &t)
			g.addKeys(slopes, &t)
			if queries {
				g.addQueries(slopes, &t)
			}
		}
	}
}

// queryGradients computes those of a block of queries.
func (g *backward) queryGradients(b, h, q0 int, own []float32) {
	t := tile{b: b, h: h, g: h / (g.Heads / g.Groups), q0: q0, q1: min(q0+queryBlock, g.Queries)}
	for i := t.q0; i < t.q1; i++ {
		clear(g.DQ.at(b, h, i)[:g.Size])
	}
	for t.k0 = 0; t.k0 < g.Keys; t.k0 += keyBlock {
		t.k1 = min(t.k0+keyBlock, g.Keys)
		if _, slopes, seen := g.tile(&t, own); seen {
			g.addQueries(slopes, &t)
		}
	}
}

// tile computes the weights of a tile, with what is dropped, and the gradients of its scaled
// products; seen is false if there are none.
func (g *backward) tile(t *tile, own []float32) (dropped, slopes []float32, seen bool) {
	sight := g.sees(t)
	if sight == none {
		return nil, nil, false
	}
	elems := t.rows() * t.keys()
	take := func() []float32 {
		piece := own[:elems]
		own = own[g.tileElems():]
		return piece
	}
	weights, slopes := take(), take()
	dropped = weights
	g.multiply(weights, g.q, g.k, t, g.logit)
	g.cap(weights)
	var capped []float32
	if g.Softcap > 0 {
		capped = take()
		vec.MulScalar(capped, weights, 1/g.Softcap)
	}
	if g.drops() {
		dropped = take()
	}
	gemm.Product{M: t.rows(), N: t.keys(), K: g.ValueSize, Alpha: 1, C: slopes, LDC: t.keys(),
		A:  gemm.Matrix{F32: g.DOut.at(t.b, t.h, t.q0), LD: g.DOut.Next},
		B:  gemm.Matrix{F32: g.v.at(t.b, t.g, t.k0), LD: g.v.Next, Trans: true},
		As: g.slope,
	}.Compute(nil)
	n := t.keys()
	for r := range t.rows() {
		lo, hi := r*n, (r+1)*n
		g.row(weights[lo:hi], dropped[lo:hi], slopes[lo:hi], t, sight, r)
	}
	if capped != nil {
		vec.TanhGrad(slopes, capped, slopes)
	}
	return dropped, slopes, true
}

// row makes weights of a row's logits, and the gradients of these of those of the weights.
func (g *backward) row(weights, dropped, slopes []float32, t *tile, seen sight, r int) {
	sum, delta := g.Sums.at(t.b, t.h, t.q0+r)[0], g.Delta.at(t.b, t.h, t.q0+r)[0]
	if sum == hidden {
		clear(weights)
	} else {
		vec.ExpSum(weights, weights, sum)
		if seen == some {
			g.hide(weights, t, t.q0+r, 0)
		}
	}
	if g.drops() {
		number := g.number(t.b, t.h, t.q0+r, t.k0)
		vec.Dropout(dropped, weights, g.Keep, g.Key, number)
		vec.Dropout(slopes, slopes, g.Keep, g.Key, number)
	}
	vec.MulShifted(slopes, slopes, weights, delta)
}

// addValues adds to the gradients of values.
func (g *backward) addValues(dropped []float32, t *tile) {
	add(t.ofKeys(g.DV), t.weights(dropped, true), t.ofQueries(g.DOut), g.ValueSize, 1)
}

// addKeys adds to the gradients of keys.
func (g *backward) addKeys(slopes []float32, t *tile) {
	add(t.ofKeys(g.DK), t.weights(slopes, true), t.ofQueries(g.q), g.Size, g.Scale)
}

// addQueries adds to the gradients of queries.
func (g *backward) addQueries(slopes []float32, t *tile) {
	add(t.ofQueries(g.DQ), t.weights(slopes, false), t.ofKeys(g.k), g.Size, g.Scale)
}

// block is the rows of a tile in an operand or a result, or the tile itself.
type block struct {
	gemm.Matrix
	rows int
}

func (t *tile) ofQueries(r Rows) block {
	return block{gemm.Matrix{F32: r.at(t.b, t.h, t.q0), LD: r.Next}, t.rows()}
}

func (t *tile) ofKeys(r Rows) block {
	return block{gemm.Matrix{F32: r.at(t.b, t.g, t.k0), LD: r.Next}, t.keys()}
}

// weights are a tile, or its transpose.
func (t *tile) weights(w []float32, trans bool) gemm.Matrix {
	return gemm.Matrix{F32: w, LD: t.keys(), Trans: trans}
}

// add adds to rows of n elements the scaled products of weights and other rows.
func add(to block, weights gemm.Matrix, from block, n int, scale float32) {
	gemm.Product{M: to.rows, N: n, K: from.rows, Alpha: scale, Beta: 1, A: weights, B: from.Matrix,
		C: to.F32, LDC: to.LD}.Compute(nil)
}
