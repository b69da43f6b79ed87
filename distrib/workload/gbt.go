package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/internal/libm"
)

// GBT is gradient-boosted trees (package [github.com/gomem/gomem/distrib/gbt]), a tree an epoch: of
// numbers, or of two classes, by the options' loss. Any number of workers come to the same trees.
type GBT struct {
	gbt.Options
	Train *Samples // with numbers as labels, or of two classes
	Test  *Samples // nil: none
}

// maxTrees bounds a forest.
const maxTrees = 1 << 17

// maxBins bounds the elements of samples by features, of which each is a byte.
const maxBins = 1 << 33

// Rounds are how many trees there are, of one clock each.
func (m *GBT) Rounds() (epochs, clocks int) { return m.Trees, 1 }

// Check reports what is wrong with the task.
func (m *GBT) Check() error {
	s := m.Train
	switch {
	case s == nil || s.Len() == 0:
		return errors.New("gbt: no training samples")
	case s.Features == 0:
		return errors.New("gbt: no sample has a feature")
	case m.Loss == gbt.Logistic && (s.target != nil || s.Classes > 2):
		return fmt.Errorf("gbt: %d classes: want two, 0 and 1, or -1 and 1", s.Classes)
	case m.Trees > maxTrees:
		return fmt.Errorf("gbt: %d trees: want %d at most", m.Trees, maxTrees)
	case int64(s.Len())*int64(s.Features) > maxBins:
		return fmt.Errorf("gbt: %d samples of %d features are more than %d numbers: number "+
			"features from 1 on, without gaps, or give fewer", s.Len(), s.Features, int64(maxBins))
	case m.Test != nil && m.Test.Features != s.Features:
		return fmt.Errorf("gbt: test samples of %d features, training samples of %d",
			m.Test.Features, s.Features)
	}
	if err := m.Options.Check(); err != nil {
		return fmt.Errorf("gbt: %w", err)
	}
	return nil
}

// nodeCols are the numbers of a node: its feature, -1 of a leaf, its limit, and its value.
const nodeCols = 3

// Params are what is learnt in the end: the base, and a row for each tree, which has the nodes of
// a whole one of its depth, each before those below it.
func (m *GBT) Params() []*distrib.Param { return m.Grown(m.Trees) }

// Grown are the parameters after so many epochs.
func (m *GBT) Grown(epoch int) []*distrib.Param {
	cols := nodeCols * (2<<m.Depth - 1)
	epoch = min(max(epoch, 0), maxTrees) // whatever a file says
	return []*distrib.Param{{Name: "gbt/base", Rows: 1, Cols: 1, Data: make([]float32, 1)},
		{Name: "gbt/trees", Rows: epoch, Cols: cols, Data: make([]float32, epoch*cols)}}
}

// params are a forest's.
func (m *GBT) params(f *gbt.Forest) []*distrib.Param {
	ps := m.Grown(len(f.Trees))
	ps[0].Data[0] = f.Base
	for i, t := range f.Trees {
		row := rowOf(ps[1].Data, ps[1].Cols, int32(i))
		for k, n := range t {
			copy(row[nodeCols*k:], []float32{float32(n.Feature), n.Limit, n.Value})
		}
	}
	return ps
}

// forest is that of parameters.
func (m *GBT) forest(ps []*distrib.Param) (*gbt.Forest, error) {
	f := &gbt.Forest{Base: ps[0].Data[0]}
	for i := range ps[1].Rows {
		row := rowOf(ps[1].Data, ps[1].Cols, int32(i))
		t := make(gbt.Tree, len(row)/nodeCols)
		for k := range t {
			x := row[nodeCols*k:]
			if !(x[0] >= -1 && x[0] < float32(m.Train.Features)) || x[0] >= 0 && 2*k+2 >= len(t) {
				return nil, fmt.Errorf("node %d of tree %d asks for feature %g", k, i, x[0])
			}
			t[k] = gbt.Node{Feature: int32(x[0]), Limit: x[1], Value: x[2]}
		}
		f.Trees = append(f.Trees, t)
	}
	return f, nil
}

// Run is a worker's part. There is nothing to synchronise, so it takes no synchronizer.
func (m *GBT) Run(ctx context.Context, _ distrib.Synchronizer, w Worker) error {
	if err := errors.Join(m.Check(), w.check()); err != nil {
		return err
	}
	r := &gbtRun{GBT: m, w: w, forest: &gbt.Forest{}}
	if w.From != nil && w.From.Epoch > 0 {
		ps := m.Grown(w.From.Epoch)
		_, err := w.resume(ps, m.Trees)
		if err == nil {
			r.forest, err = m.forest(ps)
		}
		if err != nil {
			return fmt.Errorf("gbt: %w", err)
		}
	}
	r.done = len(r.forest.Trees)
	label := make([]float64, m.Train.Len())
	for i := range label {
		label[i] = m.Train.number(i)
	}
	all := &gbt.Worker{Options: m.Options, Group: w.Group, After: r.after,
		Data: &gbt.Data{Rows: m.Train.Len(), Cols: m.Train.Features, Label: label,
			Column: m.Train.byColumn()}}
	return all.Run(ctx, r.forest)
}

// byColumn is a function that writes a feature of all samples.
func (s *Samples) byColumn() func(j int, to []float32) {
	x := s.columns()
	return func(j int, to []float32) {
		clear(to)
		for k := x.start[j]; k < x.start[j+1]; k++ {
			to[x.row[k]] = x.value[k]
		}
	}
}

// gbtRun is a worker's part in a run.
type gbtRun struct {
	*GBT
	w      Worker
	forest *gbt.Forest
	done   int       // trees, before the run
	says   []float64 // what the forest says of test samples
	trees  int       // which of them were asked
}

// after says how far all are, keeps what is due, and hands out the state if somebody asks.
func (r *gbtRun) after(ctx context.Context, p gbt.Progress) error {
	last := p.Trees == r.Trees
	if r.w.Rank == 0 {
		r.say(p)
	}
	if p.Trees == r.done {
		return nil
	}
	if r.w.Keep != nil && r.w.Rank == 0 { // all have all trees
		if err := r.w.Keep(p.Trees, last, r.own); err != nil {
			return err
		}
	}
	if r.w.Between == nil || last {
		return nil
	}
	stop, err := r.w.Between(ctx, StateOf(r.params(r.forest), p.Trees))
	if err == nil && stop {
		err = ErrStopped
	}
	return err
}

// own are the rows of all that is learnt.
func (r *gbtRun) own() (rows []distrib.SavedRows, _ error) {
	for _, p := range r.params(r.forest) {
		rows = append(rows, distrib.SavedRows{Param: p.Name, Cols: p.Cols, N: int32(p.Rows),
			Data: p.Data})
	}
	return rows, nil
}

// say tells how well the forest does.
func (r *gbtRun) say(p gbt.Progress) {
	if r.w.Total == nil {
		return
	}
	x := Progress{Epoch: p.Trees, Loss: p.Loss, Errors: p.Errors, Count: r.Train.Len(),
		Forest: &r.Loss}
	if r.Test != nil {
		r.test(&x)
	}
	r.w.Total(x)
}

// test asks the trees that are new of the test samples.
func (r *gbtRun) test(p *Progress) {
	n := r.Test.Len()
	if r.says == nil {
		r.says = make([]float64, n)
		for i := range r.says {
			r.says[i] = float64(r.forest.Base)
		}
	}
	row := make([]float32, r.Test.Features)
	p.TestCount = n
	for i := range n {
		index, value := r.Test.at(i)
		r.says[i] = along(r.forest.Trees[r.trees:], r.says[i], row, index, value)
		y := r.Test.number(i)
		p.TestLoss += r.Loss.Of(y, r.says[i])
		if r.Loss == gbt.Logistic && (r.says[i] > 0) != (y == 1) {
			p.TestErrors++
		}
	}
	r.trees = len(r.forest.Trees)
	if r.Loss == gbt.Logistic {
		p.AUC = auc(r.says, r.Test.label)
	}
}

// Friedman draws samples of ten features that are uniform in [0, 1), whose labels are
//
//	10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5
//
// and noise of variance 1 (J. Friedman, 1991); or, with classes, whether that is more than 14.4, as
// it is of half of them.
func Friedman(seed uint64, train, test int, classes bool) (*Samples, *Samples) {
	rng := rand.New(rand.NewPCG(seed, 12))
	draw := func(n int) *Samples {
		s := &Samples{Features: 10, Classes: 1, start: []int32{0}}
		for range n {
			y := friedman(rng, s) + libm.Normal(rng)
			switch {
			case !classes:
				s.target = append(s.target, y)
				s.end(0)
			case y > 14.4:
				s.Classes = 2
				s.end(1)
			default:
				s.end(0)
			}
		}
		return s
	}
	return draw(train), draw(test)
}

// friedman draws the features of a sample, and is what its label is without noise.
func friedman(rng *rand.Rand, s *Samples) float64 {
	var x [10]float64
	for j := range x {
		v := float32(rng.Float64())
		x[j] = float64(v)
		s.index, s.value = append(s.index, int32(j)), append(s.value, v)
	}
	half := x[2] - 0.5
	return float64(10*libm.Sin(math.Pi*x[0]*x[1])) + float64(20*half*half) + float64(10*x[3]) +
		float64(5*x[4])
}
