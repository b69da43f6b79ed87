package gbt

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/orion"
)

// Options are how a forest is learnt.
type Options struct {
	Loss    Loss
	Trees   int
	Depth   int     // questions from the root to a leaf, at most
	Rate    float64 // what the values of a tree are multiplied by
	L2      float64 // the penalty of a leaf's value, by its square
	MinLeaf int     // samples of a leaf, at least
}

// maxDepth bounds trees, which have memory for all nodes of their depth.
const maxDepth = 12

// Check reports what is wrong with them.
func (o Options) Check() error {
	switch {
	case o.Loss < Squares || o.Loss > Logistic:
		return fmt.Errorf("loss %d: want squares or logistic", int(o.Loss))
	case o.Trees < 1:
		return fmt.Errorf("%d trees", o.Trees)
	case o.Depth < 1 || o.Depth > maxDepth:
		return fmt.Errorf("trees of depth %d: want 1 to %d", o.Depth, maxDepth)
	case !(o.Rate > 0) || math.IsInf(o.Rate, 0):
		return fmt.Errorf("rate %g: want more than 0", o.Rate)
	case !(o.L2 >= 0) || math.IsInf(o.L2, 0):
		return fmt.Errorf("a penalty of %g: want 0 or more", o.L2)
	case o.MinLeaf < 1:
		return fmt.Errorf("leaves of %d samples: want 1 or more", o.MinLeaf)
	}
	return nil
}

// Progress is how well a forest does on the samples that it is learnt from.
type Progress struct {
	Trees  int
	Loss   float64 // summed
	Errors int     // samples whose class is more likely the other one
}

// Worker is one worker's part in learning a forest. Its number is its rank in the group. All have
// the same data and options, and come to the same forest, whatever their number.
type Worker struct {
	Options
	Data  *Data
	Group distrib.Group
	// After is called with what all workers have come to, before the first tree and after every
	// one. What it returns ends the run, if it is an error. Nil: nobody asks.
	After func(ctx context.Context, p Progress) error

	schedule *orion.Schedule
	limits   [][]float32 // of all features
	rows     []int       // the samples that this worker has, by their numbers in the data
	bins     [][]uint8   // of the features that it counts, of these samples
	sets     []*samples  // of these samples, those that blocks count apart
	blocks   []block
	counted  *layout   // what the blocks count
	found    []*layout // by rank: of which features a worker finds the best splits
	owner    []int     // by feature: the rank of that worker

	forest  *Forest
	says    []float64 // by sample of this worker: what the forest says
	derived []pair    // derivatives, in units
	units   units
	tree    Tree    // that grows
	level   []*leaf // those that are counted or split in a pass
	spare   []pair
}

// loop is a pass over the data, as Orion sees it.
func loop(rows, cols int) *orion.Loop {
	n, d := int64(rows), int64(cols)
	at := func(dim int) orion.Subscript { return orion.Subscript{Form: orion.Index, Dim: dim} }
	return &orion.Loop{Name: "gbt",
		Space: []orion.Dim{{Name: "sample", Size: n}, {Name: "feature", Size: d}},
		Arrays: []orion.Array{{Name: "Bin", Shape: []int64{n, d}, Bytes: 1},
			{Name: "Derivatives", Shape: []int64{n, 2}, Bytes: 4},
			{Name: "Leaf", Shape: []int64{n}, Bytes: 4},
			{Name: "Histogram", Shape: []int64{d, MaxBins, 3}, Bytes: 8}},
		Refs: []orion.Ref{{Array: 0, Access: orion.Read, At: []orion.Subscript{at(0), at(1)}},
			{Array: 1, Access: orion.Read, At: []orion.Subscript{at(0), {Form: orion.All}}},
			{Array: 2, Access: orion.Read, At: []orion.Subscript{at(0)}},
			{Array: 3, Access: orion.Buffer, At: []orion.Subscript{at(1), {Form: orion.Unknown},
				{Form: orion.All}}}}}
}

// Run adds trees to a forest until it has all, or begins it if it has none.
func (w *Worker) Run(ctx context.Context, f *Forest) error {
	if err := errors.Join(w.Check(), w.Data.check()); err != nil {
		return err
	}
	c, err := orion.Choose(loop(w.Data.Rows, w.Data.Cols), orion.Options{Workers: w.Group.Size()})
	if err != nil {
		return err
	}
	w.schedule, w.forest = c.Over(nil), f
	w.divide()
	w.quantise()
	if len(f.Trees) == 0 {
		f.Base = w.Loss.base(w.Data.Label)
	}
	w.recall()
	if err := w.derive(ctx); err != nil || len(f.Trees) >= w.Trees {
		return err
	}
	passes := &orion.Worker{Schedule: w.schedule, Group: w.Group, Block: w.count, After: w.grow}
	return passes.Run(ctx, w.Depth*(w.Trees-len(f.Trees)))
}

// check reports what is wrong with data.
func (d *Data) check() error {
	switch {
	case d.Rows < 1 || d.Cols < 1:
		return fmt.Errorf("%d samples of %d features", d.Rows, d.Cols)
	case len(d.Label) != d.Rows:
		return fmt.Errorf("%d labels of %d samples", len(d.Label), d.Rows)
	}
	for i, y := range d.Label {
		if math.IsNaN(y) || math.IsInf(y, 0) {
			return fmt.Errorf("label %d is %g", i, y)
		}
	}
	return nil
}
