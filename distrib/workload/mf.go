package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gomem/gomem/distrib"
)

// MF is matrix factorisation: L, Rows x Rank, and R, Cols x Rank, that make the squared
// error of L R^T at the known elements least, plus Lambda times the squares of the rows of
// L and R that each element touches.
type MF struct {
	Data *Ratings
	Rank int
	Seed uint64 // of the beginning, and of the order of elements

	Epochs int
	Clocks int     // an epoch, 0: 1
	Pushes int     // a clock, and pulls, 0: 1
	Rate   float64 // the step size; with Gradients, of AdaGrad for rows of L that are local
	Decay  float64 // what it is multiplied by every epoch, 0: 1
	Lambda float64
	Slack  int // clocks that reads may be stale: the last report sees all updates

	// Losses has what workers report added up in a table, for [Worker.Total].
	Losses bool
	// Both shares L, too.
	Both bool
	// Gradients pushes sums of gradients rather than steps.
	Gradients bool
}

func (m *MF) schedule() schedule {
	return schedule{m.Epochs, max(m.Clocks, 1), max(m.Pushes, 1), m.Rate, orOne(m.Decay)}
}

// Rounds are how many epochs there are, and clocks in each.
func (m *MF) Rounds() (epochs, clocks int) { return m.Epochs, m.schedule().clocks }

// Check reports what is wrong with the task.
func (m *MF) Check() error {
	switch {
	case m.Data == nil || m.Data.Len() == 0:
		return errors.New("mf: no known elements")
	case m.Rank < 1 || m.Rank > 1<<16:
		return fmt.Errorf("mf: rank %d", m.Rank)
	case m.Lambda < 0 || math.IsNaN(m.Lambda):
		return fmt.Errorf("mf: lambda %g", m.Lambda)
	}
	if err := CheckSides(m.Data.Rows, m.Data.Cols, m.Rank); err != nil {
		return err
	}
	if err := m.schedule().check(); err != nil {
		return fmt.Errorf("mf: %w", err)
	}
	return nil
}

// CheckSides refuses a factorisation of too many numbers. A line of a file is enough to say so
// many, and nobody has the memory for them.
func CheckSides(rows, cols, rank int) error {
	if rank < 1 || rank > 1<<16 || rows > maxSide || cols > maxSide ||
		(rows+cols)*rank > maxWeights {
		return fmt.Errorf("mf: %d rows and %d columns of %d factors each: want %d numbers at most",
			rows, cols, rank, maxWeights)
	}
	return nil
}

// Params are the task's shared parameters at the beginning, a worker's own: R, and L if
// both are shared, and the table of losses if there is one.
func (m *MF) Params() []*distrib.Param {
	ps := []*distrib.Param{{Name: "mf/r", Rows: m.Data.Cols, Cols: m.Rank,
		Data: m.begin(m.Data.Cols, 1)}}
	if m.Both {
		ps = append(ps, &distrib.Param{Name: "mf/l", Rows: m.Data.Rows, Cols: m.Rank,
			Data: m.begin(m.Data.Rows, 0)})
	}
	if m.Losses {
		ps = append(ps, tallyParam("mf/loss", m.Epochs, m.Slack))
	}
	return ps
}

// begin draws numbers uniform in +-1/sqrt(rank).
func (m *MF) begin(rows int, which uint64) []float32 {
	rng := rand.New(rand.NewPCG(m.Seed, which))
	top := 1 / math.Sqrt(float64(m.Rank))
	x := make([]float32, rows*m.Rank)
	for i := range x {
		x[i] = float32(top * (2*float64(rng.Float64()) - 1))
	}
	return x
}

// order is in what order the elements of a shard are visited.
func (m *MF) order(n, worker int) []int {
	return rand.New(rand.NewPCG(m.Seed, 2+uint64(worker))).Perm(n)
}

// Run is a worker's part. It attaches [MF.Params], and leaves the synchronizer open.
func (m *MF) Run(ctx context.Context, s distrib.Synchronizer, w Worker) error {
	if err := errors.Join(m.Check(), w.check()); err != nil {
		return err
	}
	ps := m.Params()
	done, err := w.resume(ps, m.Epochs)
	switch {
	case err != nil:
		return fmt.Errorf("mf: %w", err)
	case w.Between != nil && !m.Both:
		return errors.New("mf: rows of L that one worker has are in no state: have both shared")
	}
	if err := s.Attach(ps...); err != nil {
		return err
	}
	own, from, to := m.Data.Shard(w.Rank, w.Of)
	r := &mfRun{MF: m, s: s, w: w, own: own, order: m.order(own.Len(), w.Rank),
		params: ps, done: done,
		tally: tally{s: s, w: w, total: m.Data.Len(), shown: done}}
	if m.Losses {
		last := len(ps) - 1
		r.tally.id, r.tally.param = distrib.ParamID(last), ps[last]
	}
	r.r = newTable(0, ps[0], 0, m.Data.Cols, m.Gradients)
	if m.Both {
		r.l = newTable(1, ps[1], from, to, m.Gradients)
	} else {
		r.l = newLocal(m.begin(m.Data.Rows, 0), m.Rank, m.Gradients)
	}
	return r.run(ctx)
}

type mfRun struct {
	*MF
	s     distrib.Synchronizer
	w     Worker
	own   *Ratings
	order []int
	l, r  *table
	clock distrib.Clock
	tally tally

	params []*distrib.Param
	done   int // epochs, before the run
}

func (r *mfRun) run(ctx context.Context) error {
	sch := r.schedule()
	for epoch, rate := range sch.rates() {
		if epoch < r.done {
			continue
		}
		for c := range sch.clocks {
			from, to := part(r.own.Len(), c, sch.clocks)
			if err := r.tick(ctx, epoch, c, r.order[from:to], rate); err != nil {
				return err
			}
		}
		if err := between(ctx, &r.tally, r.Slack, epoch+1, sch.epochs, r.params); err != nil {
			return err
		}
	}
	return finish(ctx, r.s, r.Slack, sch.epochs, &r.tally, r.pull, r.progress)
}

func (r *mfRun) pull(ctx context.Context) error {
	if err := r.r.pull(ctx, r.s); err != nil {
		return err
	}
	return r.l.pull(ctx, r.s)
}

// tick is one clock's work.
func (r *mfRun) tick(ctx context.Context, epoch, clock int, work []int, rate float64) error {
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
		a, b := part(len(work), k, pushes)
		for _, i := range work[a:b] {
			r.visit(i, float32(rate))
		}
		if err := r.w.compute(ctx, 1/float64(pushes)); err != nil {
			return err
		}
		if err := errors.Join(r.r.push(ctx, r.s), r.l.push(ctx, r.s)); err != nil {
			return err
		}
	}
	var err error
	r.clock, err = r.s.Tick(ctx)
	return err
}

// visit takes a step for element i, or notes its gradient.
func (r *mfRun) visit(i int, rate float32) {
	l, dl := r.l.row(r.own.row[i])
	t, dt := r.r.row(r.own.col[i])
	e := r.own.value[i] - dot(l, t)
	lambda := float32(r.Lambda)
	for k := range l {
		gl := float32(lambda*l[k]) - float32(e*t[k])
		gt := float32(lambda*t[k]) - float32(e*l[k])
		dl.change(k, gl, rate)
		dt.change(k, gt, rate)
	}
}

func dot[T number](x, y []T) (sum T) {
	for i, v := range x {
		sum += T(v * y[i])
	}
	return sum
}

// progress is how well the copies do that were just pulled.
func (r *mfRun) progress(epoch int) Progress {
	p := Progress{Worker: r.w.Rank, Epoch: epoch, Clock: r.clock, Count: r.own.Len(),
		At: time.Now()}
	for i, v := range r.own.value {
		e := float64(v - dot(r.l.value(r.own.row[i]), r.r.value(r.own.col[i])))
		p.Loss += float64(e * e)
	}
	return p
}

// Serial runs the task in float64, with all elements and no synchronizer; steps are plain
// ones. An element of the result is the progress before an epoch; the last one is the
// end's.
func (m *MF) Serial() ([]Progress, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	l, t := double(m.begin(m.Data.Rows, 0)), double(m.begin(m.Data.Cols, 1))
	curve := []Progress{m.serialProgress(0, l, t)}
	order := m.order(m.Data.Len(), 0)
	for epoch, rate := range m.schedule().rates() {
		for _, i := range order {
			m.serialStep(i, rate, l, t)
		}
		curve = append(curve, m.serialProgress(epoch+1, l, t))
	}
	return curve, nil
}

func (m *MF) serialStep(i int, rate float64, l, t []float64) {
	x := rowOf(l, m.Rank, m.Data.row[i])
	y := rowOf(t, m.Rank, m.Data.col[i])
	e := float64(m.Data.value[i]) - dot(x, y)
	for k := range x {
		gx := float64(m.Lambda*x[k]) - float64(e*y[k])
		gy := float64(m.Lambda*y[k]) - float64(e*x[k])
		x[k] -= float64(rate * gx)
		y[k] -= float64(rate * gy)
	}
}

func (m *MF) serialProgress(epoch int, l, t []float64) Progress {
	p := Progress{Epoch: epoch, Count: m.Data.Len()}
	for i, v := range m.Data.value {
		e := float64(v) - dot(rowOf(l, m.Rank, m.Data.row[i]), rowOf(t, m.Rank, m.Data.col[i]))
		p.Loss += float64(e * e)
	}
	return p
}

func rowOf[T any](x []T, cols int, row int32) []T { return x[int(row)*cols : (int(row)+1)*cols] }

func double(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
