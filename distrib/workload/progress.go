package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/distrib/strads"
)

// Worker is who runs a part of a workload.
type Worker struct {
	Rank, Of int // among all workers
	// Report is called by the worker at the beginning, after every epoch and at the end.
	Report func(Progress) // nil: nobody asks
	// Total is called by worker 0 with what all workers reported of an epoch, once it knows;
	// the task must have Losses. Epochs come in order, each once.
	Total func(Progress) // nil: nobody asks
	// Compute is called after each share of a clock's work, which is 1 over the pushes in
	// a clock: an emulation of slow machines waits there.
	Compute func(ctx context.Context, share float64) error // nil: nothing
	// From is where the run begins, nil: at the beginning.
	From *State
	// Between is called after every epoch but the last, and may stop the run there. It must
	// wait for all workers, so that what it is given has no updates of the next epoch; all
	// that a task learns must be shared, as by [MF.Both].
	Between func(ctx context.Context, x State) (stop bool, err error) // nil: nobody asks
	// Group is the way from one worker to another, for tasks that are scheduled.
	Group distrib.Group
	// Keep is called by a task that is scheduled after every epoch, and saves the rows that this
	// worker has of what is learnt, if the epoch is one that is to be saved, as the last one is;
	// nil: nothing is.
	Keep func(epoch int, last bool, rows func() ([]distrib.SavedRows, error)) error
}

// Progress is how well a worker's copy does on its part of the data.
type Progress struct {
	Worker, Epoch int
	Clock         distrib.Clock
	At            time.Time
	// Loss is summed over Count elements of the training data: the cross entropy in nats, or
	// the squared error. Errors are those of wrong class.
	Loss          float64
	Errors, Count int
	// TestErrors of TestCount test samples have the wrong class; worker 0 counts them.
	TestErrors, TestCount int
	// TestLoss is summed over the test samples, and AUC is of them: of [LR] and [GBT]. Without test
	// samples, AUC of [LR] is of the training data.
	TestLoss, AUC float64
	// Sparse is how good the coefficients are: of [L1] only.
	Sparse *strads.Progress
	// Forest is of what loss the trees are: of [GBT] only.
	Forest *gbt.Loss
}

func (w Worker) check() error {
	if w.Of < 1 || w.Rank < 0 || w.Rank >= w.Of {
		return fmt.Errorf("worker %d of %d", w.Rank, w.Of)
	}
	return nil
}

func (w Worker) report(p Progress) {
	if w.Report != nil {
		w.Report(p)
	}
}

func (w Worker) compute(ctx context.Context, share float64) error {
	if w.Compute == nil {
		return nil
	}
	return w.Compute(ctx, share)
}

// Totals adds up what the workers of a run report. The zero value is empty.
type Totals struct {
	mu    sync.Mutex
	parts map[int][]Progress // by epoch
}

// Add is a [Worker.Report].
func (t *Totals) Add(p Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parts == nil {
		t.parts = map[int][]Progress{}
	}
	t.parts[p.Epoch] = append(t.parts[p.Epoch], p)
}

// Epoch is the sum of what n workers reported of an epoch, its time when the last one did, and the
// first one's AUC; !ok if that was fewer.
func (t *Totals) Epoch(epoch, n int) (sum Progress, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parts := slices.Clone(t.parts[epoch])
	slices.SortFunc(parts, func(a, b Progress) int { return a.Worker - b.Worker })
	for _, p := range parts {
		sum.Loss += p.Loss
		sum.Errors, sum.Count = sum.Errors+p.Errors, sum.Count+p.Count
		sum.TestErrors, sum.TestCount = sum.TestErrors+p.TestErrors, sum.TestCount+p.TestCount
		sum.TestLoss += p.TestLoss
		sum.Clock, sum.Epoch = max(sum.Clock, p.Clock), epoch
		if p.At.After(sum.At) {
			sum.At = p.At
		}
	}
	if len(parts) > 0 {
		sum.AUC = parts[0].AUC // areas do not add up
	}
	return sum, len(parts) == n
}

// Mean is the loss of an element.
func (p Progress) Mean() float64 { return p.Loss / float64(max(p.Count, 1)) }

// schedule is what all workloads have in common.
type schedule struct {
	epochs, clocks, pushes int
	rate, decay            float64
}

func (s schedule) check() error {
	switch {
	case s.epochs < 1:
		return fmt.Errorf("%d epochs", s.epochs)
	case s.clocks < 1 || s.pushes < 1:
		return errors.New("less than one clock an epoch, or push a clock")
	case !(s.rate > 0) || !(s.decay > 0) || s.decay > 1:
		return fmt.Errorf("step size %g, times %g an epoch", s.rate, s.decay)
	}
	return nil
}

// rates is the step size of each epoch.
func (s schedule) rates() []float64 {
	rates := make([]float64, s.epochs)
	r := s.rate
	for i := range rates {
		rates[i] = r
		r = float64(r * s.decay)
	}
	return rates
}

// part is the k-th of n parts of a number of elements.
func part(elements, k, n int) (from, to int) { return elements * k / n, elements * (k + 1) / n }

// settle ticks so often that a read which may be so many clocks stale sees everything.
func settle(ctx context.Context, s distrib.Synchronizer, slack int) error {
	for range slack {
		if _, err := s.Tick(ctx); err != nil {
			return err
		}
	}
	return nil
}
