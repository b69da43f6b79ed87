package orion

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// Body is what a loop does in an iteration. Workers call it at the same time, for iterations that
// do not depend on each other if it uses what the loop declares: see [Run.Debug].
type Body func(it *Iteration) error

// Iteration is what a body is called with. Index is not to be kept or changed.
type Iteration struct {
	Index  []int64
	Worker int // who runs it, so that buffered writes go to a buffer of its own

	checked *Loop // in debug mode
	wrong   error
}

// Run is one pass over a loop in this process, by a schedule.
type Run struct {
	*Schedule
	Points [][]int64 // the iterations, each once, in lexicographic order
	Body   Body
	// Debug holds each use of an element that the body announces by [Iteration.Use] to what the
	// loop declares.
	Debug bool
}

// work is the iterations of each block, by their numbers; of a worker, in order.
type work [][][]int

// divide finds the iterations of each block.
func (r *Run) divide() (work, error) {
	of := map[[2]int]*[]int{}
	w := make(work, len(r.Blocks))
	for k, blocks := range r.Blocks {
		w[k] = make([][]int, len(blocks))
		for i, b := range blocks {
			of[[2]int{b.Space, b.Time}] = &w[k][i]
		}
	}
	for i, p := range r.Points {
		if !r.Loop.has(p) || i > 0 && slices.Compare(r.Points[i-1], p) >= 0 {
			return nil, fmt.Errorf("point %d, %v, is outside of the loop, or not in order", i, p)
		}
		list := of[[2]int{r.Across.Part(p), r.Along.Part(p)}]
		*list = append(*list, i)
	}
	return w, nil
}

// block runs the iterations of one.
func (r *Run) block(ctx context.Context, worker int, points []int) error {
	it := Iteration{Worker: worker}
	if r.Debug {
		it.checked = r.Loop
	}
	for _, i := range points {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		it.Index = r.Points[i]
		if err := r.Body(&it); err != nil {
			return err
		}
		if it.wrong != nil {
			return it.wrong
		}
	}
	return nil
}

// Serial runs all blocks one after the other, in the order of their steps, which is one that all
// waits allow.
func (r *Run) Serial(ctx context.Context) error {
	all, err := r.divide()
	if err != nil {
		return err
	}
	var order []Place
	for w, blocks := range r.Blocks {
		for i := range blocks {
			order = append(order, Place{w, i})
		}
	}
	slices.SortStableFunc(order, func(a, b Place) int {
		return r.Blocks[a.Worker][a.Index].Step - r.Blocks[b.Worker][b.Index].Step
	})
	for _, p := range order {
		if err := r.block(ctx, p.Worker, all[p.Worker][p.Index]); err != nil {
			return err
		}
	}
	return nil
}

// Parallel runs the blocks of each worker in a goroutine of its own. They wait for what their
// blocks wait for, and nothing else. The first error ends all.
func (r *Run) Parallel(ctx context.Context) error {
	all, err := r.divide()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make([][]chan struct{}, len(r.Blocks)) // closed when a block has ended
	for w, blocks := range r.Blocks {
		done[w] = make([]chan struct{}, len(blocks))
		for i := range blocks {
			done[w][i] = make(chan struct{})
		}
	}
	var workers sync.WaitGroup
	for w, blocks := range r.Blocks {
		workers.Go(func() {
			for i, b := range blocks {
				if b.After != nil {
					select {
					case <-done[b.After.Worker][b.After.Index]:
					case <-ctx.Done():
						return
					}
				}
				if err := r.block(ctx, w, all[w][i]); err != nil {
					cancel(err)
					return
				}
				close(done[w][i])
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Worker is the run's part of one worker in a process of its own, the one of its rank in a group.
func (r *Run) Worker(g distrib.Group, m Memory) (*Worker, error) {
	all, err := r.divide()
	if err != nil {
		return nil, err
	}
	rank := g.Rank()
	return &Worker{Schedule: r.Schedule, Group: g, Memory: m,
		Block: func(ctx context.Context, _, index int) error {
			return r.block(ctx, rank, all[rank][index])
		},
		Points: func(index int) iter.Seq[[]int64] {
			return func(yield func([]int64) bool) {
				for _, i := range all[rank][index] {
					if !yield(r.Points[i]) {
						return
					}
				}
			}
		}}, nil
}
