package distrib

import (
	"cmp"
	"math"
	"math/rand/v2"
)

// PowerSGD sends an approximation of low rank and keeps the error (Vogels, Karimireddy and
// Jaggi, NeurIPS 2019): of an update M, and the Q of last time, P = orthogonal(M*Q),
// Q = M'*P, and P*Q' goes. Here every worker approximates its own update, while the paper
// averages P over workers in between. Updates that the factors do not make smaller, like
// biases, go as they are.
//
// What it keeps is the Qs, of as many updates at a time as there may be if parameters are
// sent in parts of [powerPart] bytes or more; where there are others, those that came first
// are forgotten, and begin anew.
type PowerSGD struct {
	Rank int    // 4 if 0
	Seed uint64 // of the first Q

	shapes
	last  map[entryOf][]float32
	order []entryOf // of last, in the order in which they came
	bytes int64     // of last
	most  int64
}

// powerPart is how many bytes of a parameter PowerSGD has a Q for, at least.
const powerPart = 4 << 20

// rank is how many pairs go.
func (f *PowerSGD) rank() int { return cmp.Or(f.Rank, 4) }

// Bind notes the parameters' shapes, and how much may be kept of them.
func (f *PowerSGD) Bind(v View, ps []*Param) error {
	f.most = 0
	for _, p := range ps {
		dense := 4 * int64(p.Rows) * int64(p.Cols)
		q := 4 * int64(f.rank()) * int64(p.Cols) * (1 + dense/powerPart)
		f.most += min(q, dense) * int64(max(1, len(v.Nodes)))
	}
	return f.shapes.Bind(v, ps)
}

// Kept is the bytes of the Qs, and the most that they may be.
func (f *PowerSGD) Kept() (now, most int64) { return f.bytes, f.most }

// keep remembers the Q of an update.
func (f *PowerSGD) keep(key entryOf, q []float32) {
	if f.last == nil {
		f.last = map[entryOf][]float32{}
	}
	if old, known := f.last[key]; known {
		f.bytes -= 4 * int64(len(old))
	} else {
		f.order = append(f.order, key)
	}
	f.last[key] = q
	f.bytes += 4 * int64(len(q))
	for f.bytes > f.most {
		f.bytes -= 4 * int64(len(f.last[f.order[0]]))
		delete(f.last, f.order[0])
		f.order = f.order[1:]
	}
}

// entryOf tells entries of the outbox apart.
type entryOf struct {
	ref  Ref
	dest NodeID
}

// Split sends an approximation of low rank.
func (f *PowerSGD) Split(e *Entry, now Clock, _ Link) (send, keep Update) {
	m, ok := f.matrix(e, plain(e.U))
	r := f.rank()
	if !ok || outweighs(r, m.j, m.k) {
		return e.U, nil
	}
	if u, ok := m.u.(Factored); ok && u.R <= r {
		return u, nil
	}
	key := entryOf{e.Ref, e.Dest}
	sent, keep := m.compress(f.start(f.last[key], m.k, r, drawOf(e, now)), r)
	f.keep(key, sent.B)
	return sent, keep
}

// start is the Q of last time, where it is not 0, as it is where the update had less rank;
// there, it is drawn.
func (f *PowerSGD) start(last []float32, k, r int, draw uint64) []float32 {
	q := normals(rand.New(rand.NewPCG(f.Seed, draw)), r*k)
	for c := range r {
		if row := c * k; len(last) == len(q) && !allZero(last[row:row+k]) {
			copy(q[row:], last[row:row+k])
		}
	}
	return q
}

// shapes knows how many columns parameters have.
type shapes struct{ cols []int }

// Bind notes the parameters' shapes.
func (s *shapes) Bind(_ View, ps []*Param) error {
	s.cols = s.cols[:0]
	for _, p := range ps {
		s.cols = append(s.cols, p.Cols)
	}
	return nil
}

// matrix is an update as what it is of rows and columns; !ok if nobody has told, or there
// is no update.
func (s *shapes) matrix(e *Entry, u Update) (m matrix, ok bool) {
	if _, cell := u.(Cell); cell || u == nil || int(e.Ref.Param) >= len(s.cols) {
		return m, false
	}
	k := s.cols[e.Ref.Param]
	if sparse, ok := u.(Sparse); ok {
		u = AsDense(sparse)
	}
	return matrix{u, Elements(u) / max(k, 1), k}, k > 0
}

// matrix is a Dense or Factored update of j rows of k elements.
type matrix struct {
	u    Update
	j, k int
}

// compress splits a matrix by one step of the power method from q, r rows of k.
func (m matrix) compress(q []float32, r int) (sent Factored, keep Update) {
	p := m.right(q, r)
	orthogonal(p, r, m.j)
	sent = Factored{R: r, J: m.j, K: m.k, A: p, B: m.left(p, r)}
	minus := sent
	minus.A = make([]float32, len(p))
	subtract(minus.A, 1, p)
	return sent, Add(m.u, minus)
}

// right is M times each row of q, as r rows of j.
func (m matrix) right(q []float32, r int) []float32 {
	if u, ok := m.u.(Factored); ok {
		return through(u.B, u.K, u.A, u.J, u.R, q, r)
	}
	x, out := m.u.(Dense), make([]float32, r*m.j)
	for i := range m.j {
		row := x[i*m.k : (i+1)*m.k]
		for c := range r {
			out[c*m.j+i] = float32(dot(row, q[c*m.k:(c+1)*m.k]))
		}
	}
	return out
}

// left is each row of p times M, as r rows of k.
func (m matrix) left(p []float32, r int) []float32 {
	if u, ok := m.u.(Factored); ok {
		return through(u.A, u.J, u.B, u.K, u.R, p, r)
	}
	x, out := m.u.(Dense), make([]float32, r*m.k)
	for i := range m.j {
		row := x[i*m.k : (i+1)*m.k]
		for c := range r {
			subtract(out[c*m.k:(c+1)*m.k], -p[c*m.j+i], row)
		}
	}
	return out
}

// through is, of each row of x, the sum of the rows of to by its products with those of
// from: a product with factors that makes no matrix.
func through(from []float32, n int, to []float32, m, rank int, x []float32, r int) []float32 {
	out := make([]float32, r*m)
	for c := range r {
		for i := range rank {
			by := float32(dot(from[i*n:(i+1)*n], x[c*n:(c+1)*n]))
			subtract(out[c*m:(c+1)*m], -by, to[i*m:(i+1)*m])
		}
	}
	return out
}

// orthogonal makes r rows of n so, of length 1, each in turn; what is next to nothing, of
// a matrix of less rank, becomes 0.
func orthogonal(p []float32, r, n int) {
	for c := range r {
		row := p[c*n : (c+1)*n]
		was := square(row)
		for range 2 { // twice is enough (Kahan and Parlett)
			for b := range c {
				other := p[b*n : (b+1)*n]
				subtract(row, float32(dot(row, other)), other)
			}
		}
		scale := float32(0)
		if now := square(row); now > float64(was*1e-12) {
			scale = float32(1 / math.Sqrt(now))
		}
		for i, v := range row {
			row[i] = float32(v * scale)
		}
	}
}
