package candidates

import (
	"math"
	"slices"

	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/swap"
)

// Policy is a named set of decisions.
type Policy string

// The policies.
const (
	// Vanilla is the baseline of every table: breadth-first order, everything
	// on the device, values freed after their last use.
	Vanilla Policy = "vanilla"
	// Thesis is partitioned execution with swapping and host placement (J. Wei,
	// thesis 2019, chapter 6).
	Thesis Policy = "thesis"
	// Auto is the fastest plan that is found within the budgets, by the prices of
	// Options.Machine: Vanilla where that fits; it needs no more than Thesis.
	Auto Policy = "auto"
	// Grappler is Vanilla with the swapping of TensorFlow 1's memory optimizer: an
	// estimate of the peak, and copies of what is idle around it. It is here to be
	// compared with (thesis, section 6.4.7).
	Grappler Policy = "grappler"
)

// rules are what sets a policy apart from the others.
type rules struct {
	policy      Policy
	partitioned bool // the graph is cut into partitions
	searches    bool // a planner looks for what is faster than the ladder's plans
	swaps       func(Candidate) []program.Pass
	steady      bool // its ladder looks at no program
	ladder      func(base Candidate, p *program.Program) ladder
}

// policies are the rules of all policies. There is no other place that tells one
// from another by its name.
func policies() []rules {
	return []rules{
		{policy: Vanilla, swaps: lookAhead, steady: true, ladder: steadyLadder},
		{policy: Thesis, partitioned: true, swaps: lookAhead, steady: true,
			ladder: steadyLadder},
		{policy: Auto, partitioned: true, searches: true, swaps: lookAhead,
			ladder: autoLadder},
		{policy: Grappler, swaps: aroundPeak, ladder: grapplerLadder},
	}
}

// rules are the policy's; nothing is set for a policy that there is none of.
func (p Policy) rules() rules {
	all := policies()
	i := slices.IndexFunc(all, func(r rules) bool { return r.policy == p })
	if i < 0 {
		return rules{}
	}
	return all[i]
}

// Policies are the names that Options.Policy takes.
func Policies() []Policy {
	var names []Policy
	for _, r := range policies() {
		names = append(names, r.policy)
	}
	return names
}

// Partitioned reports whether a policy cuts the graph into partitions.
func (p Policy) Partitioned() bool { return p.rules().partitioned }

// Searches reports whether plans of the policy are what a planner finds to be the
// fastest within the budgets.
func (p Policy) Searches() bool { return p.rules().searches }

// lookAhead is the thesis' rule.
func lookAhead(w Candidate) []program.Pass {
	if w.options.NoSwap {
		return nil
	}
	return []program.Pass{swap.LookAhead(w.Lookahead)}
}

// aroundPeak is TensorFlow 1's.
func aroundPeak(w Candidate) []program.Pass {
	if w.Told == 0 {
		return []program.Pass{swap.AroundPeak(math.MaxInt64)}
	}
	return []program.Pass{swap.AroundPeak(w.Told)}
}

// steadyLadder gives up prefetch for memory, and then the sharing of staged variables. Of a
// graph in slices partitions are bounded last: else all slices of an operation are in one.
func steadyLadder(base Candidate, _ *program.Program) ladder {
	l := ladder{last: tunings(base.options)}
	if base.options.Mesh != nil && base.options.Policy.Partitioned() {
		bounded := l.last[len(l.last)-1]
		bounded.Bounded = true
		l.last = append(l.last, bounded)
	}
	return l
}

// autoLadder begins with plans that copy nothing but feeds and fetches, goes on to longer
// look-aheads than the given one, each an eighth or so longer than the next, and ends as the thesis
// policy's. What is left over between two look-aheads is for the prefetch. For the nested lifetimes
// of forward and backward passes the look-ahead is the best use of memory, since what is kept is
// what is needed again soonest (Belady). Then come candidates that compute most of the forward pass
// again, which the host has less of, and last those that need the least of the device. Beside them
// there are candidates that trade the one memory for the other: with more and more of the variables
// on the device.
func autoLadder(base Candidate, p *program.Program) ladder {
	o := base.options
	vanilla := Options{Policy: Vanilla, Streams: o.Streams, Device: o.Device, Machine: o.Machine,
		Model: o.Model, DeviceBytes: o.DeviceBytes, HostBytes: o.HostBytes, DiskBytes: o.DiskBytes,
		Precision: o.Precision}
	vanilla.EnsureDefaults()
	resident := o
	resident.NoPlacement, resident.NoSwap = true, true
	l := ladder{
		together: []Candidate{tunings(vanilla)[0], tunings(resident)[0]},
		last:     slices.Concat(tunings(o), segmented(o), tightest(o)),
		housed:   housed(o),
	}
	for k := p.Parts(); k > o.Lookahead; k = k * 7 / 8 {
		l.chain = append(l.chain, at(o, Tuning{Lookahead: k}))
	}
	return l
}

// tightest are the candidates that need the least: partitions of one operation by all
// strategies, and larger ones by the options', since which of them does depends on the
// graph. The last is the likeliest.
func tightest(o Options) []Candidate {
	var list []Candidate
	add := func(s partition.Strategy, size int) {
		if size < o.Partition || size == o.Partition && s != o.Strategy {
			next := o
			next.Strategy, next.Partition = s, size
			list = append(list, tunings(next)[len(tunings(next))-1])
		}
	}
	add(o.Strategy, 20)
	add(o.Strategy, 5)
	for _, s := range slices.Backward(partition.Strategies()) {
		add(s, 1)
	}
	return list
}

// grapplerLadder tells the rule smaller and smaller budgets, from the estimate of
// the peak without swapping down to nothing. What it is told is not the budget:
// its estimate is of neither addresses nor workspaces, and a plan for one budget
// may need more or less than that.
func grapplerLadder(base Candidate, p *program.Program) ladder {
	const parts = 16
	l := ladder{last: tunings(base.options)}
	for i := int64(parts - 1); i >= 0; i-- {
		w := tunings(base.options)[0]
		w.Told = max(p.Estimate/parts*i, 1)
		l.last = append(l.last, w)
	}
	return l
}
