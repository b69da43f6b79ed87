package train

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

// divide evaluates with the other workers. The result is worker 0's.
func (x *exam) divide(ctx context.Context) (*outcome, error) {
	scorer := x.scorer()
	takers, err := x.takers(ctx, scorer)
	if err != nil || len(takers) == 0 {
		return nil, err
	}
	at := slices.Index(takers, x.parallel.Rank)
	mine, err := x.test(ctx, scorer, func(i int) bool { return at >= 0 && i%len(takers) == at })
	if err != nil {
		return nil, err
	}
	says, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	told, err := x.parallel.agree(context.WithoutCancel(ctx), says)
	if err != nil || x.parallel.Rank != 0 || ctx.Err() != nil {
		return nil, err
	}
	return x.gather(ctx, told, scorer)
}

// takers are the ranks that take part in an evaluation, worker 0 first; none if worker 0 is
// to end.
func (x *exam) takers(ctx context.Context, s Scorer) ([]int, error) {
	_, divides := s.(Divisible)
	says := []byte{flag(ctx.Err() == nil)*takesPart | flag(s == nil || divides)*mayDivide}
	if x.parallel.Between != nil && x.computes {
		vars := slices.DeleteFunc(slices.Clone(x.session.Variables()), not(Learnt(x.model.Graph)))
		sums, err := checksums(x.session, vars)
		if err != nil {
			return nil, err
		}
		says = append(says, fingerprint(sums)...)
	}
	all, err := x.parallel.agree(context.WithoutCancel(ctx), says)
	if err != nil {
		return nil, err
	}
	var takers []int
	for rank, said := range all {
		if len(said) != len(says) {
			return nil, fmt.Errorf("worker %d is another version", x.parallel.number(rank))
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
func (x *exam) test(ctx context.Context, s Scorer, take func(i int) bool) (out []tested,
	err error) {
	divisible, _ := s.(Divisible)
	for i := range x.batches {
		if ctx.Err() != nil {
			break
		}
		if !take(i) {
			if divisible != nil {
				divisible.Skip()
			}
			continue
		}
		one, err := x.testBatch(ctx, s, i)
		if err != nil {
			return out, unlessDone(ctx, err)
		}
		if divisible != nil {
			if one.Score, err = divisible.Part(); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// gather makes of what all have told the result that one worker has. What is missing it
// does itself.
func (x *exam) gather(ctx context.Context, told [][]byte, s Scorer) (*outcome, error) {
	done := make([]*tested, x.batches)
	if err := x.sort(told, done); err != nil {
		return nil, err
	}
	if slices.Contains(done, nil) {
		rest, err := x.test(ctx, x.scorer(), func(i int) bool { return done[i] == nil })
		if err != nil {
			return nil, err
		}
		for _, one := range rest {
			done[one.Batch] = &one
		}
	}
	if slices.Contains(done, nil) {
		return nil, nil // it is to end
	}
	if d, ok := s.(Divisible); ok {
		for _, one := range done {
			if err := d.Add(one.Score); err != nil {
				return nil, err
			}
		}
	}
	return x.averaged(done, s)
}

// sort puts what all have told where it belongs.
func (x *exam) sort(told [][]byte, done []*tested) error {
	for rank, said := range told {
		var some []tested
		if err := json.Unmarshal(said, &some); err != nil {
			return fmt.Errorf("worker %d is another version: %w", x.parallel.number(rank), err)
		}
		for _, one := range some {
			if one.Batch < 0 || one.Batch >= len(done) || done[one.Batch] != nil ||
				len(one.Values) != 1+len(x.model.EvalMetrics) {
				return fmt.Errorf("worker %d evaluates a batch %d that was not its own, or "+
					"another model", x.parallel.number(rank), one.Batch)
			}
			done[one.Batch] = &one
		}
	}
	return nil
}
