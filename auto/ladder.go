package auto

import "context"

// Ladder solves the problem under several budgets, the largest first, so that each
// is a start for the next; what turns out to be faster than the plan of a larger
// budget is taken for that too. So a smaller budget is never faster. Where nothing
// fits, the decision is nil.
func (pr *Problem) Ladder(ctx context.Context, budgets []Budget, o Options) ([]*Decision, error) {
	list := make([]*Decision, len(budgets))
	var last *Decision
	for i, b := range budgets {
		d, err := pr.Solve(ctx, b, o, last)
		if err != nil {
			return nil, err
		}
		if list[i] = d; d != nil {
			last = d
		}
	}
	for i := len(list) - 2; i >= 0; i-- {
		next := list[i+1]
		if next == nil || list[i] != nil && list[i].time <= next.time {
			continue
		}
		if d := pr.At(next, budgets[i]); d != nil && d.time <= next.time {
			list[i] = d
		} else {
			list[i] = next
		}
	}
	return list, nil
}
