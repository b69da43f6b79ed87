package candidates

import (
	"cmp"
	"slices"
	"time"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// Weight is what plans are compared by, of all targets together.
type Weight struct {
	Time   time.Duration // of a step
	Copied int64         // bytes to and from the device
	Bytes  int64         // of the device
}

// Contest is between ways to plan, each of a weight: of those that take hardly longer than the
// fastest, the one is taken that copies the least, then the one that needs the least, then the
// fastest, and then the one that came first. Where copies take nothing from operations, only those
// count that take as long as the fastest, since by prices the others are worse. The zero value is
// such a contest.
type Contest[T any] struct {
	shared  bool
	fastest time.Duration
	list    []contender[T]
}

// contender is one of the ways that may still be taken.
type contender[T any] struct {
	weight Weight
	way    T
}

// alike is the part of a step by which prices are not to be trusted where engines share a
// processor: 0.5 %.
const alike = 200

// NewContest is a contest by the prices of a machine.
func NewContest[T any](m machine.Model) *Contest[T] { return &Contest[T]{shared: m.Shared() > 0} }

// slack is how much longer than a time is hardly longer.
func (c *Contest[T]) slack(t time.Duration) time.Duration {
	if !c.shared {
		return 0
	}
	return t / alike
}

// Limit is what a way must take less than to be taken.
func (c *Contest[T]) Limit() time.Duration {
	switch {
	case len(c.list) == 0:
		return Never
	case !c.shared:
		return c.fastest
	}
	return c.fastest + c.slack(c.fastest) + 1
}

// Add has a way take part.
func (c *Contest[T]) Add(w Weight, way T) {
	if len(c.list) == 0 || w.Time < c.fastest {
		c.fastest = w.Time
	}
	c.list = slices.DeleteFunc(append(c.list, contender[T]{w, way}), func(x contender[T]) bool {
		return x.weight.Time > c.fastest+c.slack(c.fastest)
	})
}

// Beats reports whether some way takes hardly longer than so long.
func (c *Contest[T]) Beats(least time.Duration) bool {
	return c.Any() && c.fastest <= least+c.slack(least)
}

// Any reports whether anything takes part.
func (c *Contest[T]) Any() bool { return len(c.list) > 0 }

// Best is the way that is taken; the zero value if there is none.
func (c *Contest[T]) Best() (way T) {
	if !c.Any() {
		return way
	}
	return slices.MinFunc(c.list, func(a, b contender[T]) int {
		return cmp.Or(cmp.Compare(a.weight.Copied, b.weight.Copied),
			cmp.Compare(a.weight.Bytes, b.weight.Bytes), cmp.Compare(a.weight.Time, b.weight.Time))
	}).way
}

// Between is a contest between plans of all targets. What is granted does not depend on what is
// fast: only the ladder's candidates decide about a refusal, so that the minimum is exact.
type Between struct{ *Contest[[]*Drawn] }

// Among is a contest by the prices of a machine between plans, some of which are there.
func Among(m machine.Model, all ...[]*Drawn) *Between {
	c := &Between{NewContest[[]*Drawn](m)}
	for _, plans := range all {
		c.enter(plans)
	}
	return c
}

// enter has plans take part, if there are some.
func (c *Between) enter(plans []*Drawn) {
	if plans != nil {
		c.Add(WeightOf(plans...), plans)
	}
}

// rival has plans of a search take part that are found in a manner, if they may be taken.
func (c *Between) rival(s *Search, find func(j *targetSearch, limit time.Duration) (*Drawn, error),
) error {
	plans, err := s.beats(c.Limit(), find)
	c.enter(plans)
	return err
}

// WeightOf is the weight of plans.
func WeightOf(plans ...*Drawn) Weight {
	var w Weight
	for _, f := range plans {
		w.Time += f.time
		w.Copied += f.sketch.Copied()
		w.Bytes = max(w.Bytes, f.sketch.Need[space.Device])
	}
	return w
}
