package strads

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// apart has n workers do their parts, with a group of messages between them.
func apart(n int, part func(g *collective.Group) error) error {
	return errors.Join(collective.Together(memnet.New(n, memnet.Options{}), collective.Options{},
		part)...)
}

// together runs workers, and returns the coefficients of the first and what it said; all have the
// same.
func together(t testing.TB, n int, p *Problem, o Options, stop Stop) ([]float64, []Progress) {
	t.Helper()
	b, seen, parts := make([][]float64, n), make([][]Progress, n), divided(t, p, n)
	err := apart(n, func(g *collective.Group) error {
		i := g.Rank()
		b[i] = make([]float64, p.X.cols)
		w := &Worker{Problem: *parts[i], Group: g, Options: o, Stop: stop,
			After: func(_ context.Context, x Progress) error {
				seen[i] = append(seen[i], x)
				return nil
			}}
		return w.Run(t.Context(), &Point{B: b[i]})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		if !slices.Equal(b[i], b[0]) || !slices.Equal(seen[i], seen[0]) {
			t.Fatalf("worker %d of %d has other coefficients than the first, or saw others", i, n)
		}
	}
	return b[0], seen[0]
}

// divided are the samples of n workers, each n-th its own.
func divided(t testing.TB, p *Problem, n int) (parts []*Problem) {
	for w := range n {
		var y []float64
		var rows []int
		for i := w; i < len(p.Y); i += n {
			y, rows = append(y, p.Y[i]), append(rows, i)
		}
		var x []float64
		for j := range p.X.cols {
			for _, i := range rows {
				x = append(x, p.X.at(i, int32(j)))
			}
		}
		d, err := Dense(len(rows), p.X.cols, x)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, &Problem{X: d, Y: y, Loss: p.Loss, L1: p.L1})
	}
	return parts
}

// at is an element, by another way than columns are read.
func (d *Design) at(i int, j int32) float64 {
	if d.dense != nil {
		return d.dense[int(j)*d.rows+i]
	}
	row, value := d.entries(j)
	if k, ok := slices.BinarySearch(row, int32(i)); ok {
		return value[k]
	}
	return 0
}

// random is a problem of independent columns whose truth has some coefficients. correlated has
// each column be its neighbour in part.
func random(seed uint64, rows, cols, nonzero int, correlated float64, loss Loss) *Problem {
	rng := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, rows*cols)
	for i := range x {
		x[i] = rng.NormFloat64()
		if i >= rows {
			x[i] = correlated*x[i-rows] + math.Sqrt(1-correlated*correlated)*x[i]
		}
	}
	d, err := Dense(rows, cols, x)
	if err != nil {
		panic(err)
	}
	y := make([]float64, rows)
	for k := range nonzero {
		d.add(int32(k*cols/nonzero), float64(1+k%3)*float64(1-2*(k%2)), y)
	}
	for i := range y {
		y[i] += 0.5 * rng.NormFloat64()
		if loss == Logistic {
			y[i] = map[bool]float64{true: 1}[y[i] > 0]
		}
	}
	p := &Problem{X: d, Y: y, Loss: loss}
	p.L1 = 0.1 * p.most()
	return p
}

// most is the least L1 at which all coefficients are 0.
func (p *Problem) most() (most float64) {
	slope := make([]float64, len(p.Y))
	for i, y := range p.Y {
		slope[i] = p.Loss.Slope(y, 0)
	}
	for j := range p.X.cols {
		most = max(most, math.Abs(p.X.dot(int32(j), slope)))
	}
	return most
}

// sparse is the same problem with a design that knows its zeros.
func (p *Problem) sparse(t testing.TB) *Problem {
	start, row, value := []int{0}, []int32{}, []float64{}
	for j := range p.X.cols {
		for i := range p.X.rows {
			if v := p.X.at(i, int32(j)); v != 0 {
				row, value = append(row, int32(i)), append(value, v)
			}
		}
		start = append(start, len(row))
	}
	d, err := Sparse(p.X.rows, start, row, value)
	if err != nil {
		t.Fatal(err)
	}
	return &Problem{X: d, Y: p.Y, Loss: p.Loss, L1: p.L1}
}

// objective is what coefficients cost, row by row.
func (p *Problem) objective(b []float64) (sum float64) {
	for i, y := range p.Y {
		sum += p.Loss.value(y, p.prediction(i, b))
	}
	for _, v := range b {
		sum += p.L1 * math.Abs(v)
	}
	return sum
}

func (p *Problem) prediction(i int, b []float64) (z float64) {
	for j, v := range b {
		if v != 0 {
			z += v * p.X.at(i, int32(j))
		}
	}
	return z
}

// violation is by how much coefficients miss the conditions that only the best ones meet (Karush,
// Kuhn, Tucker), as a part of L1.
func (p *Problem) violation(b []float64) (worst float64) {
	slope := make([]float64, len(p.Y))
	for i, y := range p.Y {
		slope[i] = p.Loss.Slope(y, p.prediction(i, b))
	}
	for j, v := range b {
		g := 0.0
		for i, s := range slope {
			g += s * p.X.at(i, int32(j))
		}
		switch {
		case v > 0:
			worst = max(worst, math.Abs(g+p.L1))
		case v < 0:
			worst = max(worst, math.Abs(g-p.L1))
		default:
			worst = max(worst, math.Abs(g)-p.L1)
		}
	}
	return worst / p.L1
}

// TestOptimum: whoever solves a problem, and by whatever schedule that checks, comes to
// coefficients that meet the conditions of the best ones, and the gap says how far they are.
func TestOptimum(t *testing.T) {
	for _, c := range []struct {
		name       string
		correlated float64
		loss       Loss
	}{{"squares", 0, Squares}, {"correlated", 0.9, Squares}, {"logistic", 0.5, Logistic}} {
		p := random(7, 60, 120, 8, c.correlated, c.loss)
		stop := Stop{Epochs: 3000, Gap: 1e-11}
		best := make([]float64, p.X.cols)
		var seen []Progress
		if err := p.Solve(&Point{B: best}, stop, func(x Progress) error {
			seen = append(seen, x)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p.check(t, c.name+", alone", best, seen)
		same := make([]float64, p.X.cols)
		no := func(Progress) error { return nil }
		if err := p.sparse(t).Solve(&Point{B: same}, stop, no); err != nil {
			t.Fatal(err)
		}
		near(t, c.name+", sparse", same, best, 1e-5)
		for _, o := range []Options{{}, {Uniform: true}, {Policy: Independent},
			{Candidates: 9, Kappa: 0.01, Seed: 3}} {
			for _, n := range []int{1, 3} {
				b, seen := together(t, n, p, o, stop)
				p.check(t, c.name, b, seen)
				near(t, c.name, b, best, 1e-5)
			}
		}
	}
}

func near(t *testing.T, name string, got, want []float64, within float64) {
	t.Helper()
	for j := range got {
		if math.Abs(got[j]-want[j]) > within {
			t.Fatalf("%s: coefficient %d is %g, want %g", name, j, got[j], want[j])
		}
	}
}

// check holds a run to what is known of all.
func (p *Problem) check(t *testing.T, name string, b []float64, seen []Progress) {
	t.Helper()
	last := seen[len(seen)-1]
	if v := p.violation(b); v > 1e-7 || last.Gap > 1e-11*p.objective(make([]float64, len(b))) {
		t.Errorf("%s: conditions are missed by %g, the gap is %g after %d epochs", name, v,
			last.Gap, last.Epoch)
	}
	best := p.objective(b)
	if math.Abs(best-last.Objective) > 1e-9*best {
		t.Errorf("%s: the objective is %g, %g was said", name, best, last.Objective)
	}
	for i, x := range seen {
		if x.Objective-x.Gap > best*(1+1e-12) {
			t.Errorf("%s: epoch %d is %g from the best at most, in truth %g", name, i, x.Gap,
				x.Objective-best)
		}
		if i > 0 && x.Objective > seen[i-1].Objective*(1+1e-12) {
			t.Errorf("%s: the objective rose in epoch %d, from %g to %g", name, i,
				seen[i-1].Objective, x.Objective)
		}
	}
}
