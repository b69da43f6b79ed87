package distrib

import (
	"math"
	"math/rand/v2"
)

// SVSelect sends C pairs of factors of an update that has more, and keeps the rest: what
// Orpheus selects by joint matrix column subset selection, made exact.
//
// C times one pair is drawn, with a probability proportional to the product of its two
// factors' squared lengths, and its directions are taken out of all others (Gram-Schmidt).
// Orpheus sends the original pairs; a sum over a full batch is far from a sum over those.
// Here the update's projection on the chosen directions is sent, in as many bytes: from
// a_i = sum_c q_c*m_ci + rest_i follows
//
//	sum_i a_i b_i' = sum_c q_c (sum_i m_ci b_i)' + sum_i rest_i b_i'
//
// whose first sum has C pairs, and whose second, with a rest of nothing for the chosen, has
// C fewer than the update. It is kept. The same goes for the b_i; of the two the one that
// keeps less is taken.
//
// New pairs come faster than C at a time leave, so what is kept gains rank. Above Pool
// pairs it is kept as a matrix, and of a matrix the C directions sent are those of one
// step of the power method, as of [PowerSGD].
type SVSelect struct {
	C    int    // pairs that are sent at a time, 25 if 0
	Pool int    // pairs that are kept, 16*C if 0
	Seed uint64 // of the draws

	shapes
}

// Split sends the projection.
func (f *SVSelect) Split(e *Entry, now Clock, _ Link) (send, keep Update) {
	c := f.C
	if c == 0 {
		c = 25
	}
	rng := rand.New(rand.NewPCG(f.Seed, drawOf(e, now)))
	switch u := plain(e.U).(type) {
	case Factored:
		if u.R <= c {
			return u, nil
		}
		send, rest := project(u, c, rng)
		return send, f.pool(rest, c)
	case Dense:
		if m, ok := f.matrix(e, u); ok && !outweighs(c, m.j, m.k) {
			q := normals(rng, c*m.k)
			return m.compress(q, c)
		}
	}
	return e.U, nil
}

// pool is what is kept, as a matrix if it has too many pairs.
func (f *SVSelect) pool(rest Factored, c int) Update {
	most := f.Pool
	if most == 0 {
		most = 16 * c
	}
	switch {
	case rest.R == 0:
		return nil
	case rest.R > most:
		return AsDense(rest)
	}
	return compact(rest)
}

// drawOf numbers a draw: an entry has another one at every clock.
func drawOf(e *Entry, now Clock) uint64 {
	h := mix(uint64(uint32(e.Ref.Param))<<32 | uint64(uint32(e.Ref.Row)))
	return mix(mix(h^uint64(uint32(e.Dest))) ^ uint64(now))
}

// mix is splitmix64's: each bit of x changes half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// project splits an update into at most c pairs and the rest.
func project(u Factored, c int, rng *rand.Rand) (send, rest Factored) {
	a, b := newBasis(u.A, u.R, u.J), newBasis(u.B, u.R, u.K)
	chosen := make([]bool, u.R)
	for range c {
		i := draw(a, b, chosen, rng)
		if i < 0 {
			break
		}
		chosen[i] = true
		a.take(i)
		b.take(i)
	}
	restA := Factored{J: u.J, K: u.K}
	restB := restA
	for i, gone := range chosen {
		if !gone && !a.none(i) {
			restA.append(a.row(i), u.b(i))
		}
		if !gone && !b.none(i) {
			restB.append(u.a(i), b.row(i))
		}
	}
	if restA.Norm() <= restB.Norm() {
		return Factored{a.c, u.J, u.K, a.q, a.combine(u.B, u.K)}, restA
	}
	return Factored{b.c, u.J, u.K, b.combine(u.A, u.J), b.q}, restB
}

// append adds a pair.
func (u *Factored) append(a, b []float32) {
	u.R, u.A, u.B = u.R+1, append(u.A, a...), append(u.B, b...)
}

// basis is what is left of vectors when the directions chosen so far are taken out.
type basis struct {
	n    int
	rest []float32   // a row of n for each vector
	q    []float32   // the directions, rows of n, of length 1
	m    [][]float32 // of each direction, how much of it was in each vector
	c    int
	len2 []float64 // squared lengths of rest
	was  []float64 // and of the vectors
}

func newBasis(x []float32, rows, n int) *basis {
	s := &basis{n: n, rest: append([]float32(nil), x...), len2: make([]float64, rows)}
	s.measure()
	s.was = append(s.was, s.len2...)
	return s
}

func (s *basis) row(i int) []float32 { return s.rest[i*s.n : (i+1)*s.n] }

func (s *basis) measure() {
	for i := range s.len2 {
		s.len2[i] = square(s.row(i))
	}
}

// none reports whether nothing but rounding is left of a vector.
func (s *basis) none(i int) bool { return s.len2[i] <= float64(s.was[i]*1e-12) }

// draw is a pair, -1 if nothing is left to choose from.
func draw(a, b *basis, chosen []bool, rng *rand.Rand) int {
	weights := make([]float64, len(chosen))
	var sum float64
	for i, gone := range chosen {
		if !gone && !a.none(i) && !b.none(i) {
			weights[i] = float64(a.len2[i] * b.len2[i])
		}
		sum += weights[i]
	}
	at, last := float64(rng.Float64()*sum), -1
	for i, w := range weights {
		if w > 0 {
			last = i
			if at -= w; at < 0 {
				break
			}
		}
	}
	return last
}

// take makes what is left of a vector a direction, and takes it out of all.
func (s *basis) take(i int) {
	q := append([]float32(nil), s.row(i)...)
	scale := float32(1 / math.Sqrt(s.len2[i]))
	for j := range q {
		q[j] = float32(q[j] * scale)
	}
	m := make([]float32, len(s.len2))
	for r := range m {
		m[r] = float32(dot(q, s.row(r)))
		subtract(s.row(r), m[r], q)
	}
	s.q, s.m, s.c = append(s.q, q...), append(s.m, m), s.c+1
	s.measure()
}

// subtract takes m times q out of x.
func subtract(x []float32, m float32, q []float32) {
	q = q[:len(x)]
	for i, v := range q {
		x[i] -= float32(m * v)
	}
}

// combine is for each direction the sum of the other factors, rows of n, by how much of it
// was in theirs.
func (s *basis) combine(other []float32, n int) []float32 {
	out := make([]float32, s.c*n)
	for c, m := range s.m {
		for i, v := range m {
			subtract(out[c*n:(c+1)*n], -v, other[i*n:(i+1)*n])
		}
	}
	return out
}

// normals are numbers of the normal distribution, near enough for a random direction:
// sums of four uniform ones, whose bits are the same everywhere.
func normals(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	draw := func() float32 { return float32(rng.Float32()) }
	for i := range out {
		out[i] = draw() + draw() - draw() - draw()
	}
	return out
}
