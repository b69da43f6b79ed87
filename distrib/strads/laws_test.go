package strads

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib/collective"
)

// orthogonal is a problem of columns that are: a Hadamard matrix, with labels of which all sums are
// exact. Its answer is known: the coefficients alone, each from 0.
func orthogonal(t *testing.T) (p *Problem, best []float64) {
	const n = 64
	x, y := make([]float64, n*n), make([]float64, n)
	for j := range n {
		for i := range n {
			ones := 0
			for both := i & j; both > 0; both &= both - 1 {
				ones++
			}
			x[j*n+i] = float64(1 - 2*(ones%2))
		}
	}
	for i := range y {
		y[i] = float64(i*i%37) / 8
	}
	d, err := Dense(n, n, x)
	if err != nil {
		t.Fatal(err)
	}
	p = &Problem{X: d, Y: y, L1: 12.5}
	for j := range int32(n) {
		best = append(best, soft(d.dot(j, y), p.L1)/n)
	}
	return p, best
}

// TestOrthogonal: where columns are orthogonal, workers who update everything at the same time come
// to the bits of the serial answer, in one round, and checks find nothing that depends.
func TestOrthogonal(t *testing.T) {
	p, best := orthogonal(t)
	alone := make([]float64, len(best))
	stop := Stop{Epochs: 1}
	if err := p.Solve(&Point{B: alone}, stop, func(Progress) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(alone, best) {
		t.Errorf("alone: %v, want %v", alone, best)
	}
	for policy := range Policy(len(policies)) {
		for _, n := range []int{1, 2, 5} {
			o := Options{Policy: policy, Candidates: len(best)}
			b, seen := together(t, n, p, o, stop)
			if !slices.Equal(b, best) || seen[1].Rounds != 1 || seen[1].Gap > 1e-12*seen[0].Gap {
				t.Errorf("%v, %d workers: %v, %+v", policy, n, b, seen)
			}
		}
	}
}

// TestNeverRises: of a round of any policy that checks the objective never rises, however
// correlated columns are; without a check it does.
func TestNeverRises(t *testing.T) {
	for _, loss := range []Loss{Squares, Logistic} {
		p := random(11, 40, 60, 6, 0.95, loss)
		rises := func(o Options) (n int) {
			o.Candidates = p.X.cols // an epoch is a round, or few
			_, seen := together(t, 2, p, o, Stop{Epochs: 60})
			for i, x := range seen[1:] {
				if x.Objective > seen[i].Objective*(1+1e-12) {
					n++
				}
			}
			return n
		}
		for _, o := range []Options{{}, {Policy: Independent}, {Policy: Independent, Kappa: 0.9},
			{Kappa: 1}} {
			if n := rises(o); n > 0 {
				t.Errorf("loss %d, %+v: the objective rose in %d rounds", loss, o, n)
			}
		}
		if n := rises(Options{Policy: Unchecked}); n == 0 && loss == Squares {
			t.Error("without a check the objective never rose")
		}
	}
}

// rounds is how many a problem takes.
func rounds(t *testing.T, p *Problem, o Options) int {
	_, seen := together(t, 1, p, o, Stop{Epochs: 5000, Gap: 1e-6})
	last := seen[len(seen)-1]
	if last.Epoch == 5000 {
		t.Fatalf("%+v does not get there: %+v", o, last)
	}
	return last.Rounds
}

// TestBlocksBeatTheSet: on correlated columns, blocks take fewer rounds than independent sets.
func TestBlocksBeatTheSet(t *testing.T) {
	p := random(13, 100, 200, 20, 0.9, Squares)
	blocks := rounds(t, p, Options{Candidates: 32})
	set := rounds(t, p, Options{Candidates: 32, Policy: Independent})
	t.Logf("blocks take %d rounds, sets %d", blocks, set)
	if 4*blocks > 3*set {
		t.Errorf("blocks take %d rounds, sets %d", blocks, set)
	}
}

// TestPriority: who prefers what changes needs fewer rounds.
func TestPriority(t *testing.T) {
	p := random(17, 100, 1000, 10, 0, Squares)
	priority := rounds(t, p, Options{Candidates: 16})
	uniform := rounds(t, p, Options{Candidates: 16, Uniform: true})
	t.Logf("by priority %d rounds, uniformly %d", priority, uniform)
	if 2*priority > uniform {
		t.Errorf("by priority %d rounds, uniformly %d", priority, uniform)
	}
}

// TestGoesOn: who begins with what others came to goes on from there, to the same coefficients.
func TestGoesOn(t *testing.T) {
	p := random(19, 50, 80, 5, 0.3, Squares)
	end := Stop{Epochs: 1000, Gap: 1e-11}
	whole, b := make([]float64, 80), make([]float64, 80)
	no := func(Progress) error { return nil }
	if err := errors.Join(p.Solve(&Point{B: whole}, end, no),
		p.Solve(&Point{B: b}, Stop{Epochs: 1}, no)); err != nil {
		t.Fatal(err)
	}
	var first Progress
	before := p.objective(b)
	if err := p.Solve(&Point{B: b}, end, func(x Progress) error {
		if x.Epoch == 0 {
			first = x
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if math.Abs(first.Objective-before) > 1e-12*before {
		t.Errorf("went on at %g, not %g", first.Objective, before)
	}
	near(t, "gone on", b, whole, 1e-5)
}

// TestDegenerate: what has nothing to learn from is learnt, too.
func TestDegenerate(t *testing.T) {
	for name, c := range map[string]struct {
		cols int
		x, y []float64
		want []float64
	}{
		"no columns":       {0, nil, []float64{1, 2}, nil},
		"a column of 0":    {2, []float64{0, 0, 1, 1}, []float64{3, 3}, []float64{0, 2.5}},
		"labels of 0":      {1, []float64{1, 2}, []float64{0, 0}, []float64{0}},
		"twice the same":   {2, []float64{1, 1, 1, 1}, []float64{3, 3}, nil},
		"less than lambda": {1, []float64{0.1, 0.1}, []float64{1, 1}, []float64{0}},
	} {
		d, err := Dense(2, c.cols, c.x)
		if err != nil {
			t.Fatal(err)
		}
		p := &Problem{X: d, Y: c.y, L1: 1}
		b := slices.Repeat([]float64{7}, c.cols) // 0 comes of it all the same
		stop := Stop{Epochs: 50, Gap: 1e-12}
		err = p.Solve(&Point{B: b}, stop, func(Progress) error { return nil })
		if err != nil || c.want != nil && !slices.Equal(b, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, b, err, c.want)
		}
		b, _ = together(t, 2, p, Options{}, stop)
		if c.want != nil && !slices.Equal(b, c.want) {
			t.Errorf("%s: workers have %v, want %v", name, b, c.want)
		}
	}
}

// TestRefused: what is no problem is refused, and says what is wrong.
func TestRefused(t *testing.T) {
	nan := math.NaN()
	for want, err := range map[string]error{
		"3 numbers for a design of 2 x 2": second(Dense(2, 2, make([]float64, 3))),
		"NaN among the numbers":           second(Dense(1, 1, []float64{nan})),
		"+Inf among":                      sparse(1, []int{0, 1}, []int32{0}, math.Inf(1)),
		"column 0 has row 0 of 2 after 0": sparse(2, []int{0, 2}, []int32{0, 0}, 1, 1),
		"column 0 has row 2 of 2 after":   sparse(2, []int{0, 1}, []int32{2}, 1),
		"are no design":                   sparse(2, []int{0, 2}, []int32{0}, 1),
		"column 0 has entries 0 to 5":     sparse(2, []int{0, 5, 1}, []int32{0}, 1),
		"lambda 0":                        solve(func(p *Problem) { p.L1 = 0 }),
		"lambda NaN":                      solve(func(p *Problem) { p.L1 = nan }),
		"1 labels":                        solve(func(p *Problem) { p.Y = p.Y[:1] }),
		"NaN among the numbers of a":      solve(func(p *Problem) { p.Y[1] = nan }),
		"label 3 of sample 1":             solve(func(p *Problem) { p.Loss = Logistic }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	p := random(1, 4, 4, 1, 0, Squares)
	no := func(Progress) error { return nil }
	for _, err := range []error{
		p.Solve(&Point{B: make([]float64, 3)}, Stop{}, no),
		p.Solve(&Point{B: []float64{nan, 0, 0, 0}}, Stop{}, no),
		p.Solve(&Point{B: make([]float64, 4)}, Stop{Epochs: -1}, no),
		p.Solve(&Point{B: make([]float64, 4)}, Stop{Gap: nan}, no),
		p.Solve(&Point{B: make([]float64, 4)}, Stop{Gap: 1}, no),
		alone(t, p, Options{Kappa: 2}), alone(t, p, Options{Kappa: nan}),
		alone(t, p, Options{Candidates: -1}), alone(t, p, Options{Policy: 9}),
	} {
		if err == nil {
			t.Error("nonsense was accepted")
		}
	}
	if _, err := ParsePolicy("block"); err == nil || !strings.Contains(err.Error(), "blocks") {
		t.Errorf("a policy that there is none of: %v", err)
	}
}

func second(_ *Design, err error) error { return err }

func sparse(rows int, start []int, row []int32, value ...float64) error {
	return second(Sparse(rows, start, row, value))
}

// solve solves a problem after a change.
func solve(change func(*Problem)) error {
	d, err := Dense(2, 1, []float64{1, 2})
	if err != nil {
		return err
	}
	p := &Problem{X: d, Y: []float64{3, 4}, L1: 1}
	change(p)
	return p.Solve(&Point{B: make([]float64, 1)}, Stop{}, func(Progress) error { return nil })
}

func alone(t *testing.T, p *Problem, o Options) error {
	return apart(1, func(g *collective.Group) error {
		w := &Worker{Problem: *p, Group: g, Options: o,
			After: func(context.Context, Progress) error { return nil }}
		return w.Run(t.Context(), &Point{B: make([]float64, p.X.cols)})
	})
}

// TestEnds: an error of one worker's own ends its run, and others end with their group.
func TestEnds(t *testing.T) {
	boom := errors.New("boom")
	parts, errs := divided(t, random(1, 20, 30, 3, 0, Squares), 2), make([]error, 2)
	err := apart(2, func(g *collective.Group) error {
		i := g.Rank()
		w := &Worker{Problem: *parts[i], Group: g, Stop: Stop{Epochs: 9},
			After: func(_ context.Context, x Progress) error {
				if i == 1 && x.Epoch == 1 {
					return boom
				}
				return nil
			}}
		errs[i] = w.Run(t.Context(), &Point{B: make([]float64, 30)})
		return errs[i]
	})
	if errs[0] == nil || errs[1] == nil || !errors.Is(err, boom) {
		t.Errorf("ended with %v", errs)
	}
}

// TestStepNear: no step of the logistic loss makes the objective rise, from wherever it is taken,
// and some are longer than the greatest curvature allows.
func TestStepNear(t *testing.T) {
	p := random(3, 40, 30, 5, 0.5, Logistic)
	p.L1 /= 10
	rng, longer := rand.New(rand.NewPCG(5, 6)), 0
	objective := func(s *state) float64 {
		s.predict()
		sum := s.sums()[0]
		for _, v := range s.b {
			sum += p.L1 * math.Abs(v)
		}
		return sum
	}
	for range 300 {
		s, err := newState(p, &Point{B: make([]float64, p.X.cols)})
		if err != nil {
			t.Fatal(err)
		}
		for j := range s.b {
			s.b[j] = 2 * rng.NormFloat64()
		}
		before, j := objective(s), int32(rng.IntN(len(s.b)))
		g := p.X.dot(j, s.slope)
		by := s.stepNear(j, g)
		if math.Abs(by) > 1.1*math.Abs(s.step(j, g)) {
			longer++
		}
		s.b[j] += by
		if after := objective(s); after > before*(1+1e-12) {
			t.Errorf("from %.15g to %.15g by a step of %g", before, after, by)
		}
	}
	if longer == 0 {
		t.Error("no step was longer")
	}
}
