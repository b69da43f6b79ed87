package workload

import (
	"math"
	"slices"
)

// SVG is a sufficient vector group of Orpheus (Xie et al. 2018, section 3.1): what an update of a
// matrix of n rows and columns is made of, Left[0]·Right[0]ᵀ + Left[1]·Right[1]ᵀ and on. That of
// gradient descent, a pair a sample, is a [distrib.Factored].
type SVG struct{ Left, Right [][]float64 }

// AddTo adds the update to a matrix: the paper's compute_update.
func (g SVG) AddTo(w []float64) {
	for k, left := range g.Left {
		n := len(left)
		for i, a := range left {
			row := w[i*n : (i+1)*n]
			for j, b := range g.Right[k] {
				row[j] += float64(a * b)
			}
		}
	}
}

// Secant is a form of quasi-Newton update: of W, which is close to the Hessian matrix by [BFGS],
// and to its inverse by [DFP].
type Secant string

// The forms of updates.
const (
	BFGS Secant = "bfgs"
	DFP  Secant = "dfp"
)

// ParseSecant is the form of a name; !ok if there is none.
func ParseSecant(name string) (f Secant, ok bool) {
	f = Secant(name)
	return f, f == BFGS || f == DFP
}

// Vectors are those of the update that has W meet the secant equation, W·s = y by BFGS and W·y = s
// by DFP, where a step s has changed the gradient by y: the paper's compute_svg. !ok if y·s is not
// well above zero, where W would not stay positive definite.
//
// BFGS: y ← y/√(y·s), v = W·s, v ← v/√(s·v), W += y·yᵀ − v·vᵀ. The paper's third step divides y
// again, by which W·s = y would not hold. DFP is that with s and y exchanged.
func (f Secant) Vectors(w, s, y []float64) (g SVG, ok bool) {
	ys := inner(y, s)
	if !(ys > 1e-10*math.Sqrt(float64(inner(s, s)*inner(y, y)))) {
		return g, false
	}
	to, by := y, s
	if f == DFP {
		to, by = s, y
	}
	v := times(w, by)
	to, v = scaledBy(to, 1/math.Sqrt(ys)), scaledBy(v, 1/math.Sqrt(inner(by, v)))
	return SVG{Left: [][]float64{to, scaledBy(v, -1)}, Right: [][]float64{to, v}}, true
}

// First is what W is before its first update, of n rows: y·y/(y·s) times the identity matrix, or
// its inverse (Nocedal and Wright, 2006, equation 6.20).
func (f Secant) First(s, y []float64) []float64 {
	x := inner(y, y) / inner(y, s)
	if f == DFP {
		x = inner(y, s) / inner(y, y)
	}
	n := len(s)
	w := make([]float64, n*n)
	for i := range n {
		w[i*n+i] = x
	}
	return w
}

// Direction is where W says that the minimum is, from where the gradient is g. !ok if W is not
// positive definite.
func (f Secant) Direction(w, g []float64) (p []float64, ok bool) {
	if f == DFP {
		p = scaledBy(times(w, g), -1)
	} else if p, ok = solve(w, scaledBy(g, -1)); !ok {
		return nil, false
	}
	return p, inner(p, g) < 0
}

func inner(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum
}

func scaledBy(x []float64, by float64) []float64 {
	y := slices.Clone(x)
	for i := range y {
		y[i] *= by
	}
	return y
}

// times is a square matrix times a vector.
func times(w, x []float64) []float64 {
	n := len(x)
	y := make([]float64, n)
	for i := range y {
		y[i] = inner(w[i*n:(i+1)*n], x)
	}
	return y
}

// solve is x of W·x = b by Cholesky's decomposition, where W is positive definite.
func solve(w, b []float64) ([]float64, bool) {
	n := len(b)
	l := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			rest := w[i*n+j] - inner(l[i*n:i*n+j], l[j*n:j*n+j])
			if i > j {
				l[i*n+j] = rest / l[j*n+j]
			} else if rest > 0 {
				l[i*n+i] = math.Sqrt(rest)
			} else {
				return nil, false
			}
		}
	}
	x := slices.Clone(b)
	for i := range x {
		x[i] = (x[i] - inner(l[i*n:i*n+i], x[:i])) / l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x[i] -= float64(l[k*n+i] * x[k])
		}
		x[i] /= l[i*n+i]
	}
	return x, true
}
