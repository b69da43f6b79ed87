package distrib

import (
	"fmt"
	"math"
	"slices"
)

// The forms of an update. A nil [Update] is nothing at all: what a filter sends that
// keeps everything, and the other way round.
type (
	// Dense is one number for every element of the rows.
	Dense []float32

	// Sparse is a number for some of N elements: Val[i] for element Idx[i], which ascend.
	Sparse struct {
		N   int
		Idx []uint32
		Val []float32
	}

	// Factored is the sum over r of the outer products of row r of A, of J elements, and
	// row r of B, of K: the R sufficient factors of a weight of J x K.
	Factored struct {
		R, J, K int
		A, B    []float32
	}

	// Half is an update whose numbers have been rounded to 16 bits, and that takes two
	// bytes a number on the wire. [RoundTo] makes it; what is received is the update in it.
	Half struct {
		Update
		As DType
	}
)

// AddTo adds scale*u to dst, which has as many elements. cols does not matter.
func (u Dense) AddTo(dst []float32, cols int, scale float32) {
	dst = dst[:len(u)]
	if scale == 1 {
		for i, v := range u {
			dst[i] += v
		}
		return
	}
	for i, v := range u {
		dst[i] += float32(scale * v)
	}
}

// Norm is the Euclidean norm.
func (u Dense) Norm() float64 { return math.Sqrt(square(u)) }

// AddTo adds scale*u to dst, which has N elements. cols does not matter.
func (u Sparse) AddTo(dst []float32, cols int, scale float32) {
	dst = dst[:u.N]
	for i, at := range u.Idx {
		dst[at] += float32(scale * u.Val[i])
	}
}

// Norm is the Euclidean norm.
func (u Sparse) Norm() float64 { return math.Sqrt(square(u.Val)) }

// block is how many columns of the factors B are used at a time: R rows of them stay in
// a cache while all J rows of dst are passed over.
const block = 512

// AddTo adds scale times the sum of the products to dst, J rows of cols == K elements.
// Every element gets its R terms one after the other, whatever the blocks.
func (u Factored) AddTo(dst []float32, cols int, scale float32) {
	if cols != u.K {
		panic(fmt.Sprintf("distrib: factors of %d x %d added to rows of %d", u.J, u.K, cols))
	}
	for from := 0; from < u.K; from += block {
		to := min(from+block, u.K)
		for j := range u.J {
			u.addRow(dst[j*cols+from:j*cols+to], j, from, scale)
		}
	}
}

// addRow adds a piece of row j, from column from on: four terms for every element that is
// loaded and stored, in the order of the sum.
func (u Factored) addRow(dst []float32, j, from int, scale float32) {
	r, n := 0, len(dst)
	for ; r+4 <= u.R; r += 4 {
		a0, b0 := u.pair(r, j, from, n, scale)
		a1, b1 := u.pair(r+1, j, from, n, scale)
		a2, b2 := u.pair(r+2, j, from, n, scale)
		a3, b3 := u.pair(r+3, j, from, n, scale)
		b0, b1, b2, b3 = b0[:n], b1[:n], b2[:n], b3[:n]
		for k, d := range dst {
			d += float32(a0 * b0[k])
			d += float32(a1 * b1[k])
			d += float32(a2 * b2[k])
			dst[k] = d + float32(a3*b3[k])
		}
	}
	for ; r < u.R; r++ {
		a, b := u.pair(r, j, from, n, scale)
		for k, v := range b {
			dst[k] += float32(a * v)
		}
	}
}

// pair is row j's part of pair r.
func (u Factored) pair(r, j, from, n int, scale float32) (a float32, b []float32) {
	return float32(scale * u.A[r*u.J+j]), u.B[r*u.K+from:][:n]
}

// Norm is the Euclidean norm of the matrix, by the products of its factors with each
// other: R*R*(J+K)/2 multiplications, and no matrix.
func (u Factored) Norm() float64 {
	var sum float64
	for r := range u.R {
		for s := range r + 1 {
			p := float64(dot(u.a(r), u.a(s)) * dot(u.b(r), u.b(s)))
			if s < r {
				p *= 2
			}
			sum += p
		}
	}
	return math.Sqrt(max(sum, 0))
}

func (u Factored) a(r int) []float32 { return u.A[r*u.J : (r+1)*u.J] }
func (u Factored) b(r int) []float32 { return u.B[r*u.K : (r+1)*u.K] }

// dot is a product in double precision, in order, each term rounded.
func dot(x, y []float32) float64 {
	var sum float64
	for i, v := range x {
		sum += float64(float64(v) * float64(y[i]))
	}
	return sum
}

func square(x []float32) float64 { return dot(x, x) }

// Add is the sum of two updates of the same rows, neither of which changes. Dense absorbs
// all; Sparse and Sparse stay so until more than half the elements are there; Factored
// and Factored until the matrix is smaller than the factors.
func Add(a, b Update) Update { return add(a, b, false) }

// AddOwned is [Add] where the memory of a is the caller's, and a is not used again: the
// sum may be made in it. What Add or AddOwned made of two updates is such an a, what was
// pushed, sent or kept by a filter is not.
func AddOwned(a, b Update) Update { return add(a, b, true) }

func add(a, b Update, owned bool) Update {
	a, b = plain(a), plain(b)
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	mustMatch(a, b)
	switch x := a.(type) {
	case Cell:
		return x.Plus(b, owned)
	case Sparse:
		if y, ok := b.(Sparse); ok {
			return merge(x, y)
		}
	case Factored:
		if y, ok := b.(Factored); ok && !outweighs(x.R+y.R, x.J, x.K) {
			return concat(x, y, owned)
		}
	}
	return addDense(a, b, owned)
}

func addDense(a, b Update, owned bool) Update {
	d, ok := a.(Dense)
	if !ok {
		if _, other := b.(Dense); other {
			a, b = b, a // a sum has the same bits either way
		}
	}
	if !ok || !owned {
		d = AsDense(a)
	}
	b.AddTo(d, columns(b), 1)
	return d
}

// merge adds sparse updates; of two numbers for one element the sum is kept.
func merge(a, b Sparse) Update {
	out := Sparse{N: a.N, Idx: make([]uint32, 0, len(a.Idx)+len(b.Idx))}
	out.Val = make([]float32, 0, cap(out.Idx))
	for i, j := 0, 0; i < len(a.Idx) || j < len(b.Idx); {
		var at uint32
		var v float32
		inA := j == len(b.Idx) || i < len(a.Idx) && a.Idx[i] <= b.Idx[j]
		inB := i == len(a.Idx) || j < len(b.Idx) && b.Idx[j] <= a.Idx[i]
		if inA {
			at, v = a.Idx[i], a.Val[i]
			i++
		}
		if inB {
			at, v = b.Idx[j], v+b.Val[j]
			j++
		}
		out.Idx, out.Val = append(out.Idx, at), append(out.Val, v)
	}
	if 2*len(out.Idx) > out.N {
		return AsDense(out)
	}
	return out
}

// outweighs reports whether r pairs of factors have more numbers than the matrix.
func outweighs(r, j, k int) bool { return r*(j+k) > j*k }

func concat(a, b Factored, owned bool) Factored {
	if !owned {
		a.A, a.B = slices.Clip(a.A), slices.Clip(a.B)
	}
	a.A, a.B = append(a.A, b.A...), append(a.B, b.B...)
	a.R += b.R
	return a
}

// AsDense is a copy of an update as Dense.
func AsDense(u Update) Dense {
	d := make(Dense, Elements(u))
	u.AddTo(d, columns(u), 1)
	return d
}

// Elements is how many elements the rows of an update have.
func Elements(u Update) int {
	switch u := plain(u).(type) {
	case Dense:
		return len(u)
	case Sparse:
		return u.N
	case Factored:
		return u.J * u.K
	case Cell:
		return u.Elements()
	}
	return 0
}

// Bytes is how much memory an update holds.
func Bytes(u Update) int {
	switch u := plain(u).(type) {
	case Dense:
		return 4 * len(u)
	case Sparse:
		return 8 * len(u.Idx)
	case Factored:
		return 4 * (len(u.A) + len(u.B))
	case Cell:
		return u.Bytes()
	}
	return 0
}

// Slice is the part of an update of rows of cols elements that is about rows
// [row, row+n) of its own: nil if it is about none of them. It may share the update's
// memory.
func Slice(u Update, cols, row, n int) Update {
	switch u := u.(type) {
	case Half:
		if part := Slice(u.Update, cols, row, n); part != nil {
			return Half{part, u.As}
		}
	case Dense:
		return u[row*cols : (row+n)*cols : (row+n)*cols]
	case Sparse:
		return u.slice(row*cols, n*cols)
	case Factored:
		return u.slice(row, n)
	}
	return nil
}

func (u Sparse) slice(from, n int) Update {
	lo, _ := slices.BinarySearch(u.Idx, uint32(from))
	hi, _ := slices.BinarySearch(u.Idx, uint32(from+n))
	if lo == hi {
		return nil
	}
	idx := slices.Clone(u.Idx[lo:hi])
	for i := range idx {
		idx[i] -= uint32(from)
	}
	return Sparse{N: n, Idx: idx, Val: u.Val[lo:hi:hi]}
}

func (u Factored) slice(row, n int) Update {
	if n == u.J {
		return u
	}
	a := make([]float32, 0, u.R*n)
	for r := range u.R {
		a = append(a, u.a(r)[row:row+n]...)
	}
	return compact(Factored{R: u.R, J: n, K: u.K, A: a, B: u.B})
}

// compact is the smaller of the factors and their matrix.
func compact(u Factored) Update {
	if outweighs(u.R, u.J, u.K) {
		return AsDense(u)
	}
	return u
}

// plain is the update in a Half.
func plain(u Update) Update {
	if h, ok := u.(Half); ok {
		return h.Update
	}
	return u
}

// columns is how long rows are that AddTo takes.
func columns(u Update) int {
	if f, ok := plain(u).(Factored); ok {
		return f.K
	}
	return Elements(u)
}

func mustMatch(a, b Update) {
	if Elements(a) != Elements(b) {
		panic(fmt.Sprintf("distrib: updates of %d and %d elements do not add up",
			Elements(a), Elements(b)))
	}
}

// ShapeError says that an update does not fit the rows that it is pushed for.
type ShapeError struct {
	Rows, Cols int
	What       string // "a dense update of 12 elements"
}

// Error is one line.
func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s does not fit %d rows of %d", e.What, e.Rows, e.Cols)
}

// Check reports whether an update of numbers is well formed and fits so many rows of cols elements.
// The error is a *[ShapeError].
func Check(u Update, rows, cols int) error {
	if what := misfit(u, rows, cols); what != "" {
		return &ShapeError{rows, cols, what}
	}
	return nil
}

func misfit(u Update, rows, cols int) string {
	switch u := u.(type) {
	case nil:
		return "no update"
	case Half:
		if !u.As.half() {
			return fmt.Sprintf("an update rounded to %v", u.As)
		}
		return misfit(u.Update, rows, cols)
	case Dense:
		if len(u) != rows*cols {
			return fmt.Sprintf("a dense update of %d elements", len(u))
		}
	case Sparse:
		return u.misfit(rows * cols)
	case Factored:
		if u.J != rows || u.K != cols || len(u.A) != u.R*u.J || len(u.B) != u.R*u.K {
			return fmt.Sprintf("an update of %d factors of %d and %d with %d and %d numbers",
				u.R, u.J, u.K, len(u.A), len(u.B))
		}
	default:
		return fmt.Sprintf("an update of type %T", u)
	}
	return ""
}

func (u Sparse) misfit(n int) string {
	if u.N != n {
		return fmt.Sprintf("a sparse update of %d elements", u.N)
	}
	if len(u.Idx) != len(u.Val) {
		return fmt.Sprintf("a sparse update of %d indices and %d values", len(u.Idx), len(u.Val))
	}
	return ascending(u.Idx, n)
}

// ascending says what is wrong with places among n.
func ascending(idx []uint32, n int) string {
	for i, at := range idx {
		if int64(at) >= int64(n) {
			return fmt.Sprintf("a sparse update of element %d", at)
		}
		if i > 0 && at <= idx[i-1] {
			return "a sparse update whose indices do not ascend"
		}
	}
	return ""
}
