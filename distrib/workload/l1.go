package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/strads"
	"github.com/gomem/gomem/internal/libm"
)

// L1 is regression with few coefficients, by coordinate descent on a schedule (package
// [github.com/gomem/gomem/distrib/strads]): the Lasso where labels are numbers, and logistic
// regression where they are classes. Workers have some of the samples each, and all coefficients.
// There is none for a bias, but a feature that all samples have is one.
type L1 struct {
	Train *Samples // with numbers as labels, or of two classes
	Test  *Samples // nil: none

	// Lambda is the penalty: of (|y - Xb|^2 + Lambda |b|)/2, or of the cross entropy + Lambda |b|.
	Lambda float64
	Stop   strads.Stop
	// Schedule says how several workers go about it; one that has all of it as one block goes
	// through it in order.
	Schedule strads.Options
}

// name is the model's.
func (m *L1) name() string {
	if m.loss() == strads.Squares {
		return "lasso"
	}
	return "l1-lr"
}

func (m *L1) loss() strads.Loss {
	if m.Train.target != nil {
		return strads.Squares
	}
	return strads.Logistic
}

// Rounds are how many epochs there are at most, of one clock each.
func (m *L1) Rounds() (epochs, clocks int) { return m.Stop.Epochs, 1 }

// Check reports what is wrong with the task.
func (m *L1) Check() error {
	switch {
	case m.Train == nil || m.Train.Len() == 0:
		return errors.New("no training samples")
	case m.Train.Features == 0:
		return errors.New("no sample has a feature")
	case m.Train.target == nil && m.Train.Classes > 2:
		return fmt.Errorf("%s: %d classes: want two, 0 and 1, or -1 and 1", m.name(),
			m.Train.Classes)
	case m.Test != nil && (m.Test.Features != m.Train.Features ||
		(m.Test.target == nil) != (m.Train.target == nil)):
		return fmt.Errorf("%s: test samples are not like training samples", m.name())
	case !(m.Lambda > 0) || math.IsInf(m.Lambda, 0):
		return fmt.Errorf("%s: lambda %g: want more than 0", m.name(), m.Lambda)
	}
	return nil
}

// Params are what is learnt, at the beginning: a row for each coefficient. The second has what a
// coefficient is more than its 32 bits, in two numbers, and whether it is known to be 0 in the end.
func (m *L1) Params() []*distrib.Param {
	n := m.Train.Features
	return []*distrib.Param{
		{Name: m.name() + "/b", Rows: n, Cols: 1, Data: make([]float32, n)},
		{Name: m.name() + "/rest", Rows: n, Cols: 3, Data: make([]float32, 3*n)}}
}

// pointOf is where parameters are.
func pointOf(ps []*distrib.Param, epoch int) *strads.Point {
	at := &strads.Point{Epoch: epoch}
	for j, v := range ps[0].Data {
		rest := rowOf(ps[1].Data, 3, int32(j))
		at.B = append(at.B, float64(v)+float64(rest[0])+float64(rest[1]))
		at.Dead = append(at.Dead, rest[2] != 0)
	}
	return at
}

// pointTo is the opposite.
func pointTo(ps []*distrib.Param, at *strads.Point) {
	for j, v := range at.B {
		rest := rowOf(ps[1].Data, 3, int32(j))
		b := float32(v)
		ps[0].Data[j], rest[0] = b, float32(v-float64(b))
		rest[1], rest[2] = float32(v-float64(b)-float64(rest[0])), 0
		if at.Dead[j] {
			rest[2] = 1
		}
	}
}

// Largest is the least penalty at which all coefficients are 0.
func (m *L1) Largest() float64 {
	slope := make([]float64, m.Train.Features)
	for i := range m.Train.Len() {
		index, value := m.Train.at(i)
		g := m.loss().Slope(m.Train.number(i), 0)
		for k, j := range index {
			slope[j] += float64(g * float64(value[k]))
		}
	}
	most := 0.0
	for _, g := range slope {
		most = max(most, math.Abs(g))
	}
	return most / m.l1(1)
}

// l1 is the penalty of a coefficient beside the loss.
func (m *L1) l1(lambda float64) float64 {
	if m.loss() == strads.Squares {
		return lambda / 2
	}
	return lambda
}

// Run is a worker's part. There is nothing to synchronise, so it takes no synchronizer.
func (m *L1) Run(ctx context.Context, _ distrib.Synchronizer, w Worker) error {
	if err := errors.Join(m.Check(), w.check()); err != nil {
		return err
	}
	r := &l1Run{L1: m, w: w, params: m.Params()}
	var err error
	if r.done, err = w.resume(r.params, m.Stop.Epochs); err != nil {
		return fmt.Errorf("%s: %w", m.name(), err)
	}
	r.at = pointOf(r.params, r.done)
	p, err := m.problem(m.Train.Shard(w.Rank, w.Of))
	if err != nil {
		return err
	}
	if w.Of == 1 && m.Schedule.Policy == strads.Blocks {
		return p.Solve(r.at, m.Stop, func(x strads.Progress) error { return r.after(ctx, x) })
	}
	all := &strads.Worker{Problem: *p, Group: w.Group, Options: m.Schedule, Stop: m.Stop,
		After: r.after}
	return all.Run(ctx, r.at)
}

// problem is that of some samples.
func (m *L1) problem(s *Samples) (*strads.Problem, error) {
	x, err := s.design()
	if err != nil {
		return nil, err
	}
	y := make([]float64, s.Len())
	for i := range y {
		y[i] = s.number(i)
	}
	return &strads.Problem{X: x, Y: y, Loss: m.loss(), L1: m.l1(m.Lambda)}, nil
}

// number is a label as one.
func (s *Samples) number(i int) float64 {
	if s.target != nil {
		return s.target[i]
	}
	return float64(s.label[i])
}

// design is samples by features: dense if most of it is not 0.
func (s *Samples) design() (*strads.Design, error) {
	rows, cols := s.Len(), s.Features
	if 2*len(s.index) > rows*cols {
		x := make([]float64, rows*cols)
		for i := range rows {
			index, value := s.at(i)
			for k, j := range index {
				x[int(j)*rows+i] = float64(value[k])
			}
		}
		return strads.Dense(rows, cols, x)
	}
	c := s.columns()
	value := make([]float64, len(c.value))
	for k, v := range c.value {
		value[k] = float64(v)
	}
	return strads.Sparse(rows, c.start, c.row, value)
}

// l1Run is a worker's part in a run.
type l1Run struct {
	*L1
	w      Worker
	params []*distrib.Param
	at     *strads.Point
	done   int // epochs, before the run
}

// after says how far all are, keeps what is due, and hands out the state if somebody asks.
func (r *l1Run) after(ctx context.Context, x strads.Progress) error {
	if r.w.Rank == 0 && r.w.Total != nil {
		r.w.Total(r.progress(x))
	}
	pointTo(r.params, r.at)
	if x.Epoch == r.done {
		return nil
	}
	if r.w.Keep != nil {
		if err := r.w.Keep(x.Epoch, x.Done, r.own); err != nil {
			return err
		}
	}
	if r.w.Between == nil || x.Done {
		return nil
	}
	stop, err := r.w.Between(ctx, StateOf(r.params, x.Epoch))
	if err == nil && stop {
		err = ErrStopped
	}
	return err
}

// own are the rows that this worker saves of those that all have.
func (r *l1Run) own() ([]distrib.SavedRows, error) {
	from, to := part(len(r.at.B), r.w.Rank, r.w.Of)
	if from == to {
		return nil, nil
	}
	var rows []distrib.SavedRows
	for _, p := range r.params {
		rows = append(rows, distrib.SavedRows{Param: p.Name, Cols: p.Cols, Row: int32(from),
			N: int32(to - from), Data: p.Data[from*p.Cols : to*p.Cols]})
	}
	return rows, nil
}

// progress is how well the coefficients do.
func (r *l1Run) progress(x strads.Progress) Progress {
	p := Progress{Epoch: x.Epoch, Loss: x.Loss, Count: r.Train.Len(), Sparse: &x}
	if r.loss() == strads.Squares {
		p.Loss *= 2
	}
	switch {
	case r.Test == nil:
	case r.loss() == strads.Squares:
		p.TestCount = r.Test.Len()
		for i := range p.TestCount {
			index, value := r.Test.at(i)
			off := logit(r.at.B, index, value) - r.Test.target[i]
			p.TestLoss += float64(off * off)
		}
	default:
		p.tested(lrScore(r.Test, r.at.B))
	}
	return p
}

// Regression draws samples whose labels are linear in few features: so many of all, evenly spaced,
// with coefficients that are normal, as features are, and noise of the given standard deviation.
func Regression(seed uint64, train, test, features, nonzero int, noise float64) (*Samples,
	*Samples) {
	l := &linear{rng: rand.New(rand.NewPCG(seed, 11)), weight: make([]float64, features),
		noise: noise}
	for k := range nonzero {
		l.weight[k*features/nonzero] = libm.Normal(l.rng)
	}
	return l.samples(train), l.samples(test)
}

type linear struct {
	rng    *rand.Rand
	weight []float64
	noise  float64
}

func (l *linear) samples(n int) *Samples {
	s := &Samples{Features: len(l.weight), Classes: 1, start: []int32{0}, target: []float64{}}
	for range n {
		y := float64(l.noise * libm.Normal(l.rng))
		for j, w := range l.weight {
			x := float32(libm.Normal(l.rng))
			s.index, s.value = append(s.index, int32(j)), append(s.value, x)
			y += float64(w * float64(x))
		}
		s.target = append(s.target, y)
		s.end(0)
	}
	return s
}
