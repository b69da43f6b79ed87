package distrib

import (
	"context"
	"fmt"
)

// barriers are where clocks end everywhere, and plans have something done.
type barriers struct {
	e       *Engine
	done    Clock // up to which everything that is done at barriers is done
	meeting bool  // everybody is to have all updates: none waits on its way
	apart   bool  // a barrier's work goes on: updates of others wait
}

// reach does what plans want done when a clock has ended everywhere. It gives the
// lock up while it does; workers of this node wait in Tick, updates of others where they
// came in.
func (b *barriers) reach(ctx context.Context) error {
	var err error
	for _, l := range b.e.lanes {
		for _, job := range l.plan.Every {
			at := b.e.workers.clock
			if err == nil && job.Every > 0 && at%job.Every == 0 && at < endOfTime {
				err = b.meet(ctx, l, job)
			}
		}
	}
	b.done = b.e.workers.clock
	b.e.wake()
	return err
}

// meets reports whether something is done when a clock has ended.
func (b *barriers) meets(c Clock) bool {
	for _, l := range b.e.lanes {
		for _, job := range l.plan.Every {
			if job.Every > 0 && c%job.Every == 0 {
				return true
			}
		}
	}
	return false
}

// meet runs one piece of work. Where replicas send each other updates, those of the
// clocks before are folded in first, so that none is counted twice.
func (b *barriers) meet(ctx context.Context, l *lane, job Periodic) error {
	e := b.e
	if l.mode == graph || l.mode == carry {
		if err := b.gather(ctx, l); err != nil {
			return err
		}
	}
	r := &Round{Clock: e.workers.clock, Group: e.cfg.Group, Drain: l.outbox.drain}
	for _, p := range l.params {
		r.Params = append(r.Params, &Param{Name: p.name, Rows: p.rows, Cols: p.cols,
			Data: p.rowsOf(p.whole())})
	}
	b.apart = true
	e.mu.Unlock()
	err := job.Do(ctx, r)
	e.mu.Lock()
	b.apart = false
	e.wake()
	for _, p := range l.params {
		e.workers.touch(p, p.whole())
	}
	e.record.rebase = true
	if err != nil {
		return fmt.Errorf("distrib: at the barrier of clock %d: %w", e.workers.clock, err)
	}
	return nil
}

// gather sends everything, and waits until everything of the clocks before is here.
func (b *barriers) gather(ctx context.Context, l *lane) error {
	e := b.e
	b.meeting = true
	defer func() { b.meeting = false }()
	for _, x := range l.outbox.boxes {
		if l.mode == graph {
			x.wanted = true
			continue
		}
		x.marks, x.told = []mark{{e.self, e.workers.clock}}, e.workers.clock
		l.outbox.dispatch(x, x.take(func(*item) bool { return true }), header{})
	}
	e.nudge()
	at := e.workers.clock
	return e.wait(ctx, waiting{
		ready: func() bool { return l.seen.min() >= at }, clock: at,
		what: func() string { return "the barrier" },
		who:  func() []NodeID { return l.seen.behind(nil, at) },
	})
}

// Reduce adds x up over the nodes of a group, with the same bits on all of them: a
// collective, which is another package's.
type Reduce func(ctx context.Context, g Group, x []float32) error

// Average sets all replicas to their mean every n clocks. What has not been sent to
// everybody by then is sent before.
func Average(every Clock, sum Reduce) Periodic {
	return Periodic{every, func(ctx context.Context, r *Round) error {
		for _, p := range r.Params {
			if err := mean(ctx, r.Group, sum, p.Data); err != nil {
				return err
			}
		}
		return nil
	}}
}

func mean(ctx context.Context, g Group, sum Reduce, x []float32) error {
	if err := sum(ctx, g, x); err != nil {
		return err
	}
	part := 1 / float32(g.Size())
	for i := range x {
		x[i] *= part
	}
	return nil
}

// Sum folds what the workers of all nodes have pushed since the last time into every
// replica, every n clocks. With every == 1 this is data-parallel training by all-reduce.
// It is for plans that send nothing themselves.
func Sum(every Clock, sum Reduce) Periodic {
	return Periodic{every, func(ctx context.Context, r *Round) error {
		for i, p := range r.Params {
			d := make(Dense, p.Rows*p.Cols)
			if u := r.Drain(Ref{Param: ParamID(i)}); u != nil {
				u.AddTo(d, p.Cols, 1)
			}
			if err := sum(ctx, r.Group, d); err != nil {
				return err
			}
			d.AddTo(p.Data, p.Cols, 1)
		}
		return nil
	}}
}

// Own folds a node's own updates into its own replica at every clock, and nobody else's:
// for plans under which replicas meet at barriers only, before [Average] or [Elastic].
func Own() Periodic {
	return Sum(1, func(context.Context, Group, []float32) error { return nil })
}

// Elastic is elastic averaging (Zhang, Choromanska and LeCun, NIPS 2015), synchronous:
// every n clocks each replica x and a centre move towards each other, x by alpha times
// their distance, the centre by beta times its distance from the mean of all x. The
// centre begins as that mean, and stays the same on all nodes. It is state: each node
// has a Periodic of its own.
func Elastic(every Clock, alpha, beta float32, sum Reduce) Periodic {
	var centre [][]float32
	return Periodic{every, func(ctx context.Context, r *Round) error {
		for i, p := range r.Params {
			all := append([]float32(nil), p.Data...)
			if err := mean(ctx, r.Group, sum, all); err != nil {
				return err
			}
			if len(centre) <= i {
				centre = append(centre, append([]float32(nil), all...))
			}
			for j, c := range centre[i] {
				p.Data[j] -= float32(alpha * (p.Data[j] - c))
				centre[i][j] += float32(beta * (all[j] - c))
			}
		}
		return nil
	}}
}
