package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// convex is a quadratic ½x·A·x − b·x of n numbers: its matrix is positive definite.
func convex(n int, seed uint64) (a, b []float64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := make([]float64, n*n)
	for i := range m {
		m[i] = rng.NormFloat64()
	}
	a = make([]float64, n*n)
	for i := range n {
		for j := range n {
			a[i*n+j] = inner(m[i*n:(i+1)*n], m[j*n:(j+1)*n]) / float64(n)
		}
		a[i*n+i]++
		b = append(b, rng.NormFloat64())
	}
	return a, b
}

// slopeAt is the gradient.
func slopeAt(a, b, x []float64) []float64 {
	g := times(a, x)
	for i := range g {
		g[i] -= b[i]
	}
	return g
}

// TestSecantEquation: after an update W·s = y by BFGS and W·y = s by DFP; W is symmetric, and
// positive definite. A pair whose curvature is not positive is refused.
func TestSecantEquation(t *testing.T) {
	for _, form := range []Secant{BFGS, DFP} {
		const n = 9
		a, _ := convex(n, 7)
		rng := rand.New(rand.NewPCG(3, 4))
		var w []float64
		for range 30 {
			s := make([]float64, n)
			for i := range s {
				s[i] = rng.NormFloat64()
			}
			y := times(a, s)
			if w == nil {
				w = form.First(s, y)
			}
			g, ok := form.Vectors(w, s, y)
			if !ok {
				t.Fatal("a pair of a convex function is refused")
			}
			g.AddTo(w)
			from, to := s, y
			if form == DFP {
				from, to = y, s
			}
			for i, x := range times(w, from) {
				if math.Abs(x-to[i]) > 1e-9 {
					t.Fatalf("%s: %g, want %g", form, x, to[i])
				}
			}
			for i := range n {
				for j := range n {
					if math.Abs(w[i*n+j]-w[j*n+i]) > 1e-9 {
						t.Fatalf("%s: W is not symmetric", form)
					}
				}
			}
			if _, ok := solve(w, s); !ok {
				t.Fatalf("%s: W is not positive definite", form)
			}
			if _, ok := form.Vectors(w, s, scaledBy(y, -1)); ok {
				t.Fatal("a pair of negative curvature is taken")
			}
		}
	}
}

// TestQuadraticEnds: with exact line searches the minimum of a convex quadratic of n numbers is
// reached in at most n steps, by both forms.
func TestQuadraticEnds(t *testing.T) {
	for _, form := range []Secant{BFGS, DFP} {
		for n := 1; n < 12; n++ {
			a, b := convex(n, uint64(n))
			x := make([]float64, n)
			g, start := slopeAt(a, b, x), math.Sqrt(inner(b, b))
			p := scaledBy(g, -1)
			var w []float64
			steps := 0
			for ; math.Sqrt(inner(g, g)) > 1e-8*start; steps++ {
				if steps == n {
					t.Errorf("%s: %d steps of %d numbers leave %g", form, steps, n, inner(g, g))
					break
				}
				s := scaledBy(p, -inner(g, p)/inner(p, times(a, p)))
				for i := range x {
					x[i] += s[i]
				}
				after := slopeAt(a, b, x)
				y := slices.Clone(after)
				for i := range y {
					y[i] -= g[i]
				}
				if g = after; w == nil {
					w = form.First(s, y)
				}
				if v, ok := form.Vectors(w, s, y); ok {
					v.AddTo(w)
				}
				var ok bool
				if p, ok = form.Direction(w, g); !ok && inner(g, g) > 1e-16 {
					t.Fatalf("%s: no direction", form)
				}
			}
		}
	}
}

// TestDescent: the search finds the minimum of a function that is no quadratic, Rosenbrock's, from
// where plain descent is lost. DFP is known to need far more steps where line searches are inexact.
func TestDescent(t *testing.T) {
	for form, trials := range map[Secant]int{BFGS: 100, DFP: 10000} {
		d := descent{form: form, trial: []float64{-1.2, 1}}
		for range trials {
			x, y := d.trial[0], d.trial[1]
			d.told((1-x)*(1-x)+100*(y-x*x)*(y-x*x),
				[]float64{-2*(1-x) - 400*x*(y-x*x), 200 * (y - x*x)})
		}
		if math.Abs(d.at[0]-1) > 0.05 || math.Abs(d.at[1]-1) > 0.05 {
			t.Errorf("%s: %v, want 1 and 1", form, d.at)
		}
	}
}
