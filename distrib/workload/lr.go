package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/libm"
)

// LR is logistic regression of two classes on many features of which a sample has few, as
// predictions of clicks are: Parameter Flow's LR, Orion's SLR. The weights have no bias, but a
// feature that all samples have is one. They lie in rows that are sparse, of which a worker pulls
// those that its next samples have, and pushes what it has changed.
type LR struct {
	Train *Samples // of two classes, 0 and 1
	Test  *Samples // nil: none

	Epochs int
	Clocks int     // an epoch: batches of a worker's samples, 0: 1
	Rate   float64 // the step size
	Decay  float64 // what it is multiplied by every epoch, 0: 1
	Slack  int     // clocks that reads may be stale: the last report sees all updates
	Cols   int     // weights of a row, 0: 64

	// Dense has rows that are dense numbers, all of which are pulled, as without sparse rows.
	Dense bool
	// Losses has what workers report added up in a table, for [Worker.Total].
	Losses bool
}

func (l *LR) schedule() schedule {
	return schedule{l.Epochs, max(l.Clocks, 1), 1, l.Rate, orOne(l.Decay)}
}

func (l *LR) cols() int {
	if l.Cols == 0 {
		return 64
	}
	return l.Cols
}

func (l *LR) rows() int { return (l.Train.Features + l.cols() - 1) / l.cols() }

// Rounds are how many epochs there are, and clocks in each.
func (l *LR) Rounds() (epochs, clocks int) { return l.Epochs, l.schedule().clocks }

// Check reports what is wrong with the task.
func (l *LR) Check() error {
	switch {
	case l.Train == nil || l.Train.Len() == 0:
		return errors.New("lr: no training samples")
	case l.Train.Classes > 2:
		return fmt.Errorf("lr: %d classes: want two, 0 and 1, or -1 and 1", l.Train.Classes)
	case l.Train.Features == 0:
		return errors.New("lr: no sample has a feature")
	case l.Test != nil && (l.Test.Features != l.Train.Features || l.Test.Classes > 2):
		return fmt.Errorf("lr: test samples of %d features and %d classes, training samples of %d "+
			"and %d", l.Test.Features, l.Test.Classes, l.Train.Features, l.Train.Classes)
	case l.Cols < 0:
		return fmt.Errorf("lr: rows of %d weights", l.Cols)
	}
	if err := l.schedule().check(); err != nil {
		return fmt.Errorf("lr: %w", err)
	}
	return nil
}

// Params are the task's parameters at the beginning, a worker's own: the weights, and the table of
// losses if there is one.
func (l *LR) Params() []*distrib.Param {
	w := &distrib.Param{Name: "lr/w", Rows: l.rows(), Cols: l.cols(), Kind: distrib.SparseRows{}}
	if l.Dense {
		w.Kind, w.Data = nil, make([]float32, w.Rows*w.Cols)
	}
	ps := []*distrib.Param{w}
	if l.Losses {
		ps = append(ps, tallyParam("lr/loss", l.Epochs, l.Slack))
	}
	return ps
}

// Run is a worker's part. It attaches [LR.Params], and leaves the synchronizer open.
func (l *LR) Run(ctx context.Context, s distrib.Synchronizer, w Worker) error {
	if err := errors.Join(l.Check(), w.check()); err != nil {
		return err
	}
	ps := l.Params()
	done, err := w.resume(ps, l.Epochs)
	if err != nil {
		return fmt.Errorf("lr: %w", err)
	}
	if err := s.Attach(ps...); err != nil {
		return err
	}
	n := l.rows() * l.cols()
	r := &lrRun{LR: l, s: s, w: w, params: ps, done: done, own: l.Train.Shard(w.Rank, w.Of),
		weight: make([]float32, n), before: make([]float32, n), changed: make([]bool, n),
		wanted: make([]bool, l.rows()),
		tally:  tally{s: s, w: w, id: 1, total: l.Train.Len(), shown: done}}
	if l.Losses {
		r.tally.param = ps[1]
	}
	return r.run(ctx)
}

type lrRun struct {
	*LR
	s      distrib.Synchronizer
	w      Worker
	params []*distrib.Param // the weights first
	done   int              // epochs, before the run
	own    *Samples
	clock  distrib.Clock
	tally  tally

	weight  []float32 // as they were pulled, and then changed
	before  []float32 // as they were pulled, of those that are changed
	changed []bool
	list    []uint32 // that are
	wanted  []bool   // rows that are to be pulled
}

func (r *lrRun) run(ctx context.Context) error {
	sch := r.schedule()
	for epoch, rate := range sch.rates() {
		if epoch < r.done {
			continue
		}
		for c := range sch.clocks {
			if c == 0 {
				if err := r.look(ctx, epoch); err != nil {
					return err
				}
			}
			from, to := part(r.own.Len(), c, sch.clocks)
			if err := r.tick(ctx, from, to, float32(rate)); err != nil {
				return err
			}
		}
		if err := between(ctx, &r.tally, r.Slack, epoch+1, sch.epochs, r.params); err != nil {
			return err
		}
	}
	return finish(ctx, r.s, r.Slack, sch.epochs, &r.tally, r.pullAll, r.progress)
}

// look reports how well the weights do that there are.
func (r *lrRun) look(ctx context.Context, epoch int) error {
	if err := r.pullAll(ctx); err != nil {
		return err
	}
	return report(ctx, &r.tally, r.progress(epoch))
}

// pullAll pulls what all of the worker's samples need.
func (r *lrRun) pullAll(ctx context.Context) error {
	r.want(r.own, 0, r.own.Len())
	if r.tests() {
		r.want(r.Test, 0, r.Test.Len())
	}
	return r.pull(ctx)
}

// tests reports whether it is this worker that looks at test samples.
func (r *lrRun) tests() bool { return r.Test != nil && r.w.Rank == 0 }

// want notes the rows of samples [from, to).
func (r *lrRun) want(s *Samples, from, to int) {
	for _, at := range s.index[s.start[from]:s.start[to]] {
		r.wanted[int(at)/r.cols()] = true
	}
}

// pull brings the rows that are wanted, in runs that lie together.
func (r *lrRun) pull(ctx context.Context) error {
	var refs []distrib.Ref
	for i, wanted := range r.wanted {
		if !wanted && !r.Dense {
			continue
		}
		r.wanted[i] = false
		if k := len(refs) - 1; k >= 0 && int(refs[k].Row+refs[k].N) == i {
			refs[k].N++
		} else {
			refs = append(refs, distrib.Ref{Row: int32(i), N: 1})
		}
	}
	if err := pullRows(ctx, r.s, refs); err != nil {
		return err
	}
	for _, ref := range refs {
		for row := ref.Row; row < ref.Row+ref.N; row++ {
			r.take(int(row))
		}
	}
	return nil
}

func pullRows(ctx context.Context, s distrib.Synchronizer, refs []distrib.Ref) error {
	if b, ok := s.(distrib.Batched); ok {
		return b.PullRows(ctx, refs)
	}
	for _, ref := range refs {
		if _, err := s.Pull(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// take copies a row that was pulled.
func (r *lrRun) take(row int) {
	p := r.params[0]
	to := rowOf(r.weight, p.Cols, int32(row))
	if p.Kind == nil {
		copy(to, rowOf(p.Data, p.Cols, int32(row)))
		return
	}
	clear(to)
	p.Cells[row].AddTo(to, p.Cols, 1)
}

// tick is one clock's work, on samples [from, to).
func (r *lrRun) tick(ctx context.Context, from, to int, rate float32) error {
	r.want(r.own, from, to)
	if err := r.pull(ctx); err != nil {
		return err
	}
	for i := from; i < to; i++ {
		r.step(i, rate)
	}
	if err := r.w.compute(ctx, 1); err != nil {
		return err
	}
	if err := r.push(ctx); err != nil {
		return err
	}
	var err error
	r.clock, err = r.s.Tick(ctx)
	return err
}

// step follows the gradient of one sample.
func (r *lrRun) step(i int, rate float32) {
	index, value := r.own.at(i)
	g := rate * slope(r.weight, index, value, r.own.label[i])
	for k, at := range index {
		if !r.changed[at] {
			r.changed[at], r.before[at] = true, r.weight[at]
			r.list = append(r.list, uint32(at))
		}
		r.weight[at] -= float32(g * value[k])
	}
}

// push hands over what has changed, a row at a time.
func (r *lrRun) push(ctx context.Context) error {
	slices.Sort(r.list)
	cols := uint32(r.cols())
	for len(r.list) > 0 {
		row, n := r.list[0]/cols, 0
		for n < len(r.list) && r.list[n]/cols == row {
			n++
		}
		u := distrib.Sparse{N: int(cols), Idx: make([]uint32, n), Val: make([]float32, n)}
		for k, at := range r.list[:n] {
			u.Idx[k], u.Val[k] = at%cols, r.weight[at]-r.before[at]
			r.changed[at] = false
		}
		r.list = r.list[n:]
		if err := r.s.Push(ctx, distrib.Ref{Row: int32(row), N: 1}, r.form(u)); err != nil {
			return err
		}
	}
	return nil
}

// form is an update in the form that rows have.
func (r *lrRun) form(u distrib.Sparse) distrib.Update {
	if r.Dense {
		return distrib.AsDense(u)
	}
	return u
}

// progress is how well the weights do that were just pulled.
func (r *lrRun) progress(epoch int) Progress {
	p := lrScore(r.own, r.weight)
	p.Worker, p.Epoch, p.Clock, p.At = r.w.Rank, epoch, r.clock, time.Now()
	if r.tests() {
		p.tested(lrScore(r.Test, r.weight))
	}
	return p
}

// tested notes how well test samples are done, and in what order.
func (p *Progress) tested(test Progress) {
	p.TestErrors, p.TestCount = test.Errors, test.Count
	p.TestLoss, p.AUC = test.Loss, test.AUC
}

// logit is the logarithm of the odds of class 1.
func logit[T number](w []T, index []int32, value []float32) T {
	var sum T
	for k, at := range index {
		sum += T(w[at] * T(value[k]))
	}
	return sum
}

// slope is the derivative of a sample's loss by its logit.
func slope[T number](w []T, index []int32, value []float32, label int32) T {
	z := float64(logit(w, index, value))
	return T(sigmoid(z) - float64(label))
}

// lrScore is the cross entropy of samples in nats, how many are on the wrong side, and AUC.
func lrScore[T number](s *Samples, w []T) Progress {
	p := Progress{Count: s.Len()}
	z := make([]float64, s.Len())
	for i := range z {
		index, value := s.at(i)
		z[i] = float64(logit(w, index, value))
		far := z[i] // on the wrong side, if it is positive
		if s.label[i] == 1 {
			far = -far
		}
		if far > 0 || far == 0 && s.label[i] == 1 {
			p.Errors++
		}
		p.Loss += max(far, 0) + libm.Log(1+libm.Exp(-max(far, -far)))
	}
	p.AUC = auc(z, s.label)
	return p
}

// auc is how likely a sample of class 1 has a higher score than one of class 0, half of what is
// equal counted: the area under the curve of hits by false alarms. It is 1/2 where a class has no
// samples.
func auc(score []float64, label []int32) float64 {
	order := make([]int, len(score))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case score[a] < score[b]:
			return -1
		case score[a] > score[b]:
			return 1
		}
		return 0
	})
	var won, below, ones float64 // pairs, samples of class 0 so far, and of class 1
	for i := 0; i < len(order); {
		var same [2]float64
		at := score[order[i]]
		same[label[order[i]]]++
		for i++; i < len(order) && score[order[i]] == at; i++ {
			same[label[order[i]]]++
		}
		won += float64(same[1] * (below + float64(same[0]/2)))
		below, ones = below+same[0], ones+same[1]
	}
	if below == 0 || ones == 0 {
		return 0.5
	}
	return won / (below * ones)
}

// Serial runs the task in float64, with all samples in order and no synchronizer. An element of
// the result is the progress before an epoch; the last one is the end's.
func (l *LR) Serial() ([]Progress, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	w := make([]float64, l.Train.Features)
	curve := []Progress{l.serialProgress(0, w)}
	for epoch, rate := range l.schedule().rates() {
		for i := range l.Train.Len() {
			index, value := l.Train.at(i)
			g := rate * slope(w, index, value, l.Train.label[i])
			for k, at := range index {
				w[at] -= float64(g * float64(value[k]))
			}
		}
		curve = append(curve, l.serialProgress(epoch+1, w))
	}
	return curve, nil
}

func (l *LR) serialProgress(epoch int, w []float64) Progress {
	p := lrScore(l.Train, w)
	p.Epoch = epoch
	if l.Test != nil {
		p.tested(lrScore(l.Test, w))
	}
	return p
}
