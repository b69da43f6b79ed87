package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/libm"
)

// MLR is multinomial logistic regression: the weights, Classes x Features and without a
// bias as in Bösen's application, that make the cross entropy of softmax(W x) least.
type MLR struct {
	Train *Samples
	Test  *Samples // nil: none

	Epochs int
	Clocks int     // an epoch: batches of a worker's samples, 0: 1
	Pushes int     // a clock, and pulls, 0: 1
	Rate   float64 // the step size
	Decay  float64 // what it is multiplied by every epoch, 0: 1
	Slack  int     // clocks that reads may be stale: the last report sees all updates

	// Rotate is after how many clocks a worker's samples are the next worker's: Orpheus' rotation,
	// of samples rather than of the replicas that learn from them. 0: never.
	Rotate int

	// Losses has what workers report added up in a table, for [Worker.Total].
	Losses bool
	// Gradients pushes sums of gradients rather than steps.
	Gradients bool
	// Factors pushes what it pushes as sufficient factors, a pair a sample.
	Factors bool
}

func (m *MLR) schedule() schedule {
	return schedule{m.Epochs, max(m.Clocks, 1), max(m.Pushes, 1), m.Rate, orOne(m.Decay)}
}

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// Rounds are how many epochs there are, and clocks in each.
func (m *MLR) Rounds() (epochs, clocks int) { return m.Epochs, m.schedule().clocks }

// Check reports what is wrong with the task.
func (m *MLR) Check() error {
	if m.Train == nil || m.Train.Len() == 0 {
		return errors.New("mlr: no training samples")
	}
	if m.Test != nil && (m.Test.Features != m.Train.Features || m.Test.Classes != m.Train.Classes) {
		return fmt.Errorf("mlr: test samples of %d features and %d classes, training samples of "+
			"%d and %d", m.Test.Features, m.Test.Classes, m.Train.Features, m.Train.Classes)
	}
	// A line of a file is enough to say so many, and nobody has the memory for them.
	if k, n := m.Train.Classes, m.Train.Features; int64(k)*int64(n) > maxWeights {
		return fmt.Errorf("mlr: %d classes of %d features have more than %d weights: number both "+
			"from 1 on, without gaps", k, n, maxWeights)
	}
	if m.Rotate < 0 {
		return fmt.Errorf("mlr: samples that rotate every %d clocks", m.Rotate)
	}
	if err := m.schedule().check(); err != nil {
		return fmt.Errorf("mlr: %w", err)
	}
	return nil
}

// maxWeights bounds the weights of a task.
const maxWeights = 1 << 30

// Params are the task's parameters at the beginning, a worker's own: the weights, and the
// table of losses if there is one.
func (m *MLR) Params() []*distrib.Param {
	k, n := m.Train.Classes, m.Train.Features
	ps := []*distrib.Param{{Name: "mlr/w", Rows: k, Cols: n, Data: make([]float32, k*n)}}
	if m.Losses {
		ps = append(ps, tallyParam("mlr/loss", m.Epochs, m.Slack))
	}
	return ps
}

// Run is a worker's part. It attaches [MLR.Params], and leaves the synchronizer open.
func (m *MLR) Run(ctx context.Context, s distrib.Synchronizer, w Worker) error {
	if err := errors.Join(m.Check(), w.check()); err != nil {
		return err
	}
	ps := m.Params()
	done, err := w.resume(ps, m.Epochs)
	if err != nil {
		return fmt.Errorf("mlr: %w", err)
	}
	if err := s.Attach(ps...); err != nil {
		return err
	}
	r := &mlrRun{MLR: m, s: s, w: w, params: ps, param: ps[0], done: done,
		own: m.Train.Shard(w.Rank, w.Of), shard: w.Rank,
		tally: tally{s: s, w: w, id: 1, total: m.Train.Len(), shown: done}}
	if m.Losses {
		r.tally.param = ps[1]
	}
	return r.run(ctx)
}

type mlrRun struct {
	*MLR
	s     distrib.Synchronizer
	w     Worker
	param *distrib.Param
	own   *Samples
	shard int // whose samples they are, at first
	clock distrib.Clock
	tally tally

	params []*distrib.Param
	done   int // epochs, before the run
}

func (r *mlrRun) run(ctx context.Context) error {
	sch := r.schedule()
	for epoch, rate := range sch.rates() {
		if epoch < r.done {
			continue
		}
		for c := range sch.clocks {
			r.rotate(epoch*sch.clocks + c)
			from, to := part(r.own.Len(), c, sch.clocks)
			if err := r.tick(ctx, epoch, c, from, to, rate); err != nil {
				return err
			}
		}
		if err := between(ctx, &r.tally, r.Slack, epoch+1, sch.epochs, r.params); err != nil {
			return err
		}
	}
	return finish(ctx, r.s, r.Slack, sch.epochs, &r.tally, r.pull, r.progress)
}

// rotate takes over the samples of the worker behind, at some clocks.
func (r *mlrRun) rotate(clock int) {
	if r.Rotate == 0 || r.w.Of == 1 {
		return
	}
	if at := (r.w.Rank + clock/r.Rotate) % r.w.Of; at != r.shard {
		r.own, r.shard = r.Train.Shard(at, r.w.Of), at
	}
}

func (r *mlrRun) pull(ctx context.Context) error {
	_, err := r.s.Pull(ctx, distrib.Ref{})
	return err
}

// tick is one clock's work, on samples [from, to).
func (r *mlrRun) tick(ctx context.Context, epoch, clock, from, to int, rate float64) error {
	pushes := max(r.Pushes, 1)
	for k := range pushes {
		if err := r.pull(ctx); err != nil {
			return err
		}
		if clock == 0 && k == 0 {
			if err := report(ctx, &r.tally, r.progress(epoch)); err != nil {
				return err
			}
		}
		a, b := part(to-from, k, pushes)
		u := r.update(from+a, from+b, float32(rate))
		if err := r.w.compute(ctx, 1/float64(pushes)); err != nil {
			return err
		}
		if err := r.s.Push(ctx, distrib.Ref{}, u); err != nil {
			return err
		}
	}
	var err error
	r.clock, err = r.s.Tick(ctx)
	return err
}

// update is what samples [from, to) come to.
func (r *mlrRun) update(from, to int, rate float32) distrib.Update {
	k, n := r.own.Classes, r.own.Features
	f := distrib.Factored{R: to - from, J: k, K: n}
	w := append([]float32(nil), r.param.Data...)
	g := make([]float32, k)
	for i := from; i < to; i++ {
		index, value := r.own.at(i)
		gradient(w, n, index, value, r.own.label[i], g)
		if !r.Gradients {
			for c := range g {
				g[c] = -float32(rate * g[c])
			}
			addOuter(w, n, g, index, value)
		}
		f.A = append(f.A, g...)
		f.B = append(f.B, spread(index, value, n)...)
	}
	if r.Factors {
		return f
	}
	d := make(distrib.Dense, k*n)
	f.AddTo(d, n, 1)
	return d
}

func spread(index []int32, value []float32, n int) []float32 {
	x := make([]float32, n)
	for i, at := range index {
		x[at] = value[i]
	}
	return x
}

// progress is how well the copy does that was just pulled.
func (r *mlrRun) progress(epoch int) Progress {
	p := Progress{Worker: r.w.Rank, Epoch: epoch, Clock: r.clock, Count: r.own.Len(),
		At: time.Now()}
	p.Loss, p.Errors = score(r.own, r.param.Data)
	if r.Test != nil && r.w.Rank == 0 {
		_, p.TestErrors = score(r.Test, r.param.Data)
		p.TestCount = r.Test.Len()
	}
	return p
}

type number interface{ float32 | float64 }

// gradient makes g the derivative of a sample's loss by its k logits.
func gradient[T number](w []T, n int, index []int32, value []float32, label int32, g []T) {
	softmax(w, n, index, value, g)
	g[label]--
}

// softmax makes p the probabilities of the classes.
func softmax[T number](w []T, n int, index []int32, value []float32, p []T) {
	for c := range p {
		row := w[c*n : (c+1)*n]
		var sum T
		for i, at := range index {
			sum += T(row[at] * T(value[i]))
		}
		p[c] = sum
	}
	top := p[0]
	for _, v := range p {
		top = max(top, v)
	}
	var sum T
	for c, v := range p {
		p[c] = T(libm.Exp(float64(v - top)))
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
}

// addOuter adds the product of a and a sample to w.
func addOuter[T number](w []T, n int, a []T, index []int32, value []float32) {
	for c, f := range a {
		row := w[c*n : (c+1)*n]
		for i, at := range index {
			row[at] += T(f * T(value[i]))
		}
	}
}

// least is the least probability that a loss is taken of.
const least = 1e-30

// score is the cross entropy over samples in nats, and how many have the wrong class.
func score[T number](s *Samples, w []T) (loss float64, wrong int) {
	p := make([]T, s.Classes)
	for i := range s.Len() {
		index, value := s.at(i)
		softmax(w, s.Features, index, value, p)
		loss -= libm.Log(max(float64(p[s.label[i]]), least))
		for c, v := range p {
			if v > p[s.label[i]] || v == p[s.label[i]] && c < int(s.label[i]) {
				wrong++
				break
			}
		}
	}
	return loss, wrong
}

// Serial runs the task in float64, with all samples in order and no synchronizer. An
// element of the result is the progress before an epoch; the last one is the end's.
func (m *MLR) Serial() ([]Progress, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	s := m.Train
	w, g := make([]float64, s.Classes*s.Features), make([]float64, s.Classes)
	curve := []Progress{m.serialProgress(0, w)}
	for epoch, rate := range m.schedule().rates() {
		for i := range s.Len() {
			index, value := s.at(i)
			gradient(w, s.Features, index, value, s.label[i], g)
			for c := range g {
				g[c] *= -rate
			}
			addOuter(w, s.Features, g, index, value)
		}
		curve = append(curve, m.serialProgress(epoch+1, w))
	}
	return curve, nil
}

func (m *MLR) serialProgress(epoch int, w []float64) Progress {
	p := Progress{Epoch: epoch, Count: m.Train.Len()}
	p.Loss, p.Errors = score(m.Train, w)
	if m.Test != nil {
		_, p.TestErrors = score(m.Test, w)
		p.TestCount = m.Test.Len()
	}
	return p
}
