package train

import "context"

// join has the variables kept in step from here on.
func (r *run) join(ctx context.Context) error {
	if r.team.journal.to = r.Parallel.Journal; r.team.journal.to != nil {
		if err := r.team.journal.begin(r.checkpoint(), r.session); err != nil {
			return err
		}
	}
	b := r.Parallel.Between
	if b == nil {
		return nil
	}
	if err := b.Begin(ctx, r.session); err != nil {
		return err
	}
	return r.team.journal.mark(r.checkpoint, r.session)
}

// settle waits for all workers: every step has been heard of, and every change is in the
// variables. It does so once after a step, so that what is evaluated after it is what is saved,
// and what the run ends with.
func (r *run) settle(ctx context.Context) error {
	if r.Parallel == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	for len(r.team.pending) > 0 {
		if err := r.heard(ctx); err != nil {
			return err
		}
	}
	if b := r.Parallel.Between; b != nil && r.course.done > 0 && r.team.settled != r.course.done {
		if err := b.Settle(ctx, r.session); err != nil {
			return err
		}
		r.team.settled = r.course.done
		return r.team.journal.mark(r.checkpoint, r.session)
	}
	return nil
}

// disband has all workers at one place at the end, where those that exchange gradients have
// the same values.
func (r *run) disband(ctx context.Context) error {
	if r.Parallel == nil {
		return nil
	}
	err := r.settle(ctx)
	ctx = context.WithoutCancel(ctx)
	switch b := r.Parallel.Between; {
	case err != nil:
		return err
	case b == nil && r.course.done > 0:
		return r.holding().equal(ctx, r.course.done)
	case b == nil:
		return nil
	default: // nobody leaves before all have what they wait for
		if _, err := r.Parallel.agree(ctx, nil); err != nil {
			return err
		}
		if err := b.End(ctx); err != nil {
			return err
		}
	}
	_, err = r.Parallel.agree(ctx, nil)
	return err
}
