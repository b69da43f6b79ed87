package workload

import (
	"context"

	"github.com/gomem/gomem/distrib"
)

// tally is a table of what workers report, a row an epoch, in which the synchronizer adds
// up what they all say: so a worker in another process than the others can tell how well
// all do. It has a plan of its own, since a filter or an average would do it no good.
type tally struct {
	s     distrib.Synchronizer
	w     Worker
	id    distrib.ParamID
	param *distrib.Param
	total int // elements that all workers have
	shown int // epochs
	last  Progress
	own   map[int]Progress // by epoch
}

// The columns of a tally. Counts are shares of all, so that they add up to one.
const (
	tallyLoss = iota
	tallyErrors
	tallyTestErrors
	tallyCount
	tallyCols
)

// tallyParam is the table, for reads that may be so many clocks stale.
func tallyParam(name string, epochs, slack int) *distrib.Param {
	return &distrib.Param{Name: name, Rows: epochs + 1, Cols: tallyCols,
		Data: make([]float32, (epochs+1)*tallyCols),
		Sync: &distrib.Plan{Consistency: distrib.SSP{S: slack}}}
}

// add adds what a worker reports. Nothing happens without a table.
func (t *tally) add(ctx context.Context, p Progress) error {
	t.w.report(p)
	if t.last = p; t.own == nil {
		t.own = map[int]Progress{}
	}
	t.own[p.Epoch] = p
	if t.param == nil {
		return nil
	}
	u := make(distrib.Dense, tallyCols)
	u[tallyLoss] = float32(p.Loss / float64(t.total))
	u[tallyErrors] = float32(p.Errors) / float32(t.total)
	u[tallyTestErrors] = float32(p.TestErrors)
	u[tallyCount] = float32(p.Count) / float32(t.total)
	return t.s.Push(ctx, distrib.Ref{Param: t.id, Row: int32(p.Epoch), N: 1}, u)
}

// show has worker 0 tell of the epochs that all have reported by now.
func (t *tally) show(ctx context.Context, p Progress) error {
	if t.param == nil || t.w.Rank != 0 {
		return nil
	}
	if _, err := t.s.Pull(ctx, distrib.Ref{Param: t.id}); err != nil {
		return err
	}
	for ; t.shown < t.param.Rows; t.shown++ {
		row := t.param.Data[t.shown*tallyCols:][:tallyCols]
		if row[tallyCount] < 0.999 {
			break
		}
		all := Progress{Epoch: t.shown, Clock: p.Clock, At: p.At, Count: t.total,
			Loss:       float64(row[tallyLoss]) * float64(t.total),
			Errors:     int(float32(row[tallyErrors]*float32(t.total)) + 0.5),
			TestErrors: int(row[tallyTestErrors] + 0.5), TestCount: p.TestCount,
			TestLoss: t.own[t.shown].TestLoss, AUC: t.own[t.shown].AUC}
		if t.w.Total != nil {
			t.w.Total(all)
		}
	}
	return nil
}

// report reports, and has worker 0 tell what is known of all.
func report(ctx context.Context, t *tally, p Progress) error {
	if err := t.add(ctx, p); err != nil {
		return err
	}
	return t.show(ctx, p)
}

// finish reports the end, when all updates are seen, and waits until all have reported it.
func finish(ctx context.Context, s distrib.Synchronizer, slack, epochs int, t *tally,
	pull func(context.Context) error, progress func(epoch int) Progress) error {
	if err := settle(ctx, s, slack); err != nil {
		return err
	}
	if err := pull(ctx); err != nil {
		return err
	}
	p := progress(epochs)
	if err := t.add(ctx, p); err != nil || t.param == nil {
		return err
	}
	if err := settle(ctx, s, slack+1); err != nil {
		return err
	}
	return t.show(ctx, p)
}
