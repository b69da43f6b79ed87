package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// State is what a task has come to between two epochs, when all workers have seen all
// updates. Who begins from it, any number of workers, goes on as those would have.
type State struct {
	Epoch int         // epochs that are done
	Rows  [][]float32 // values of the shared parameters, in their order
}

// ErrStopped ends a run whose [Worker.Between] says so.
var ErrStopped = errors.New("stopped between epochs")

// resume gives parameters the values of a state; nil leaves them as they are. It returns the
// epochs that are done.
func (w Worker) resume(ps []*distrib.Param, epochs int) (int, error) {
	if w.From == nil {
		return 0, nil
	}
	if len(w.From.Rows) != len(ps) || w.From.Epoch < 0 || w.From.Epoch > epochs {
		return 0, fmt.Errorf("a state of %d parameters after %d epochs, the task has %d and %d",
			len(w.From.Rows), w.From.Epoch, len(ps), epochs)
	}
	for i, p := range ps {
		if len(w.From.Rows[i]) != p.Rows*p.Cols {
			return 0, fmt.Errorf("a state of %d elements of %s, which has %d", len(w.From.Rows[i]),
				p.Name, p.Rows*p.Cols)
		}
		give(p, w.From.Rows[i])
	}
	return w.From.Epoch, nil
}

// between hands out the state after an epoch, if somebody asks and it is not the last one.
// All have seen all updates then, and push no more before all have the state, if Between
// waits for them.
func between(ctx context.Context, t *tally, slack, epoch, epochs int, ps []*distrib.Param) error {
	if t.w.Between == nil || epoch == epochs {
		return nil
	}
	if err := settle(ctx, t.s, slack); err != nil {
		return err
	}
	for i, p := range ps {
		whole := distrib.Ref{Param: distrib.ParamID(i), N: int32(p.Rows)}
		if _, err := t.s.Pull(ctx, whole); err != nil {
			return err
		}
	}
	x := StateOf(ps, epoch)
	if err := t.show(ctx, t.last); err != nil {
		return err
	}
	stop, err := t.w.Between(ctx, x)
	if err == nil && stop {
		err = ErrStopped
	}
	return err
}

// values is a copy of all rows of a parameter, as numbers.
func values(p *distrib.Param) []float32 {
	if p.Kind == nil {
		return slices.Clone(p.Data)
	}
	all := make([]float32, p.Rows*p.Cols)
	for i, u := range p.Cells {
		u.AddTo(rowOf(all, p.Cols, int32(i)), p.Cols, 1)
	}
	return all
}

// give makes all rows of a parameter, dense or sparse, such numbers.
func give(p *distrib.Param, all []float32) {
	if p.Kind == nil {
		copy(p.Data, all)
		return
	}
	p.Cells = make([]distrib.Update, p.Rows)
	for i := range p.Cells {
		u := distrib.Sparse{N: p.Cols}
		for k, v := range rowOf(all, p.Cols, int32(i)) {
			if v != 0 {
				u.Idx, u.Val = append(u.Idx, uint32(k)), append(u.Val, v)
			}
		}
		p.Cells[i] = distrib.Add(distrib.Sparse{N: p.Cols}, u) // which is dense if that is less
	}
}

// Tables are those of a task's parameters that it learns: all but the table of losses.
func Tables(ps []*distrib.Param) []*distrib.Param {
	return slices.DeleteFunc(slices.Clone(ps), func(p *distrib.Param) bool { return p.Sync != nil })
}

// StateOf is what parameters hold after so many epochs.
func StateOf(ps []*distrib.Param, epoch int) State {
	x := State{Epoch: epoch}
	for _, p := range ps {
		x.Rows = append(x.Rows, values(p))
	}
	return x
}
