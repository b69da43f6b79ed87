package ops

import (
	"math"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/kernel/vec"
)

// factors is a parameter seen as [a p b q c], p and q being the factored axes.
// Its rows, [a p b], have q·c contiguous elements; row statistics are [a p b c],
// column statistics [a b q c].
type factors struct{ a, p, b, q, c int }

func newFactors(t tensor.Type, p, q int) factors {
	s := t.Sizes()
	product := func(sizes []int) int {
		n := 1
		for _, k := range sizes {
			n *= k
		}
		return n
	}
	return factors{product(s[:p]), s[p], product(s[p+1 : q]), s[q], product(s[q+1:])}
}

// blockRows and blockCols bound the part of a matrix whose squares one piece of
// work adds up: its sums of columns stay in the first-level cache, and the
// partial sums are well below a hundredth of the parameter.
const (
	blockRows = 512
	blockCols = 512
)

func (f factors) rows() int { return f.a * f.p * f.b }

func (f factors) width() int { return f.q * f.c }

func (f factors) rowStats() int { return f.rows() * f.c }

func (f factors) colStats() int { return f.a * f.b * f.width() }

func (f factors) rowBlocks() int { return (f.p + blockRows - 1) / blockRows }

// blockQ is the number of q in a block of columns.
func (f factors) blockQ() int { return max(1, blockCols/f.c) }

func (f factors) colBlocks() int { return (f.q + f.blockQ() - 1) / f.blockQ() }

// scratch is the number of floats of workspace: partial row and column
// statistics, and two sums per row.
func (f factors) scratch() int {
	return f.rowStats()*f.colBlocks() + f.colStats()*f.rowBlocks() + 2*f.rows()
}

// factored makes three passes over the gradient: its squares' sums, the
// updates' root mean square, the updates.
func (o adafactor) factored(c *kernel.Call, f factors, lr, decay float32) {
	w, vr, vc, g := c.In[0].F32(), c.In[1].F32(), c.In[2].F32(), c.In[3].F32()
	rest := floats(c.Scratch)
	take := func(n int) (part []float32) {
		part, rest = rest[:n:n], rest[n:]
		return part
	}
	rows, cols := take(f.rowStats()*f.colBlocks()), take(f.colStats()*f.rowBlocks())
	updates, weights := take(f.rows()), take(f.rows())
	f.squares(c, g, rows, cols)
	o.moments(c, vr, rows, f.q, decay)
	o.moments(c, vc, cols, f.p, decay)
	rows, cols = rows[:f.rowStats()], cols[:f.colStats()]
	f.rowFactors(c, rows, vr)
	c.Pool.For(len(cols), grain, func(lo, hi int) { vec.Rsqrt(cols[lo:hi], vc[lo:hi]) })
	f.eachRow(c, cols, func(i, at int, col, buf []float32) {
		row := at + f.width()
		updates[i] = f.updateSquares(g[at:row], f.factorsOf(rows, i), col, buf)
		weights[i] = vec.SumSquares(w[at:row])
	})
	rate := o.rate(lr, updates, weights, len(w))
	f.eachRow(c, cols, func(i, at int, col, buf []float32) {
		row := at + f.width()
		f.step(w[at:row], g[at:row], f.factorsOf(rows, i), col, buf, rate)
	})
}

// squares adds up the squares of g by row and by column, block by block: part i
// of rows is the sums over the i-th block of columns, and the other way round.
func (f factors) squares(c *kernel.Call, g, rows, cols []float32) {
	parts := f.a * f.b * f.rowBlocks() * f.colBlocks()
	each := min(f.p, blockRows) * min(f.width(), f.blockQ()*f.c)
	c.Pool.For(parts, max(1, grain/each), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			blockQ := i % f.colBlocks()
			rest := i / f.colBlocks()
			f.squaresOf(g, rows[blockQ*f.rowStats():], cols[rest%f.rowBlocks()*f.colStats():],
				rest/f.rowBlocks(), rest%f.rowBlocks(), blockQ)
		}
	})
}

// squaresOf does one block of matrix number ab of the a·b matrices.
func (f factors) squaresOf(g, rows, cols []float32, ab, blockP, blockQ int) {
	from := blockQ * f.blockQ() * f.c
	to := min(f.width(), from+f.blockQ()*f.c)
	col := cols[ab*f.width()+from : ab*f.width()+to]
	clear(col)
	for p := blockP * blockRows; p < min(f.p, (blockP+1)*blockRows); p++ {
		row := (ab/f.b*f.p+p)*f.b + ab%f.b
		x := g[row*f.width()+from : row*f.width()+to]
		vec.Fma(col, x, x, col)
		sums := f.factorsOf(rows, row)
		if f.c == 1 {
			sums[0] = vec.SumSquares(x)
			continue
		}
		clear(sums)
		for i, v := range x {
			sums[i%f.c] += float32(v * v)
		}
	}
}

// factorsOf is the part of row statistics that belongs to a row.
func (f factors) factorsOf(rows []float32, row int) []float32 {
	return rows[row*f.c : (row+1)*f.c]
}

// moments folds the parts of sums over n elements into moving averages, v.
func (o adafactor) moments(c *kernel.Call, v, parts []float32, n int, decay float32) {
	mix := (1 - decay) / float32(n)
	c.Pool.For(len(v), grain, func(lo, hi int) {
		sum := parts[lo:hi]
		for at := len(v); at < len(parts); at += len(v) {
			vec.Add(sum, sum, parts[at+lo:at+hi])
		}
		vec.MulScalar(v[lo:hi], v[lo:hi], decay)
		vec.AddScalar(v[lo:hi], v[lo:hi], (1-decay)*o.Eps1)
		vec.Axpy(v[lo:hi], mix, sum)
	})
}

// rowFactors sets each row's factors to √(mean/v), mean being that of v over p.
func (f factors) rowFactors(c *kernel.Call, rows, v []float32) {
	n := f.b * f.c // distance between neighbours along p
	c.Pool.For(f.a*n, max(1, grain/f.p), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			first := i/n*n*f.p + i%n
			sum := total(v[first:], f.p, n)
			for p := range f.p {
				rows[first+p*n] = float32(math.Sqrt(sum / float64(f.p) / float64(v[first+p*n])))
			}
		}
	})
}

// eachRow calls do in parallel for each row: its number, where its elements
// begin, the column factors of its matrix, and a buffer of span elements.
func (f factors) eachRow(c *kernel.Call, cols []float32, do func(i, at int, col, buf []float32)) {
	c.Pool.For(f.rows(), max(1, grain/f.width()), func(lo, hi int) {
		buf := make([]float32, span)
		for i := lo; i < hi; i++ {
			ab := i/(f.p*f.b)*f.b + i%f.b
			do(i, i*f.width(), cols[ab*f.width():(ab+1)*f.width()], buf)
		}
	})
}

// update sets u to the updates of part of a row that begins at its element at.
func (f factors) update(u, g, row, col []float32, at int) {
	vec.Mul(u, g, col)
	if f.c == 1 {
		vec.MulScalar(u, u, row[0])
		return
	}
	for i := range u {
		u[i] *= row[(at+i)%f.c]
	}
}

// updateSquares is the sum of the squares of a row's updates.
func (f factors) updateSquares(g, row, col, buf []float32) float32 {
	sum := 0.0
	for at := 0; at < len(g); at += span {
		u := buf[:min(span, len(g)-at)]
		f.update(u, g[at:], row, col[at:], at)
		sum += float64(vec.SumSquares(u))
	}
	return float32(sum)
}

// step subtracts a row's updates, times rate.
func (f factors) step(w, g, row, col, buf []float32, rate float32) {
	for at := 0; at < len(g); at += span {
		u := buf[:min(span, len(g)-at)]
		f.update(u, g[at:], row, col[at:], at)
		vec.Axpy(w[at:at+len(u)], -rate, u)
	}
}
