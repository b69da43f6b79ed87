package distrib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// SchemeOptions are what a scheme's name leaves open. The zero value of each is the
// scheme's own choice.
type SchemeOptions struct {
	Staleness *int    // clocks; nil: the scheme's own
	Bandwidth float64 // bits a second for updates that are sent early; 0: none are
	Order     string  // in which those go, of [ParseOrder]; "": what changes most first, relmag
	Filter    string  // of what is sent, both ways where sums come back: see [ParseFilter]
	Rule      string  // of the owners: see [ParseRule]
	Every     Clock   // clocks between averages
	Multicast int     // nodes that each clock's updates go to; 0: 4
	Receivers string  // which nodes: random, turns, fixed; "": random
	Select    int     // pairs of factors that are sent of a clock's; 0: 25
	Tiers     Tiers   // where nodes are, for schemes with trees; nil: all are as far apart
	Delay     Version // how late an update may be, as of [Async]; 0: 30
	Reduce    Reduce  // a sum over a group, for schemes with averages
	Seed      uint64  // of what is drawn
}

// scheme is a name for a plan.
type scheme struct {
	name, about string
	staleness   int // -1: the scheme has none
	takes       takes
	make        func(o SchemeOptions) *Plan
}

// takes is which options a scheme has a use for.
type takes uint8

const (
	takesPace takes = 1 << iota
	takesFilter
	takesRule
	takesEvery
	takesReduce // and cannot do without: nothing else evens out what replicas differ by
	takesTiers
	takesSome // nodes, and pairs of factors
	takesDelay
)

// schemes is all of them.
func schemes() []scheme {
	return []scheme{
		{"bsp", "parameter servers, all in step", -1, takesFilter | takesRule, planServed(BSP{})},
		{"ssp", "parameter servers, stale by some clocks", 3, takesFilter | takesRule, planStale},
		{"async", "parameter servers, nobody waits", -1, takesPace | takesFilter | takesRule,
			planServed(Async{})},
		{"fabric", "parameter servers, nobody waits, updates scheduled and none too late", -1,
			takesFilter | takesRule | takesDelay, planFabric},
		{"bosen", "parameter servers, stale, what matters first as the network allows", 2,
			takesPace | takesFilter | takesRule, planBosen},
		{"pf", "sums of filtered updates come back along trees", 4,
			takesFilter | takesTiers, planFlow},
		{"svb", "every worker sends to every other", 0, takesFilter, planBroadcast},
		{"orpheus", "each clock to some others, selected factors, averages", 4,
			takesFilter | takesEvery | takesSome, planOrpheus},
		{"lossy", "as orpheus, but the others never get it: averages alone even that out", 4,
			takesFilter | takesEvery | takesReduce | takesSome, planOrpheus},
		{"exponential", "to those 1, 2, 4 and so on away, who hand on", 8, takesFilter,
			planExponential},
		{"halton", "to those at Halton's distances, who hand on", 16, takesFilter, planHalton},
		{"ring", "a sum over all at every clock", -1, takesEvery | takesReduce,
			planRing},
		{"easgd", "workers on their own, drawn to a centre now and then", -1,
			takesEvery | takesReduce, planElastic},
		{"average", "workers on their own, averaged now and then", -1,
			takesEvery | takesReduce, planAveraged},
	}
}

// Schemes is the names of the schemes and what each is, in a few words.
func Schemes() (names, about []string) {
	for _, s := range schemes() {
		names, about = append(names, s.name), append(about, s.about)
	}
	return names, about
}

// ParseScheme is the plan of a scheme's name, with state of its own: each node calls it.
// The error lists the schemes, or says which option the scheme has no use for.
func ParseScheme(name string, o SchemeOptions) (*Plan, error) {
	names, _ := Schemes()
	for _, s := range schemes() {
		if s.name != name {
			continue
		}
		if err := s.check(o); err != nil {
			return nil, err
		}
		if o.Staleness == nil {
			o.Staleness = &s.staleness
		}
		p := s.make(o)
		return p, s.fill(p, o)
	}
	return nil, fmt.Errorf("no scheme %.60q: there are %s", name, enumerate(names))
}

func (s scheme) check(o SchemeOptions) error {
	for _, option := range []struct {
		name  string
		given bool
		has   bool
	}{
		{"staleness", o.Staleness != nil, s.staleness >= 0},
		{"bandwidth", o.Bandwidth != 0, s.takes&takesPace != 0},
		{"filter", o.Filter != "", s.takes&takesFilter != 0},
		{"rule", o.Rule != "", s.takes&takesRule != 0},
		{"order", o.Order != "", s.takes&takesPace != 0},
		{"every", o.Every != 0, s.takes&takesEvery != 0},
		{"topology", o.Tiers != nil, s.takes&takesTiers != 0},
		{"multicast", o.Multicast != 0, s.takes&takesSome != 0},
		{"receivers", o.Receivers != "", s.takes&takesSome != 0},
		{"select", o.Select != 0, s.takes&takesSome != 0},
		{"delay", o.Delay != 0, s.takes&takesDelay != 0},
	} {
		if option.given && !option.has {
			return fmt.Errorf("scheme %s has no use for option %s", s.name, option.name)
		}
	}
	switch {
	case o.Staleness != nil && *o.Staleness < 0:
		return fmt.Errorf("staleness %d is negative", *o.Staleness)
	case !(o.Bandwidth >= 0):
		return fmt.Errorf("bandwidth %v is negative", o.Bandwidth)
	case o.Multicast < 0 || o.Select < 0:
		return fmt.Errorf("updates to %d nodes, of %d pairs", o.Multicast, o.Select)
	case o.Select > 0 && o.Filter != "":
		return errors.New("options select and filter each say what is sent: leave one out")
	case o.Delay < 0:
		return fmt.Errorf("updates %d late", o.Delay)
	case o.Every < 0:
		return fmt.Errorf("averages every %d clocks", o.Every)
	case s.takes&takesReduce != 0 && o.Reduce == nil:
		return fmt.Errorf("scheme %s needs a way to add up over workers", s.name)
	}
	return nil
}

// fill puts in what all schemes that take it have in common.
func (s scheme) fill(p *Plan, o SchemeOptions) (err error) {
	if o.Filter != "" {
		if p.Up, err = ParseFilter(o.Filter); err != nil {
			return err
		}
		if shards, ok := p.Topology.(*Shards); ok && lowRank(p.Up) {
			shards.Block = 4 << 20 // of few rows there is no low rank
		}
		if p.Down == Deltas {
			p.DownF, err = ParseFilter(o.Filter)
		}
	}
	if s.takes&takesSome != 0 {
		if p.Topology, err = o.multicast(s.takes&takesReduce != 0); err != nil {
			return err
		}
	}
	if o.Order != "" && p.Pacer == nil && o.Bandwidth == 0 {
		return errors.New("option order needs option bandwidth: nothing is sent early")
	}
	if o.Rule != "" && err == nil {
		p.Rule, err = ParseRule(o.Rule)
	}
	if o.Bandwidth > 0 {
		p.Pacer = &LeakyBucket{Mbps: o.Bandwidth / 1e6, Seed: o.Seed, Window: 8}
	}
	if b, ok := p.Pacer.(*LeakyBucket); ok && err == nil {
		b.Order, err = ParseOrder(cmp.Or(o.Order, RelMag.String()))
	}
	return err
}

// Gradients reports whether the updates that a plan's rule takes are gradients, and not steps.
func (p *Plan) Gradients() bool {
	switch p.Rule.(type) {
	case *Adam, *AdaRevision, *AdaDelay:
		return true
	}
	return false
}

// lowRank reports whether a filter works on matrices.
func lowRank(f Filter) bool {
	switch f := f.(type) {
	case *PowerSGD, *SVSelect:
		return true
	case Chain:
		return slices.ContainsFunc(f, lowRank)
	}
	return false
}

func planServed(c Consistency) func(SchemeOptions) *Plan {
	return func(SchemeOptions) *Plan { return &Plan{Topology: &Shards{}, Consistency: c} }
}

// planFabric is asynchronous, with a bound on delays; package fabric/daemon has its updates
// scheduled.
func planFabric(o SchemeOptions) *Plan {
	return planServed(Async{Delay: cmp.Or(o.Delay, 30)})(o)
}

func planStale(o SchemeOptions) *Plan {
	return &Plan{Topology: &Shards{}, Consistency: SSP{S: *o.Staleness}}
}

func planBosen(o SchemeOptions) *Plan {
	p := planStale(o)
	p.Pacer = &LeakyBucket{Mbps: 40, Seed: o.Seed, Window: 8}
	return p
}

func planFlow(o SchemeOptions) *Plan {
	f := DVF{Low: 1e-4, Up: 2e-4}
	trees := &Trees{}
	if o.Tiers != nil {
		trees.Cost = o.Tiers.Cost
	}
	return &Plan{Topology: &Shards{Tree: trees}, Down: Deltas, Up: f, DownF: f,
		Consistency: SSP{S: *o.Staleness}}
}

func planBroadcast(o SchemeOptions) *Plan {
	return &Plan{Topology: &All{}, Consistency: SSP{S: *o.Staleness}}
}

func planOrpheus(o SchemeOptions) *Plan {
	p := &Plan{Up: &SVSelect{C: o.Select, Seed: o.Seed}, Consistency: SSP{S: *o.Staleness}}
	if o.Reduce != nil {
		p.Every = []Periodic{Average(cmp.Or(o.Every, 100), o.Reduce)}
	}
	return p
}

// Partial topologies have a staleness that covers the hops: an update is so many clocks
// old when it arrives.
func planExponential(o SchemeOptions) *Plan {
	return &Plan{Topology: &Exponential{}, Consistency: SSP{S: *o.Staleness}}
}

func planHalton(o SchemeOptions) *Plan {
	return &Plan{Topology: &Halton{}, Consistency: SSP{S: *o.Staleness}}
}

func planRing(o SchemeOptions) *Plan {
	return &Plan{Topology: &Local{}, Every: []Periodic{Sum(cmp.Or(o.Every, 1), o.Reduce)}}
}

func planElastic(o SchemeOptions) *Plan {
	every := cmp.Or(o.Every, 10)
	return &Plan{Topology: &Local{}, Every: []Periodic{
		Drained(Elastic(every, 0.5, 0.5, o.Reduce))}}
}

func planAveraged(o SchemeOptions) *Plan {
	every := cmp.Or(o.Every, 10)
	return &Plan{Topology: &Local{}, Every: []Periodic{Drained(Average(every, o.Reduce))}}
}

// Drained folds what a node's own workers have pushed into its replica before a periodic
// does its work: for plans whose workers go on their own in between.
func Drained(p Periodic) Periodic {
	return Periodic{p.Every, func(ctx context.Context, r *Round) error {
		for i, q := range r.Params {
			if u := r.Drain(Ref{Param: ParamID(i)}); u != nil {
				u.AddTo(q.Data, q.Cols, 1)
			}
		}
		return p.Do(ctx, r)
	}}
}
