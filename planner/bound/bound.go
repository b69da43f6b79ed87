package bound

import (
	"math"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/program"
)

// Never is the least time of a step within a budget in which there is no plan.
const Never = time.Duration(math.MaxInt64)

// Bounds are the least memory and times of a program on a machine.
type Bounds struct {
	of        *facts
	compute   int64    // nanoseconds of the operations that are on the device for certain
	host      int64    // nanoseconds of the others, if the host executes them all
	elsewhere knapsack // of those: time of the device for time of the host
	least     Floor
	overlap   Floor
	cuts      []cut
}

// Floor is a least budget of the device.
type Floor struct {
	Bytes int64
	Node  *graph.Node // what sets it; nil if nothing executes on the device
}

// The bounds look closely at so many operations, about: all pairs of those and of
// values are gone through, so at fewer where there are more values.
const (
	cuts     = 128
	leastOf  = 16
	cutPairs = 1 << 20
)

// New works out the bounds of a program in its order. Live and Order must be filled,
// and Place may be.
func New(p *program.Program, m machine.Model) *Bounds {
	of := newFacts(p, m)
	b := &Bounds{of: of, compute: of.before[len(of.seq)]}
	var items []item
	for _, n := range of.floating {
		onHost := int64(m.Time(n, space.Host))
		b.host += onHost
		items = append(items, item{int64(m.Time(n, space.Device)), onHost})
	}
	b.elsewhere = newKnapsack(items)
	most := b.floors()
	top := b.heaviest()
	every := len(of.seq)/min(cuts, max(leastOf, cutPairs/(len(of.values)+1))) + 1
	for i := range of.seq {
		if i%every == 0 || i == top || i == most {
			b.cuts = append(b.cuts, of.cut(int32(i)))
		}
	}
	return b
}

// Least is the least budget in which the program can run if all that an operation does
// not need is elsewhere. A plan needs no more only if nothing is copied while an
// operation runs.
func (b *Bounds) Least() Floor { return b.least }

// Overlapped is the least budget in which, while an operation runs, what the next one
// reads can be on its way.
func (b *Bounds) Overlapped() Floor { return b.overlap }

// floors finds the two budgets, and the position that sets the least.
func (b *Bounds) floors() (most int) {
	of := b.of
	b.least.Bytes, b.overlap.Bytes = of.account.Fixed, of.account.Fixed
	for i, n := range of.seq {
		if need := of.needs[i]; need > b.least.Bytes || b.least.Node == nil {
			b.least, most = Floor{need, n}, i
		}
		need := of.needs[i]
		if i+1 < len(of.seq) {
			need += of.missing(n, of.seq[i+1])
		}
		if need > b.overlap.Bytes || b.overlap.Node == nil {
			b.overlap = Floor{need, n}
		}
	}
	return most
}

// Absent is how many bytes of values, inputs included, that are needed before and after
// some operation no plan within a budget has on the device while it runs: at least so
// many are swapped or computed again.
func (b *Bounds) Absent(budget int64) int64 {
	if i := b.heaviest(); i >= 0 {
		return max(b.of.needs[i]+b.of.across[i]-budget, 0)
	}
	return 0
}

// heaviest is the position at which the most bytes are needed now or later; -1 if there
// is none.
func (b *Bounds) heaviest() int {
	top := -1
	for i, need := range b.of.needs {
		if top < 0 || need+b.of.across[i] > b.of.needs[top]+b.of.across[top] {
			top = i
		}
	}
	return top
}

// Time is a lower bound of the time of a step within a budget of the device in bytes;
// [Never] if no plan is. A larger budget never has a larger bound.
func (b *Bounds) Time(budget int64) time.Duration {
	if budget < b.least.Bytes {
		return Never
	}
	t := b.until(b.compute, b.divides)
	for i := range b.cuts {
		c := &b.cuts[i]
		t = b.until(t, func(t int64) bool { return c.fits(t, t-b.compute, budget-c.needs) })
	}
	return time.Duration(t)
}

// divides reports whether the operations that may be on either processor can be
// divided such that both end within a time.
func (b *Bounds) divides(t int64) bool {
	return b.host-b.elsewhere.most(t-b.compute) <= t
}

// until is the shortest time from t on that is long enough, for a condition that
// longer times satisfy too.
func (b *Bounds) until(t int64, enough func(int64) bool) int64 {
	if enough(t) {
		return t
	}
	short, long := t, max(2*t, 1)
	for ; !enough(long); long *= 2 {
		short = long
	}
	for long-short > 1 {
		if mid := short + (long-short)/2; enough(mid) {
			long = mid
		} else {
			short = mid
		}
	}
	return long
}
