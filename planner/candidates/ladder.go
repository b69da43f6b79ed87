package candidates

import "fmt"

// Tuning is what the ladder decides.
type Tuning struct {
	Lookahead int   // partitions for which what is idle stays on the device
	Prefetch  int   // operations by which copies run ahead
	Unshared  bool  // every reader of a variable on the host gets a copy of its own
	Bounded   bool  // partitions are no larger than the neediest operation, in bytes
	Told      int64 // Grappler: the bytes that its estimate is held against; 0 is no limit
	Segments  int   // a level of [search.Problem.Segmented], which then decides; 0: it does not
	Timed     bool  // which goes by the machine's prices, and not by those of every machine
	Housed    int   // a level of variables on the device; 0: Segments has them on the host
	Spill     int   // how much is on the disk: a level, see Search.leaves; 0 is nothing
}

// Candidate is all that a plan of a target depends on.
type Candidate struct {
	options Options
	Tuning
}

// reach is how many partitions early copies to the device are issued at most.
func (w Candidate) reach() int {
	if w.options.Partition == 0 {
		return 1
	}
	return max(1, (w.Prefetch+w.options.Partition-1)/w.options.Partition)
}

// sharing is within how many partitions readers share a copy of a variable; -1: none do.
func (w Candidate) sharing() int {
	if w.Unshared {
		return -1
	}
	return w.Lookahead
}

// title says how a plan was made.
func (w Candidate) title() string {
	r := w.Tuning
	s := fmt.Sprintf("%s prefetch=%d", w.options, r.Prefetch)
	if r.Unshared {
		s += " unshared"
	}
	if r.Bounded {
		s += " bounded"
	}
	if r.Segments > 0 {
		s += fmt.Sprintf(" segments=%d", r.Segments)
	}
	if r.Housed > 0 {
		s += fmt.Sprintf(" housed=%d", r.Housed)
	}
	if r.Spill > 0 {
		s += fmt.Sprintf(" spill=%d", r.Spill)
	}
	if r.Told > 0 {
		s += fmt.Sprintf(" told=%d", r.Told)
	}
	return s
}

// at is a candidate by options and a tuning.
func at(o Options, r Tuning) Candidate {
	o.Lookahead = r.Lookahead
	return Candidate{o, r}
}

// ladder are the candidates to plan a target that a policy knows, the most relaxed
// first. They do not depend on the budgets.
type ladder struct {
	// together are candidates that all targets of a session must take if one does, since
	// they differ in where variables are. All ladders of a policy have the same.
	together []Candidate
	// housed are candidates that all targets must take together, too, each one of a list.
	housed [][]Candidate
	// chain is searched by halving; each candidate copies no more than the next.
	chain []Candidate
	// last is tried from end to end.
	last []Candidate
}

// at is the ladder with a disk that is used so much. With one, targets need not go
// together: it has no part in candidates that have all on the device.
func (l ladder) at(level int) ladder {
	if level == 0 {
		return l
	}
	on := func(candidates []Candidate) []Candidate {
		var list []Candidate
		for _, w := range candidates {
			w.Spill = level
			list = append(list, w)
		}
		return list
	}
	return ladder{chain: on(l.chain), last: on(l.last)}
}

// autoAhead is how many partitions copies run ahead under Auto, at most. One, as
// in the thesis, hides a copy behind about as many operations as there are copies
// to hide at the edges of large values, and stalls there.
const autoAhead = 2

// tunings are the candidates for one look-ahead, the most relaxed first.
func tunings(o Options) []Candidate {
	var list []Candidate
	for d := o.Partition; d > 0; d /= 4 {
		list = append(list, at(o, Tuning{Lookahead: o.Lookahead, Prefetch: d}))
	}
	list = append(list, at(o, Tuning{Lookahead: o.Lookahead}))
	if o.NoPlacement {
		return list // nothing is staged
	}
	return append(list, at(o, Tuning{Lookahead: o.Lookahead, Unshared: true}))
}

// ahead are a candidate of the chain with longer and longer prefetches, the longest
// first.
func ahead(w Candidate) []Candidate {
	list := []Candidate{w, w}
	list[0].Prefetch = autoAhead * w.options.Partition
	list[1].Prefetch = w.options.Partition
	for d := w.options.Partition / 4; d > 0; d /= 4 {
		shorter := w
		shorter.Prefetch = d
		list = append(list, shorter)
	}
	return list
}

// halving looks for the first of n things that fits, supposing that all after one
// that fits do, too, and is n if it finds none. Where that is not so, since the
// packing of addresses is uneven, it may overlook some; but whatever it finds, it
// finds that or an earlier one if more things fit.
func halving(n int, fits func(i int) (bool, error)) (first int, err error) {
	low, high := 0, n
	for low < high {
		middle := (low + high) / 2
		ok, err := fits(middle)
		if err != nil {
			return n, err
		}
		if ok {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, nil
}

// straight are the candidates that a search takes if none fits: the only ones that
// decide whether a budget is refused, since where it finds something, one of these
// fits. So a larger budget is never refused what a smaller one is granted.
func (l ladder) straight() []Candidate {
	var list []Candidate
	_, _ = halving(len(l.chain), func(i int) (bool, error) {
		list = append(list, l.chain[i])
		return false, nil
	})
	return append(list, l.last...)
}
