package strads

import (
	"fmt"
	"math"

	"github.com/gomem/gomem/internal/libm"
)

// Problem is to find the coefficients b of least loss(y, Xb) + L1 |b|, the loss summed over
// samples and |b| over features. The Lasso of (|y - Xb|^2 + lambda |b|)/2 has half of lambda as L1.
type Problem struct {
	X    *Design
	Y    []float64
	Loss Loss
	L1   float64
}

// Check reports what is wrong with the problem.
func (p *Problem) Check() error {
	switch {
	case p.X == nil || p.X.rows != len(p.Y):
		return fmt.Errorf("strads: %d labels, and not as many samples", len(p.Y))
	case !(p.L1 > 0) || math.IsInf(p.L1, 0):
		return fmt.Errorf("strads: lambda %g: want more than 0", p.L1)
	}
	for i, y := range p.Y {
		if p.Loss == Logistic && y != 0 && y != 1 {
			return fmt.Errorf("strads: label %g of sample %d: want 0 or 1", y, i+1)
		}
	}
	return finite(p.Y)
}

// Progress is what is known of the coefficients after an epoch.
type Progress struct {
	Epoch     int
	Updates   int     // of coefficients so far, without looks at all of them
	Rounds    int     // of the schedule so far
	Loss      float64 // over all samples
	Objective float64 // that, and the penalty
	// Gap is how far the objective is from the least one, at most: the duality gap.
	Gap     float64
	Nonzero int // coefficients
	Live    int // those of which it is not known that they are 0 in the end
	Done    bool
}

// Point is where a run begins, and what it has come to after an epoch: who begins there goes on as
// it would have.
type Point struct {
	Epoch int
	B     []float64 // coefficients
	// Dead are those of which it is known that they are 0 in the end; nil: none.
	Dead []bool
}

// Stop is when coefficients are good enough.
type Stop struct {
	Epochs int // at most
	// Gap is the duality gap to be reached, as a part of the objective of coefficients that are 0.
	Gap float64
}

func (s Stop) check() error {
	if s.Epochs < 0 || !(s.Gap >= 0) || s.Gap >= 1 {
		return fmt.Errorf("strads: %d epochs to a gap of %g: want a gap from 0 to below 1",
			s.Epochs, s.Gap)
	}
	return nil
}

// state is coefficients, and what follows from them.
type state struct {
	*Problem
	at       *Point
	b        []float64 // the point's
	z        []float64 // predictions
	slope    []float64 // of the loss, by prediction
	square   []float64 // of each column, over all samples of all workers
	largest  []float64 // number of each column, whatever its sign
	gradient []float64 // by coefficient, as it was last seen
	live     []int32   // coefficients that may not be 0 in the end
	zero     float64   // the objective of coefficients that are 0
	seen     Progress
}

// newState is a beginning; the squares of columns are those of the problem's own samples.
func newState(p *Problem, at *Point) (*state, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	n := p.X.cols
	if at.Dead == nil {
		at.Dead = make([]bool, n)
	}
	if len(at.B) != n || len(at.Dead) != n {
		return nil, fmt.Errorf("strads: %d coefficients of %d features", len(at.B), n)
	}
	if err := finite(at.B); err != nil {
		return nil, err
	}
	s := &state{Problem: p, at: at, b: at.B, seen: Progress{Epoch: at.Epoch},
		z: make([]float64, len(p.Y)), slope: make([]float64, len(p.Y)),
		square: make([]float64, n), largest: make([]float64, n), gradient: make([]float64, n)}
	for j := range s.square {
		s.square[j] = p.X.cross(int32(j), int32(j))
		p.X.each(int32(j), func(_ int32, x float64) {
			s.largest[j] = max(s.largest[j], math.Abs(x))
		})
	}
	for _, y := range p.Y {
		s.zero += p.Loss.value(y, 0)
	}
	return s, nil
}

// begin has all live that is not dead, as the coefficients of columns are that are 0.
func (s *state) begin() {
	for j, q := range s.square {
		s.at.Dead[j] = s.at.Dead[j] || q == 0
		if s.at.Dead[j] {
			s.b[j] = 0
		} else {
			s.live = append(s.live, int32(j))
		}
	}
}

// predict computes predictions anew, so that no rounding adds up.
func (s *state) predict() {
	clear(s.z)
	for j, v := range s.b {
		if v != 0 {
			s.X.add(int32(j), v, s.z)
		}
	}
	for i, z := range s.z {
		s.slope[i] = s.Loss.Slope(s.Y[i], z)
	}
}

// move changes a coefficient, and what follows from it.
func (s *state) move(j int32, by float64) {
	if by == 0 {
		return
	}
	s.b[j] += by
	if s.Loss == Squares {
		s.X.add(j, by, s.slope)
		return
	}
	s.X.add(j, by, s.z)
	s.X.each(j, func(i int32, _ float64) { s.slope[i] = s.Loss.Slope(s.Y[i], s.z[i]) })
}

// step is by how much a coefficient with this gradient moves if it is moved alone: to the least of
// a parabola that lies above the loss, which for squares is the loss itself.
func (s *state) step(j int32, gradient float64) float64 {
	return s.stepOn(j, gradient, s.square[j]*s.Loss.curvature())
}

// stepOn is the same on a parabola of the given curvature.
func (s *state) stepOn(j int32, gradient, curvature float64) float64 {
	return soft(s.b[j]-gradient/curvature, s.L1/curvature) - s.b[j]
}

// stepNear is as step, with a parabola that lies above the loss only as far as the step goes, and
// so may be flatter. The logistic loss has a curvature that changes by a factor of at most e to the
// power of how far a prediction moves (F. Bach, Self-concordant analysis for logistic regression,
// 2010), and a step on a more curved parabola is shorter.
func (s *state) stepNear(j int32, gradient float64) float64 {
	if s.Loss == Squares {
		return s.step(j, gradient)
	}
	return s.stepOn(j, gradient, s.near(j, gradient, s.bent(j)))
}

// near is the curvature of such a parabola, of the logistic loss, whose second derivative is given.
func (s *state) near(j int32, gradient, curvature float64) float64 {
	most := s.square[j] * s.Loss.curvature()
	if !(curvature > 0) {
		return most
	}
	far := s.largest[j] * math.Abs(s.stepOn(j, gradient, curvature))
	return min(most, curvature*libm.Exp(far))
}

// bent is the second derivative of the logistic loss by a coefficient.
func (s *state) bent(j int32) (sum float64) {
	s.X.each(j, func(i int32, x float64) {
		sum += float64(x * x * s.Loss.bend(s.Y[i], s.slope[i]))
	})
	return sum
}

// sums are what is summed over samples for a look: the loss, and the products of slopes with labels
// and with themselves.
func (s *state) sums() (sums [3]float64) {
	for i, y := range s.Y {
		g := s.slope[i]
		sums[0] += s.Loss.value(y, s.z[i])
		sums[1] += float64(g * y)
		sums[2] += float64(g * g)
	}
	return sums
}

// scale is what slopes are multiplied by to be a point of the dual problem: no product with a
// column is more than L1 then. Of squares it is the best such multiple.
func (s *state) scale(sums [3]float64) float64 {
	most := 0.0
	for _, j := range s.live {
		most = max(most, math.Abs(s.gradient[j]))
	}
	limit := 1.0
	if s.Loss == Squares {
		limit = math.Inf(1)
		if sums[2] > 0 {
			limit = max(0, -sums[1]/sums[2])
		}
	}
	if most == 0 {
		return min(limit, 1)
	}
	return min(limit, s.L1/most)
}

// conjugates is the dual objective, with its sign changed, of scaled slopes.
func (s *state) conjugates(scale float64) (sum float64) {
	for i, y := range s.Y {
		sum += s.Loss.conjugate(y, float64(scale*s.slope[i]))
	}
	return sum
}

// look notes how good the coefficients are, of sums and conjugates over all samples, and screens.
func (s *state) look(stop Stop, sums [3]float64, scale, conjugates float64) {
	p := &s.seen
	s.at.Epoch = p.Epoch
	p.Loss, p.Objective, p.Nonzero = sums[0], sums[0], 0
	for _, v := range s.b {
		p.Objective += float64(s.L1 * math.Abs(v))
		if v != 0 {
			p.Nonzero++
		}
	}
	p.Gap = max(0, p.Objective+conjugates)
	p.Done = p.Epoch >= stop.Epochs || p.Gap <= float64(stop.Gap*s.zero)
	s.screen(scale)
	p.Live = len(s.live)
}

// screen forgets coefficients that are 0 in the end: those whose columns have products of less than
// L1 with every point of the dual problem that is as near as the gap says that the best one is
// (Ndiaye et al., Gap Safe screening rules, 2017). What is not 0 yet stays for its next update.
func (s *state) screen(scale float64) {
	gap := s.seen.Gap + float64(rounding*s.seen.Objective)
	radius := math.Sqrt(2 * gap * s.Loss.curvature())
	kept := s.live[:0]
	for _, j := range s.live {
		most := math.Abs(s.gradient[j]*scale) + float64(math.Sqrt(s.square[j])*radius)
		if s.b[j] != 0 || most >= s.L1 {
			kept = append(kept, j)
		} else {
			s.at.Dead[j] = true
		}
	}
	s.live = kept
}

// rounding is how far off a gap is, at most, as a part of the objective.
const rounding = 1e-13
