package train

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
)

// Workers divide an evaluation: of the batches each has every n-th, and worker 0 adds up what
// came of all of them, in the order of the batches, as it would alone. So the numbers are
// those of one worker, to the bit on one kind of device. Only who has the variables of worker
// 0 takes part: replicas that are kept in step between steps may differ. What a worker does
// not come to, because it is to end, worker 0 does itself.

// What workers say before an evaluation, in the first byte; a fingerprint of their variables
// may follow.
const (
	takesPart = 1 << iota // it is not to end
	mayDivide             // it has a scorer that divides, or none
)

// assess evaluates, which all do together: worker 0 has the result, and tells the others
// whether to go on.
func (r *run) assess(ctx context.Context) error {
	if r.Parallel == nil {
		err := r.evaluate(ctx, false)
		r.rated = r.done
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if err := r.evaluate(ctx, false); err != nil {
		return err
	}
	if r.leads() {
		r.rated = r.done
	}
	over := []byte{flag(r.watch.over())}
	if r.elastic() != nil { // another worker may lead next
		best, err := json.Marshal(r.watch.best)
		if err != nil {
			return err
		}
		over = append(over, best...)
	}
	says, err := r.agree(context.WithoutCancel(ctx), over)
	if err != nil {
		return err
	}
	r.rated = r.done
	if over = says[0]; len(over) > 0 && over[0] == 1 {
		r.team.stop, r.summary.StoppedEarly = true, true
	}
	if err := r.saveAll(ctx, r.team.best); err != nil {
		return err
	}
	r.team.best = false
	if r.elastic() == nil || r.leads() || len(over) == 0 {
		return nil
	}
	if err := json.Unmarshal(over[1:], &r.watch.best); err != nil {
		return err
	}
	r.watch.step = r.watch.best.Step
	return nil
}

// divide evaluates with the other workers. The result is worker 0's.
func (r *run) divide(ctx context.Context, last bool) error {
	scorer := r.scorer(last)
	takers, err := r.takers(ctx, scorer)
	if err != nil || len(takers) == 0 {
		return err
	}
	at := slices.Index(takers, r.Parallel.Rank)
	mine, err := r.test(ctx, scorer, func(i int) bool { return at >= 0 && i%len(takers) == at })
	if err != nil {
		return err
	}
	says, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	told, err := r.agree(context.WithoutCancel(ctx), says)
	if err != nil || !r.leads() || ctx.Err() != nil {
		return err
	}
	return r.gather(ctx, told, scorer, last)
}

// takers are the ranks that take part in an evaluation, worker 0 first; none if worker 0 is
// to end.
func (r *run) takers(ctx context.Context, s Scorer) ([]int, error) {
	_, divides := s.(Divisible)
	says := []byte{flag(ctx.Err() == nil)*takesPart | flag(s == nil || divides)*mayDivide}
	if r.Parallel.Between != nil && gomem.Computes(r.Session.Device) {
		vars := slices.DeleteFunc(slices.Clone(r.session.Variables()), not(Learnt(r.Model.Graph)))
		sums, err := checksums(r.session, vars)
		if err != nil {
			return nil, err
		}
		says = append(says, fingerprint(sums)...)
	}
	all, err := r.agree(context.WithoutCancel(ctx), says)
	if err != nil {
		return nil, err
	}
	var takers []int
	for rank, said := range all {
		if len(said) != len(says) {
			return nil, fmt.Errorf("worker %d is another version", r.number(rank))
		}
		alike := slices.Equal(said[1:], all[0][1:])
		if said[0]&takesPart != 0 && (rank == 0 || alike && all[0][0]&mayDivide != 0) {
			takers = append(takers, rank)
		}
	}
	if all[0][0]&takesPart == 0 {
		return nil, nil
	}
	return takers, nil
}

func not[T any](f func(T) bool) func(T) bool { return func(x T) bool { return !f(x) } }

// test evaluates the held-out batches that are taken, as many as it comes to before ctx is
// done, and takes the scorer's parts of them out.
func (r *run) test(ctx context.Context, s Scorer, take func(i int) bool) (out []tested, err error) {
	divisible, _ := s.(Divisible)
	for i := range r.evalBatches() {
		if ctx.Err() != nil {
			break
		}
		if !take(i) {
			if divisible != nil {
				divisible.Skip()
			}
			continue
		}
		x, err := r.testBatch(ctx, s, i)
		if err != nil {
			return out, unlessDone(ctx, err)
		}
		if divisible != nil {
			if x.Score, err = divisible.Part(); err != nil {
				return nil, err
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// gather makes of what all have told the result that one worker has. What is missing it
// does itself.
func (r *run) gather(ctx context.Context, told [][]byte, s Scorer, last bool) error {
	done := make([]*tested, r.evalBatches())
	if err := r.sort(told, done); err != nil {
		return err
	}
	if slices.Contains(done, nil) {
		rest, err := r.test(ctx, r.scorer(last), func(i int) bool { return done[i] == nil })
		if err != nil {
			return err
		}
		for _, x := range rest {
			done[x.Batch] = &x
		}
	}
	if slices.Contains(done, nil) {
		return nil // it is to end
	}
	if d, ok := s.(Divisible); ok {
		for _, x := range done {
			if err := d.Add(x.Score); err != nil {
				return err
			}
		}
	}
	return r.averaged(done, s)
}

// sort puts what all have told where it belongs.
func (r *run) sort(told [][]byte, done []*tested) error {
	for rank, said := range told {
		var some []tested
		if err := json.Unmarshal(said, &some); err != nil {
			return fmt.Errorf("worker %d is another version: %w", r.number(rank), err)
		}
		for _, x := range some {
			if x.Batch < 0 || x.Batch >= len(done) || done[x.Batch] != nil ||
				len(x.Values) != 1+len(r.Model.EvalMetrics) {
				return fmt.Errorf("worker %d evaluates a batch %d that was not its own, or "+
					"another model", r.number(rank), x.Batch)
			}
			done[x.Batch] = &x
		}
	}
	return nil
}
