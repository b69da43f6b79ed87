package attention

import (
	"github.com/gomem/gomem/internal/kernel/gemm"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// Forward computes the rows of out from those of q, k and v, and sums, the logarithm of the sum
// of the exponentials of every row's logits, one element a row: −Inf for a query that sees no key,
// whose result is zeros. scratch has ScratchForward bytes.
func Forward(p *pool.Pool, x Problem, q, k, v, out, sums Rows, scratch []float32) {
	f := forward{Problem: x, q: q, k: k, v: v, out: out, sums: sums, logit: x.logits(),
		mix: x.mixes()}
	per := blocks(x.Queries, queryBlock)
	each(p, x.forwardTasks(), x.forwardElems(), scratch, func(task int, own []float32) {
		t := tile{b: task / per / x.Heads, h: task / per % x.Heads}
		t.g = t.h / (x.Heads / x.Groups)
		// The last queries of a causal mask see the most keys, and are begun first.
		t.q0 = (per - 1 - task%per) * queryBlock
		t.q1 = min(t.q0+queryBlock, x.Queries)
		f.block(&t, own)
	})
}

// forward is one computation of results.
type forward struct {
	Problem
	q, k, v, out, sums Rows
	logit, mix         gemm.Order
}

// block computes the results of a block of queries.
func (f *forward) block(t *tile, own []float32) {
	rows := t.rows()
	most, grown, sum := own[:rows], own[rows:2*rows], own[2*rows:3*rows]
	logits := own[3*rows:]
	for r := range rows {
		most[r], sum[r] = hidden, 0
		clear(f.out.at(t.b, t.h, t.q0+r)[:f.ValueSize])
	}
	for k0 := 0; k0 < f.Keys; k0 += keyBlock {
		t.k0, t.k1 = k0, min(k0+keyBlock, f.Keys)
		seen := f.sees(t)
		if seen == none {
			continue
		}
		f.multiply(logits, f.q, f.k, t, f.logit)
		f.cap(logits[:rows*t.keys()])
		f.exponentials(logits, t, seen, most, grown, sum)
		f.add(logits, t)
	}
	f.finish(t, most, sum)
}

// cap keeps logits between −c and c.
func (x *Problem) cap(logits []float32) {
	if x.Softcap > 0 {
		vec.MulScalar(logits, logits, 1/x.Softcap)
		vec.Tanh(logits, logits)
		vec.MulScalar(logits, logits, x.Softcap)
	}
}

// exponentials replaces logits by the exponentials of their distances from the largest so far,
// and scales what there is of results and sums to that.
func (f *forward) exponentials(logits []float32, t *tile, seen sight, most, grown, sum []float32) {
	n := t.keys()
	for r := range most {
		row := logits[r*n : (r+1)*n]
		if seen == some {
			f.hide(row, t, t.q0+r, hidden)
		}
		top := max(most[r], vec.MaxOf(row))
		if grown[r] = 0; top != most[r] {
			grown[r] = most[r] - top
		}
		most[r] = top
	}
	vec.Exp(grown, grown)
	for r, top := range most {
		row := logits[r*n : (r+1)*n]
		if top == hidden {
			clear(row)
			continue
		}
		if grown[r] != 1 {
			out := f.out.at(t.b, t.h, t.q0+r)[:f.ValueSize]
			vec.MulScalar(out, out, grown[r])
		}
		sum[r] = float32(sum[r]*grown[r]) + vec.ExpSum(row, row, top)
		if f.drops() {
			vec.Dropout(row, row, f.Keep, f.Key, f.number(t.b, t.h, t.q0+r, t.k0))
		}
	}
}

// add adds the products of a tile's weights and values to the results.
func (f *forward) add(weights []float32, t *tile) {
	gemm.Product{M: t.rows(), N: f.ValueSize, K: t.keys(), Alpha: 1, Beta: 1, As: f.mix,
		A: gemm.Matrix{F32: weights, LD: t.keys()},
		B: gemm.Matrix{F32: f.v.at(t.b, t.g, t.k0), LD: f.v.Next},
		C: f.out.at(t.b, t.h, t.q0), LDC: f.out.Next,
	}.Compute(nil)
}

// finish divides results by the sums of their weights.
func (f *forward) finish(t *tile, most, sum []float32) {
	for r, s := range sum {
		if most[r] != hidden {
			out := f.out.at(t.b, t.h, t.q0+r)[:f.ValueSize]
			vec.MulScalar(out, out, 1/s)
		}
	}
	vec.Log(sum, sum)
	for r, s := range sum {
		f.sums.at(t.b, t.h, t.q0+r)[0] = most[r] + s
	}
}
