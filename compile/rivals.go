package compile

import (
	"time"

	"github.com/gomem/gomem/partition"
)

// tuning is how many nodes the graphs of all rivals may have together, some tenths of
// a second's worth.
const tuning = 12_000

// rivals are the partition sizes and strategies with which a user could tune the
// thesis' policy, whose plans a planner's must not be slower than. For graphs of more
// than a thousand nodes there is no time for all of them, and for large ones for none;
// there the planner's plans are much faster anyway.
func (s *search) rivals() []Options {
	var list []Options
	for _, size := range []int{200, 20, 5} {
		for _, by := range partition.Strategies() {
			o := s.options
			o.Strategy, o.Partition = by, size
			list = append(list, o)
		}
	}
	return list[:min(len(list), tuning/s.graph.Len())]
}

// tuned are the fastest of some plans and of those that the rivals come to. Only
// what is fastest is verified.
func (s *search) tuned(best []*Result) ([]*Result, error) {
	for _, o := range s.rivals() {
		plans, err := s.rival(o, total(best))
		if plans != nil {
			best, err = s.complete(plans)
		}
		if err != nil {
			return nil, err
		}
	}
	return best, nil
}

// rival is the plans of a rival, by target, or nil if one is refused or they take no
// less than so long.
func (s *search) rival(o Options, limit time.Duration) ([]*found, error) {
	var plans []*found
	var sum time.Duration
	for _, j := range s.jobs {
		start := time.Now()
		f, err := j.first(s.ctx, rungs(o))
		if f == nil || err != nil {
			return nil, err
		}
		f.finish(j)
		j.took += time.Since(start)
		if sum += f.time; sum >= limit {
			return nil, nil
		}
		plans = append(plans, f)
	}
	return plans, nil
}
